"""POST /oauth2/introspect: the truth about one's own tokens, nothing about anybody else's (D-16, RFC 7662)."""

from datetime import timedelta

import httpx
import pytest
from quart import Quart

from conftest import AsService, AsUser
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage import keys, revocations, signing_keys, users
from support.api import ALICE, BOB, CAROL, Site, assert_ok
from support.identity.oauth import (
    INACTIVE,
    INTROSPECT,
    OFFLINE,
    REVOKE,
    TOKEN,
    assert_oauth_error,
    assert_tokens,
    basic,
    introspected,
)
from support.tokens import claims


async def asked_by_user(user: httpx.AsyncClient, token: str) -> dict[str, object]:
    response = await user.post(INTROSPECT, data={"token": token})
    assert response.status_code == 200, response.text
    told: dict[str, object] = response.json()
    return told


def bearer(client: httpx.AsyncClient) -> str:
    return str(client.headers["Authorization"]).removeprefix("Bearer ")


async def test_introspection_describes_an_access_token(http: httpx.AsyncClient, plugin: Site) -> None:
    token = plugin.tokens["access_token"]
    found = claims(token)
    told = await introspected(http, plugin, token)
    assert told == {
        "active": True,
        "scope": "business.read business.write",
        "client_id": plugin.key["client_id"],
        "token_type": "Bearer",
        **{name: found[name] for name in ("exp", "iat", "sub", "aud", "iss", "jti")},
    }


