"""Signing keys while tokens live: announced, active, retired, removed, on every process of one database (D-13)."""

import asyncio
import functools
import itertools
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet
from quart import Quart
from sqlalchemy import delete

from conftest import AsService, Dial, client_of
from profilesvc.bootstrap import Runtime, create_app, open_services
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import ALGORITHMS, KNOWN_AFTER, Algorithm
from profilesvc.domain.time import DAY, SECOND, FrozenClock
from profilesvc.fixtures import fixture_path
from profilesvc.services.context import Services
from profilesvc.services.provider_logins import purpose
from profilesvc.services.tokens import user_token
from profilesvc.settings import ProviderSettings, Settings, SettingsError, TokenSettings
from profilesvc.storage import logins, tables
from profilesvc.tokens import signing_keys
from profilesvc.tokens.keys import RsaKey, generate_rsa, pem_of, rsa_key
from profilesvc.tokens.signer import Signer
from profilesvc.tokens.vault import Vault
from support.api import ALICE, Site, assert_error, assert_ok
from support.cases.hostile import b64
from support.effort import effort
from support.identity.oauth import assert_oauth_error
from support.tokens import LOCATIONS, PATH, assert_bad_refresh, claims, grant, refresh

JWKS = "/.well-known/jwks.json"


@pytest.fixture
async def other(app: Quart, settings: Settings, clock: FrozenClock) -> AsyncIterator[Quart]:
    """The services of a second process on the same database."""
    made = create_app(settings, Runtime(clock, SeededEntropy("other")))
    async with made.test_app():
        yield made


@pytest.fixture(scope="module")
def lab_key() -> RsaKey:
    return rsa_key(fixture_path("signing_key.pem").read_bytes())


def services_of(app: Quart) -> Services:
    running: Services = app.extensions["profilesvc"]
    return running


def kid_of(token: str) -> str:
    return str(claims(f".{token}")["kid"])


async def states(services: Services, alg: Algorithm = "RS256") -> list[str]:
    """In alphabetical order: keys made in the same millisecond have no other."""
    return sorted(info.state for info in await services.signing_keys.listing() if info.dates.alg == alg)


async def published(http: httpx.AsyncClient) -> list[str]:
    return [key["kid"] for key in (await http.get(JWKS)).json()["keys"]]


async def call(dial: Dial, token: str) -> httpx.Response:
    async with dial(token) as client:
        return await client.get(LOCATIONS)


async def granted(dial: Dial, site: Site) -> dict[str, Any]:
    async with dial() as client:
        answer: dict[str, Any] = assert_ok(await client.post(PATH, json=grant(site)))
    return answer


def dial_of(app: Quart) -> Dial:
    return functools.partial(client_of, app)


async def test_only_the_public_fields_of_a_key_are_published(http: httpx.AsyncClient) -> None:
    response = await http.get(JWKS)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "max-age=300"
    (key,) = response.json()["keys"]
    assert set(key) == {"kty", "n", "e", "kid", "use", "alg"}
    assert (key["kty"], key["e"], key["use"], key["alg"]) == ("RSA", "AQAB", "sig", "RS256")
    assert_oauth_error(await http.post(JWKS), 405, "invalid_request")


async def test_another_library_verifies_our_tokens_before_and_after_a_rotation(
    http: httpx.AsyncClient, dial: Dial, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await services.signing_keys.rotate(at_once=True)
    clock.advance(milliseconds=KNOWN_AFTER)
    after = await granted(dial, plugin)
    assert kid_of(after["access_token"]) != kid_of(plugin.tokens["access_token"])
    keys = KeySet.import_key_set((await http.get(JWKS)).json())
    for token in (plugin.tokens["access_token"], after["access_token"]):
        assert joserfc_jwt.decode(token, keys, algorithms=["RS256"]).claims == claims(token)


async def test_keys_of_refresh_tokens_are_not_published(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    made = await services.signing_keys.rotate("HS256")
    kids = await published(http)
    assert kids == [kid_of(plugin.tokens["access_token"])]
    text = (await http.get(JWKS)).text
    for kid in (made.dates.kid, kid_of(plugin.tokens["refresh_token"])):
        key = services.signer.keyring.refresh[kid]
        for secret in (kid, b64(key.secret), b64(key.sealing), key.secret.hex()):
            assert secret not in text


async def test_a_rotation_goes_through_all_states_while_access_tokens_stay_valid(
    http: httpx.AsyncClient, dial: Dial, other: Quart, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    old = plugin.tokens["access_token"]
    made = await services.signing_keys.rotate()
    assert made.state == "announced"
    assert made.dates.active_from == clock.now() + 14 * DAY
    clock.advance(seconds=signing_keys.RELOAD_SECONDS)  # by then every process has read it
    assert await published(http) == [kid_of(old), made.dates.kid]
    assert kid_of((await granted(dial, plugin))["access_token"]) == kid_of(old)
    clock.advance(days=14)
    assert await states(services) == ["active", "retired"]
    new = (await granted(dial_of(other), plugin))["access_token"]
    assert kid_of(new) == made.dates.kid
    for dialled in (dial, dial_of(other)):
        for token in (old, new):
            assert_ok(await call(dialled, token))
    assert_ok(await http.post(PATH, json=refresh(plugin)))


async def test_a_rotation_goes_through_all_states_while_refresh_tokens_stay_valid(
    http: httpx.AsyncClient, dial: Dial, other: Quart, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    old, spare = plugin.tokens["refresh_token"], (await granted(dial, plugin))["refresh_token"]
    assert kid_of(spare) == kid_of(old)
    made = await services.signing_keys.rotate("HS256")
    assert (made.state, made.dates.active_from) == ("announced", clock.now() + 14 * DAY)
    assert await states(services) == ["active"]  # the key of access tokens stays
    clock.advance(days=14)
    await services_of(other).signing_keys.reload()
    assert await states(services, "HS256") == ["active", "retired"]
    for dialled, token in ((dial, old), (dial_of(other), spare)):  # of the retired key
        async with dialled() as client:
            body = {"grant_type": "refresh_token", "refresh_token": token}
            new = assert_ok(await client.post(PATH, json=body))["refresh_token"]
        assert kid_of(new) == made.dates.kid


async def test_page_tokens_stay_valid_in_every_process_after_a_rotation(
    other: Quart, plugin: Site, services: Services, settings: Settings, clock: FrozenClock
) -> None:
    async def page(dialled: Dial, token: str | None = None) -> str:
        async with dialled(plugin.tokens["access_token"]) as client:
            query = {"locationId": "111", "pageSize": "1", **({"pageToken": token} if token else {})}
            return str(assert_ok(await client.get("/api/v1/posts", params=query))["nextPageToken"])

    here, there = plugin.http, dial_of(other)
    before = await page(there)
    await services.signing_keys.rotate("HS256", at_once=True)
    await services_of(other).signing_keys.reload()
    clock.advance(milliseconds=KNOWN_AFTER)
    after = await page(there)
    assert after != before
    restarted = create_app(settings, Runtime(clock, SeededEntropy("restarted")))
    async with restarted.test_app():
        for token in (before, after):
            assert await page(there, token) == await page(dial_of(restarted), token)
            response = await here.get("/api/v1/posts", params={"locationId": "111", "pageToken": token})
            assert_ok(response)


async def test_an_announced_rotation_is_not_repeated_but_can_be_brought_forward(
    services: Services, clock: FrozenClock
) -> None:
    first = await services.signing_keys.rotate()
    with pytest.raises(ServiceError, match="already announced; it signs from 2026-01-16T03:04:05"):
        await services.signing_keys.rotate()
    hasty = await services.signing_keys.rotate(at_once=True)
    assert hasty.dates.kid == first.dates.kid
    assert hasty.dates.active_from == clock.now() + KNOWN_AFTER
    assert (await services.signing_keys.rotate(at_once=True)).dates == hasty.dates  # no later for asking again
    clock.advance(milliseconds=KNOWN_AFTER)
    assert await states(services) == ["active", "retired"]


async def test_a_retired_key_is_published_longer_than_its_longest_token_lasts(
    http: httpx.AsyncClient, dial: Dial, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    succession = (await services.signing_keys.rotate()).dates.active_from
    clock.advance(days=14, milliseconds=-1)
    last = (await granted(dial, plugin))["access_token"]
    clock.advance(milliseconds=claims(last)["exp"] * SECOND - 1 - clock.now())
    assert_ok(await call(dial, last))  # in its last millisecond
    clock.advance(milliseconds=succession + 91 * DAY - 1 - clock.now())
    await services.signing_keys.keep_schedule()
    assert kid_of(last) in await published(http)
    assert assert_error(await call(dial, last), 401, "AUTH_INVALID_TOKEN") == {"reason": "expired"}
    clock.advance(milliseconds=1)
    await services.signing_keys.keep_schedule()
    assert kid_of(last) not in await published(http)
    assert await states(services) == ["active", "removed"]


async def test_a_rotation_is_announced_once_by_any_number_of_processes(settings: Settings, clock: FrozenClock) -> None:
    own = settings.model_copy(update={"tokens": TokenSettings()})
    async with open_services(own, Runtime(clock)) as one, open_services(own, Runtime(clock)) as two:
        clock.advance(days=76, milliseconds=-1)
        await one.signing_keys.keep_schedule()
        assert await states(one) == await states(one, "HS256") == ["active"]
        clock.advance(milliseconds=1)
        await asyncio.gather(*(services.signing_keys.keep_schedule() for services in (one, two, one, two)))
        assert await states(one) == await states(one, "HS256") == ["active", "announced"]
        assert one.signer.keyring.jwks() == two.signer.keyring.jwks()
        clock.advance(days=14)
        assert await states(two) == await states(two, "HS256") == ["active", "retired"]


async def test_a_key_from_a_file_is_not_rotated(services: Services, clock: FrozenClock) -> None:
    clock.advance(days=1_000)
    await services.signing_keys.keep_schedule()
    assert await states(services) == await states(services, "HS256") == ["active"]


async def test_A053_a_repeated_exchange_has_the_same_bytes_after_a_rotation(
    http: httpx.AsyncClient, other: Quart, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    made = await services.signing_keys.rotate(at_once=True)
    await services.signing_keys.rotate("HS256", at_once=True)
    clock.advance(milliseconds=KNOWN_AFTER - 1)
    first = await http.post(PATH, json=refresh(plugin))
    clock.advance(milliseconds=1)
    assert services.signer.keyring.access.active(clock.now()).kid == made.dates.kid
    async with client_of(other) as client:
        again = await client.post(PATH, json=refresh(plugin))
    for name in ("access_token", "refresh_token"):
        assert kid_of(assert_ok(again)[name]) == kid_of(plugin.tokens[name])
    assert again.content == first.content


@pytest.mark.parametrize("alg", ALGORITHMS)
async def test_A053_an_exchange_is_not_repeated_once_its_signing_key_is_removed(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, alg: Algorithm
) -> None:
    made = await services.signing_keys.rotate(alg, at_once=True)
    clock.advance(milliseconds=KNOWN_AFTER)
    assert_ok(await http.post(PATH, json=refresh(plugin)))
    await services.signing_keys.remove(made.dates.kid)
    assert_bad_refresh(await http.post(PATH, json=refresh(plugin)))


async def test_A077_a_removed_key_ends_tokens_at_once_in_a_process_that_holds_it(
    dial: Dial, other: Quart, plugin: Site, alice: httpx.AsyncClient, services: Services
) -> None:
    token, kid = plugin.tokens["access_token"], kid_of(plugin.tokens["access_token"])
    user = alice.headers["Authorization"].removeprefix("Bearer ")
    assert_ok(await call(dial_of(other), token))  # verified and remembered there
    assert (await services.signing_keys.remove(kid)).state == "removed"
    for dialled, credential in itertools.product((dial_of(other), dial), (token, user)):
        details = assert_error(await call(dialled, credential), 401, "AUTH_INVALID_TOKEN")
        assert details == {"reason": "invalid"}  # its claims may be forged, so the reason is not `revoked`
    async with client_of(other) as client:
        successor = assert_ok(await client.post(PATH, json=refresh(plugin)))  # another key has signed it
    assert_ok(await call(dial_of(other), successor["access_token"]))


async def test_A077_a_removed_refresh_key_ends_refresh_tokens_and_no_access_token(
    dial: Dial, other: Quart, plugin: Site, services: Services
) -> None:
    kid = kid_of(plugin.tokens["refresh_token"])
    assert kid in services_of(other).signer.keyring.refresh
    assert (await services.signing_keys.remove(kid)).state == "removed"
    for dialled in (dial_of(other), dial):
        async with dialled() as client:
            assert_bad_refresh(await client.post(PATH, json=refresh(plugin)))
        assert_ok(await call(dialled, plugin.tokens["access_token"]))
    new = (await granted(dial_of(other), plugin))["refresh_token"]
    assert kid_of(new) != kid
    async with client_of(other) as client:
        assert_ok(await client.post(PATH, json={"grant_type": "refresh_token", "refresh_token": new}))


@pytest.mark.parametrize("of_a_user", [False, True])
async def test_A077_no_process_issues_an_invalid_token_after_a_removal(
    dial: Dial, other: Quart, plugin: Site, services: Services, clock: FrozenClock, of_a_user: bool
) -> None:
    kid = kid_of(plugin.tokens["access_token"])
    assert kid in services_of(other).signer.keyring.access
    await services.signing_keys.remove(kid)
    if of_a_user:
        token = await user_token(services_of(other), ALICE)
    else:
        token = (await granted(dial_of(other), plugin))["access_token"]
    clock.advance(seconds=signing_keys.RELOAD_SECONDS)  # by then every process has read the new one
    for dialled in (dial_of(other), dial):
        assert_ok(await call(dialled, token))
    assert await states(services) == ["active", "removed"]


async def test_A077_a_token_of_an_announced_key_is_valid(
    other: Quart, dial: Dial, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    """A host whose clock is ahead signs with it early."""
    made = await services.signing_keys.rotate()
    clock.advance(seconds=signing_keys.RELOAD_SECONDS)  # by then every process has read it
    await services_of(other).signing_keys.reload()
    ours = claims(plugin.tokens["access_token"])
    rest = {name: value for name, value in ours.items() if name not in ("iat", "exp")}
    token = services.signer.issue("at+jwt", rest, clock.now(), 60, made.dates.kid)
    assert kid_of(token) == made.dates.kid
    for dialled in (dial, dial_of(other)):
        assert_ok(await call(dialled, token))


async def test_A076_a_token_of_another_deployment_with_the_same_keys_is_rejected(
    dial: Dial, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    ours = claims(plugin.tokens["access_token"])
    rest = {name: value for name, value in ours.items() if name not in ("iat", "exp", "iss", "aud")}
    for base_url, status in (("https://staging.profiles.test", 401), (services.signer.base_url, 200)):
        token = Signer(services.signer.keyring, base_url).issue("at+jwt", rest, clock.now(), 60)
        assert (await call(dial, token)).status_code == status


async def test_an_older_key_signs_after_a_removal_until_all_processes_have_the_next(
    other: Quart, dial: Dial, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    made = await services.signing_keys.rotate(at_once=True)
    clock.advance(milliseconds=KNOWN_AFTER)
    await services_of(other).signing_keys.reload()
    await services.signing_keys.remove(made.dates.kid)
    assert await states(services) == ["active", "announced", "removed"]
    token = (await granted(dial, plugin))["access_token"]
    assert_ok(await call(dial_of(other), token))
    clock.advance(milliseconds=KNOWN_AFTER)
    assert await states(services) == ["active", "removed", "retired"]


async def test_the_removal_of_the_active_key_brings_the_announced_one_forward(
    plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await services.signing_keys.rotate()
    clock.advance(days=1)
    await services.signing_keys.remove(kid_of(plugin.tokens["access_token"]))
    assert await states(services) == ["active", "removed"]


async def test_the_removal_of_an_announced_key_does_not_change_the_active_one(
    dial: Dial, plugin: Site, services: Services
) -> None:
    made = await services.signing_keys.rotate()
    before = await services.signing_keys.remove(made.dates.kid)
    assert await services.signing_keys.remove(made.dates.kid) == before  # again is harmless
    assert await states(services) == ["active", "removed"]
    assert_ok(await call(dial, plugin.tokens["access_token"]))
    with pytest.raises(ServiceError, match="There is no signing key x"):
        await services.signing_keys.remove("x")


async def test_a_removed_key_leaves_no_private_part_behind(services: Services) -> None:
    made = await services.signing_keys.rotate()
    await services.signing_keys.remove(made.dates.kid)
    async with services.storage.read() as session:
        rows = (await session.execute(tables.signing_keys.select())).all()
    assert {row.kid: row.private_pem is None for row in rows}[made.dates.kid]


async def test_processes_that_start_at_once_agree_on_one_key_of_each_algorithm(
    settings: Settings, clock: FrozenClock
) -> None:
    own = settings.model_copy(update={"tokens": TokenSettings()})
    async with open_services(own, Runtime(clock), provider=False) as services, services.storage.write() as session:
        await session.execute(delete(tables.signing_keys))
    begin = asyncio.Event()

    async def start() -> list[str]:
        await begin.wait()
        async with open_services(own, Runtime(clock), provider=False) as services:
            ring = services.signer.keyring
            return [dates.kid for alg in ALGORITHMS for dates in ring.keys_of(alg).dates]

    starting = [asyncio.create_task(start()) for _ in range(4)]
    begin.set()
    rings = await asyncio.gather(*starting)
    assert len(rings[0]) == len(ALGORITHMS)
    assert all(ring == rings[0] for ring in rings)


async def test_a_start_imports_the_key_file_of_old_versions(settings: Settings, clock: FrozenClock) -> None:
    old, own = generate_rsa(), settings.model_copy(update={"tokens": TokenSettings()})
    async with open_services(own, Runtime(clock), provider=False) as services, services.storage.write() as session:
        await session.execute(delete(tables.signing_keys))
    (settings.data_dir / "signing_key.pem").write_text(pem_of(old, None))
    async with open_services(own, Runtime(clock), provider=False) as services:
        assert services.signer.keyring.access.active(clock.now()).kid == old.kid


async def test_the_operators_key_is_imported_once_and_signs_when_all_processes_have_it(
    settings: Settings, clock: FrozenClock, tmp_path: Path, lab_key: RsaKey
) -> None:
    own, file = generate_rsa(), tmp_path / "own.pem"
    file.write_text(pem_of(own, None))
    given = settings.model_copy(update={"tokens": TokenSettings(signing_key_file=file)})
    async with open_services(settings, Runtime(clock), provider=False) as services:
        await services.signing_keys.rotate()
    for _ in range(2):
        async with open_services(given, Runtime(clock), provider=False) as services:
            assert await states(services) == ["active", "announced", "removed"]
            assert services.signer.keyring.access.active(clock.now()).kid == lab_key.kid
            assert services.signer.keyring.access.active(clock.now() + KNOWN_AFTER).kid == own.kid
            assert services.signer.keyring.access.active(clock.now() + 1_000 * DAY).kid == own.kid


async def test_a_removed_key_is_not_imported_again(
    settings: Settings, clock: FrozenClock, lab_key: RsaKey, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_services(settings, Runtime(clock), provider=False) as services:
        await services.signing_keys.remove(lab_key.kid)
    caplog.clear()
    async with open_services(settings, Runtime(clock), provider=False) as services:
        assert lab_key.kid not in services.signer.keyring.access
        assert await states(services) == ["active", "removed"]
    assert [record.levelno for record in caplog.records if lab_key.kid in record.message] == [logging.WARNING]


class TestAtRest:
    @staticmethod
    def under(settings: Settings, passphrase: str) -> Settings:
        tokens = settings.tokens.model_copy(update={"key_passphrase": passphrase})
        return settings.model_copy(update={"tokens": TokenSettings(**tokens.model_dump())})

    async def test_keys_are_encrypted_even_if_they_are_older_than_the_passphrase(
        self, settings: Settings, clock: FrozenClock, lab_key: RsaKey
    ) -> None:
        async with open_services(self.under(settings, "correct horse"), Runtime(clock), provider=False) as services:
            await services.signing_keys.rotate()
            async with services.storage.read() as session:
                rows = (await session.execute(tables.signing_keys.select())).all()
        assert sorted(row.alg for row in rows) == ["HS256", "RS256", "RS256"]
        assert all("BEGIN ENCRYPTED PRIVATE KEY" in row.private_pem for row in rows)
        async with open_services(self.under(settings, "correct horse"), Runtime(clock), provider=False) as services:
            assert lab_key.kid in services.signer.keyring.access
        for wrong in ("wrong", ""):
            with pytest.raises(SettingsError) as refusal:
                async with open_services(self.under(settings, wrong), Runtime(clock), provider=False):
                    pass
            line = str(refusal.value)
            assert line.startswith("PROFILESVC_TOKENS__KEY_PASSPHRASE does not decrypt the signing key ")
            assert "\n" not in line

    async def test_logins_are_encrypted_again_by_a_passphrase_that_came_later(
        self, settings: Settings, clock: FrozenClock
    ) -> None:
        async def stored(services: Services) -> str:
            async with services.storage.read() as session:
                [row] = await logins.all_logins(session)
            return row.refresh_token or ""

        use = purpose(1, "dana")
        async with open_services(settings, Runtime(clock), provider=False) as services:
            columns = {"state": "active", "scopes": "", "created_at": 1}
            async with services.storage.write() as session:
                token = services.vault.encrypt("the refresh token", use)
                await logins.put(session, 1, "dana", refresh_token=token, **columns)
        for _ in range(2):
            async with open_services(self.under(settings, "correct horse"), Runtime(clock), provider=False) as services:
                encrypted = await stored(services)
                assert services.vault.decrypt(encrypted, use) == "the refresh token"
        with pytest.raises(ValueError, match="another passphrase"):
            Vault("").decrypt(encrypted, use)

    @pytest.mark.in_process("reads the log")
    async def test_a_key_that_cannot_be_decrypted_is_logged_once_and_skipped(
        self, dial: Dial, plugin: Site, services: Services, clock: FrozenClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        sealed = pem_of(generate_rsa(), b"another")
        async with services.storage.write() as session:
            row = {"kid": "k", "private_pem": sealed, "created_at": 0, "active_from": clock.now() + DAY}
            await session.execute(tables.signing_keys.insert().values(row))
        for _ in range(2):
            assert_ok(await call(dial, (await granted(dial, plugin))["access_token"]))
        assert len([record for record in caplog.records if "KEY_PASSPHRASE" in record.message]) == 1

    async def test_production_rejects_the_published_test_key_wherever_it_is_stored(
        self, settings: Settings, clock: FrozenClock
    ) -> None:
        strict = {
            "environment": "production",
            "base_url": "https://profiles.example",
            "provider": ProviderSettings(url="https://provider.example"),
        }
        given = settings.tokens
        refresh_only = TokenSettings(refresh_key_file=given.refresh_key_file)
        for tokens in (given, TokenSettings(), refresh_only):
            production = settings.model_copy(update={**strict, "tokens": tokens})
            with pytest.raises(SettingsError, match="published test key"):
                async with open_services(production, Runtime(clock), provider=False):
                    pass

    @pytest.mark.parametrize("database", ["sqlite"])
    async def test_only_its_owner_can_read_the_file_of_the_database(
        self, settings: Settings, clock: FrozenClock
    ) -> None:
        path = settings.data_dir / "profilesvc.db"
        path.chmod(0o644)
        async with open_services(settings, Runtime(clock), provider=False) as services:
            await services.signing_keys.rotate()
            files = [file for file in path.parent.iterdir() if file.name.startswith("profilesvc.db")]
            assert len(files) == 3
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.in_process("takes the keys out of the memory of the process")
async def test_not_ready_without_an_active_key(app: Quart, http: httpx.AsyncClient, services: Services) -> None:
    assert (await http.get("/readyz")).json()["checks"]["signing_key"] is True
    services.signer.keyring.replace([])
    answer = await http.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["signing_key"]) == (503, False)
    await services.signing_keys.reload()
    assert (await http.get("/readyz")).status_code == 200


@pytest.mark.slow
@pytest.mark.in_process("has two processes of its own")
async def test_T12_three_rotations_while_requests_run(
    settings: Settings, clock: FrozenClock, as_service: AsService
) -> None:
    """Announce, activate, retire, remove, on two processes: no request fails, a token of 89 days works."""
    site = await as_service()
    own = settings.model_copy(update={"tokens": TokenSettings()})
    apps = [create_app(own, Runtime(clock, SeededEntropy(name))) for name in ("one", "two")]
    async with apps[0].test_app(), apps[1].test_app():
        drill = Drill(apps, site, clock)
        await drill.run(days=365)
        assert drill.failed == []
        assert drill.oldest == 89
        assert len(drill.signed_by) >= 4
        assert drill.seen == {"announced", "active", "retired", "removed"}
        assert await states(services_of(apps[0])) == ["active", "removed", "removed", "removed", "retired"]
        dead = (await granted(dial_of(apps[0]), site))["access_token"]
        await services_of(apps[1]).signing_keys.remove(kid_of(dead))
        alive = (await granted(dial_of(apps[0]), site))["access_token"]
        for app in apps:
            assert_error(await call(dial_of(app), dead), 401, "AUTH_INVALID_TOKEN")
            assert_ok(await call(dial_of(app), alive))


# A token is used every so many days until it is 89 days old, on one process and then on the other.
USED_EVERY = effort(3, 1)


class Drill:
    """A site on two processes, day by day; a grant every 30 days, and every token used until it is 89 days old."""

    def __init__(self, apps: list[Quart], site: Site, clock: FrozenClock) -> None:
        self._apps, self._site, self._clock = apps, site, clock
        self._tokens: dict[int, str] = {}
        self.failed: list[str] = []
        self.signed_by: set[str] = set()
        self.seen: set[str] = set()
        self.oldest = 0

    async def run(self, days: int) -> None:
        for day in range(days):
            turn = day % 2
            if day % 30 == 0:
                self._tokens[day] = (await granted(dial_of(self._apps[turn]), self._site))["access_token"]
                self.signed_by.add(kid_of(self._tokens[day]))
            self._tokens = {begun: token for begun, token in self._tokens.items() if day - begun <= 89}
            used = [begun for begun in self._tokens if (day - begun) % USED_EVERY == 89 % USED_EVERY]
            uses = [self._use(self._apps[(day + begun // 30) % 2], day, begun) for begun in used]
            half = len(uses) // 2
            await asyncio.gather(
                *uses[:half], services_of(self._apps[turn]).signing_keys.keep_schedule(), self._noon(), *uses[half:]
            )
            self._clock.advance(hours=12)
            await services_of(self._apps[1 - turn]).signing_keys.reload()
            self.seen |= set(await states(services_of(self._apps[turn])))

    async def _use(self, app: Quart, day: int, begun: int) -> None:
        async with client_of(app, self._tokens[begun]) as client:
            answer = await client.get("/api/v1/sync/history/111")
        self.oldest = max(self.oldest, day - begun)
        if answer.status_code != 200:
            self.failed.append(f"day {day}, token of day {begun}: {answer.text}")

    async def _noon(self) -> None:
        self._clock.advance(hours=12)