async def test_introspection_shows_that_a_refresh_token_is_no_bearer_token(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    told = await introspected(http, plugin, plugin.tokens["refresh_token"])
    assert (told["active"], told["token_type"]) == (True, "refresh_token")
    assert told["aud"] == "http://profiles.test/api/v1/auth/token"


async def test_a_type_hint_does_not_change_the_introspection(http: httpx.AsyncClient, plugin: Site) -> None:
    for token in (plugin.tokens["access_token"], plugin.tokens["refresh_token"]):
        plain = await introspected(http, plugin, token)
        for hint in ("access_token", "refresh_token", "nonsense", "\0"):
            assert await introspected(http, plugin, token, token_type_hint=hint) == plain


async def test_introspection_accepts_key_credentials_or_a_user_token_but_not_both(
    http: httpx.AsyncClient, plugin: Site, alice: httpx.AsyncClient
) -> None:
    form = {"token": plugin.tokens["access_token"]}
    by_basic = await http.post(INTROSPECT, data=form, headers=basic(plugin))
    by_form = await http.post(INTROSPECT, data={**form, **plugin.credentials})
    by_user = await alice.post(INTROSPECT, data=form)
    assert by_basic.json() == by_form.json() == by_user.json()
    assert_oauth_error(await http.post(INTROSPECT, data=form), 401, "invalid_client")
    assert_oauth_error(await plugin.http.post(INTROSPECT, data=form), 401, "invalid_token")
    twice = await alice.post(INTROSPECT, data={**form, **plugin.credentials})
    assert_oauth_error(twice, 400, "invalid_request")
    garbage = await http.post(INTROSPECT, data=form, headers={"Authorization": "Bearer garbage"})
    assert_oauth_error(garbage, 401, "invalid_token")
    assert_oauth_error(await http.post(INTROSPECT, headers=basic(plugin), data={"x": "y"}), 400, "invalid_request")


async def test_introspection_does_not_count_as_use_of_the_key(
    http: httpx.AsyncClient, plugin: Site, alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    async def last_used() -> object:
        await services.background.drain()
        listed = assert_ok(await alice.get("/api/v1/developer/credentials"))["credentials"]
        return listed[0]["last_used_at"]

    before = await last_used()
    clock.advance(hours=1)
    assert (await introspected(http, plugin, plugin.tokens["access_token"]))["active"]
    assert await last_used() == before


@pytest.mark.parametrize(("end", "refresh_token_too"), [("jti", False), ("fam", True), ("kid", False)])
async def test_a_token_is_inactive_after_its_revocation_or_the_removal_of_its_key(
    http: httpx.AsyncClient,
    plugin: Site,
    services: Services,
    clock: FrozenClock,
    end: str,
    refresh_token_too: bool,
) -> None:
    """It is the state at this moment, as a request with the token would find it (D-14)."""
    token = plugin.tokens["access_token"]
    revoked = dict(services.signer.verify(token, "at+jwt", clock.now()))[end]
    assert isinstance(revoked, str)
    assert (await introspected(http, plugin, token))["active"] is True
    async with services.storage.write() as session:
        if end == "kid":
            await signing_keys.remove(session, revoked, clock.now())
        else:
            await revocations.add(session, 1, "token", revoked, clock.now(), clock.now() + DAY)
    assert await introspected(http, plugin, token) == INACTIVE
    other = await introspected(http, plugin, plugin.tokens["refresh_token"])
    assert other["active"] is not refresh_token_too


async def test_the_removal_of_the_key_of_refresh_tokens_ends_no_access_token(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    kid = services.signer.verify(plugin.tokens["refresh_token"], "rt+jwt", clock.now())["kid"]
    async with services.storage.write() as session:
        await signing_keys.remove(session, kid, clock.now())
    assert await introspected(http, plugin, plugin.tokens["refresh_token"]) == INACTIVE
    assert (await introspected(http, plugin, plugin.tokens["access_token"]))["active"] is True


async def test_a_new_epoch_of_a_key_ends_all_its_tokens(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    async with services.storage.write() as session:
        key = await keys.state(session, plugin.key["client_id"])
        assert key is not None
        await keys.raise_epoch(session, key.owner_id, key.id)
    for token in (plugin.tokens["access_token"], plugin.tokens["refresh_token"]):
        assert await introspected(http, plugin, token) == INACTIVE


async def test_a_token_is_inactive_from_the_second_in_which_it_expires(
    http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    for name, life in (("refresh_token", timedelta(days=30)), ("access_token", timedelta(days=60))):
        clock.advance(milliseconds=life / timedelta(milliseconds=1) - 1_000)
        assert (await introspected(http, plugin, plugin.tokens[name]))["active"] is True
        clock.advance(seconds=1)
        assert await introspected(http, plugin, plugin.tokens[name]) == INACTIVE


async def test_a_deactivated_key_has_no_active_tokens_and_cannot_authenticate(
    http: httpx.AsyncClient, plugin: Site, alice: httpx.AsyncClient, services: Services
) -> None:
    client = plugin.key["client_id"]
    await key_service.deactivate(services, client, "plan_downgrade")
    for token in (plugin.tokens["access_token"], plugin.tokens["refresh_token"]):
        assert await asked_by_user(alice, token) == INACTIVE
    own = await http.post(INTROSPECT, data={"token": plugin.tokens["access_token"]}, headers=basic(plugin))
    assert assert_oauth_error(own, 401, "invalid_client")["deactivation_reason"] == "plan_downgrade"


async def test_a_revoked_key_has_no_active_tokens_and_a_suspended_owner_is_rejected(
    as_service: AsService, alice: httpx.AsyncClient, as_user: AsUser, services: Services
) -> None:
    gone, bobs = await as_service(), await as_service("locations/211")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{gone.key['client_id']}"))
    assert await asked_by_user(alice, gone.tokens["access_token"]) == INACTIVE
    bob = await as_user(BOB)
    async with services.storage.write() as session:
        await users.update_user(session, 2, suspended_at=1)
    response = await bob.post(INTROSPECT, data={"token": bobs.tokens["access_token"]})
    assert_oauth_error(response, 401, "invalid_token")


async def test_only_the_newest_refresh_token_is_active(http: httpx.AsyncClient, plugin: Site) -> None:
    generations = [plugin.tokens]
    for _ in range(3):
        form = {"grant_type": "refresh_token", "refresh_token": generations[-1]["refresh_token"]}
        generations.append(assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin))))
    told = [await introspected(http, plugin, pair["refresh_token"]) for pair in generations]
    assert [answer["active"] for answer in told] == [False, False, False, True]
    assert told[:3] == [INACTIVE] * 3
    access = [await introspected(http, plugin, pair["access_token"]) for pair in generations]
    assert all(answer["active"] for answer in access)  # each to its own end (D-10)


async def test_introspection_shows_the_scope_that_a_token_was_granted(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    narrow = await as_service(requested=["business.read"])
    assert (await introspected(http, narrow, narrow.tokens["access_token"]))["scope"] == "business.read"


async def test_a_key_sees_no_tokens_of_other_keys(http: httpx.AsyncClient, as_service: AsService) -> None:
    """Another key of the same owner, and one of another owner, in both directions."""
    sites = [await as_service(), await as_service(), await as_service("locations/211")]
    for asking in sites:
        for asked in sites:
            for token in (asked.tokens["access_token"], asked.tokens["refresh_token"]):
                told = await introspected(http, asking, token)
                assert told["active"] is (asking is asked)
                assert told["active"] or told == INACTIVE


async def test_a_user_sees_the_tokens_of_their_keys_and_their_own(
    app: Quart, as_user: AsUser, as_service: AsService, http: httpx.AsyncClient
) -> None:
    alice, bob, carol = [await as_user(email) for email in (ALICE, BOB, CAROL)]
    keys_of = {alice: await as_service(), bob: await as_service("locations/211")}
    for user in (alice, bob, carol):
        for other in (alice, bob, carol):
            told = await asked_by_user(user, bearer(other))
            assert told["active"] is (user is other)
            assert told["active"] or told == INACTIVE
        for owner, site in keys_of.items():
            for token in (site.tokens["access_token"], site.tokens["refresh_token"]):
                told = await asked_by_user(user, token)
                assert told["active"] is (user is owner)
                assert told["active"] or told == INACTIVE
    assert await introspected(http, keys_of[alice], bearer(alice)) == INACTIVE


async def test_a_user_sees_their_user_token(alice: httpx.AsyncClient) -> None:
    told = await asked_by_user(alice, bearer(alice))
    assert told["scope"] == "business.read business.write"
    assert (told["sub"], told["client_id"], told["token_type"]) == ("1", "dashboard", "Bearer")
    assert not set(told) & {"username", "email", "name"}


async def test_strings_that_are_not_tokens_are_inactive(http: httpx.AsyncClient, plugin: Site) -> None:
    header, payload, signature = plugin.tokens["access_token"].split(".")
    forged = f"{header}.{payload}.{signature[:-8]}AAAAAAAA"
    for token in ("x", "a.b.c", forged, "x" * 9_000, "\0", "é", " ", f"{plugin.tokens['access_token']} ", "null"):
        assert await introspected(http, plugin, token) == INACTIVE


async def test_introspection_changes_nothing(http: httpx.AsyncClient, plugin: Site) -> None:
    for _ in range(3):
        assert (await introspected(http, plugin, plugin.tokens["refresh_token"]))["active"]
    form = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin)))
    assert (await http.post(REVOKE, data={"token": "x"}, headers=basic(plugin))).json() == {}
    assert_tokens(await http.post(TOKEN, data=OFFLINE, headers=basic(plugin)))
