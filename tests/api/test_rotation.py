"""Refresh rotation (D-10): each token is valid for one exchange, and a copy ends the family."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from quart import Quart
from sqlalchemy import func, select

from conftest import AsService, client_of, make_settings
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import DAY, SECOND, FrozenClock
from profilesvc.operations import housekeeping
from profilesvc.services import rotation
from profilesvc.services.context import Services
from profilesvc.settings import Settings, TokenSettings
from profilesvc.storage.tables import audit
from profilesvc.storage.tables import families as family_table
from profilesvc.storage.tables import revocations as revoked_table
from support.api import Site, assert_error, assert_ok
from support.tokens import LOCATIONS, PATH, assert_bad_refresh, claims, refresh

Pair = dict[str, Any]


async def exchange(http: httpx.AsyncClient, token: str) -> httpx.Response:
    return await http.post(PATH, json={"grant_type": "refresh_token", "refresh_token": token})


async def exchanged(http: httpx.AsyncClient, pair: Pair) -> Pair:
    data: Pair = assert_ok(await exchange(http, pair["refresh_token"]))
    return data


async def bearer(http: httpx.AsyncClient, pair: Pair) -> httpx.Response:
    return await http.get(LOCATIONS, headers={"Authorization": f"Bearer {pair['access_token']}"})


async def assert_family_ended(http: httpx.AsyncClient, *pairs: Pair) -> None:
    """Every token of these pairs is worth nothing, and says so."""
    for pair in pairs:
        assert assert_error(await bearer(http, pair), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
        assert_bad_refresh(await exchange(http, pair["refresh_token"]))


async def events(services: Services) -> list[str]:
    async with services.storage.read() as session:
        query = select(audit.c.event, audit.c.times).where(audit.c.event.like("token.refresh%"))
        rows = await session.execute(query.order_by(audit.c.at, audit.c.id))
        return [row.event for row in rows for _ in range(row.times)]


async def test_A037_an_exchange_rotates_and_the_old_access_token_stays_valid(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    successor = await exchanged(http, plugin.tokens)
    assert successor["refresh_token"] != plugin.tokens["refresh_token"]
    assert_ok(await bearer(http, plugin.tokens))  # a parallel worker still holds it
    assert_ok(await bearer(http, successor))
    assert await events(services) == ["token.refreshed"]


async def test_A038_a_repeat_within_the_grace_returns_the_identical_pair(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    first = await exchange(http, plugin.tokens["refresh_token"])
    assert_ok(await bearer(http, first.json()["data"]))  # using the access token is no exchange
    clock.advance(seconds=30)
    again = await exchange(http, plugin.tokens["refresh_token"])
    assert assert_ok(again) == assert_ok(first)
    assert again.content == first.content
    assert_ok(await bearer(http, again.json()["data"]))
    assert await events(services) == ["token.refreshed", "token.refresh_replayed"]


async def test_A039_a_repeat_after_the_grace_ends_the_family(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    successor = await exchanged(http, plugin.tokens)
    clock.advance(seconds=30, milliseconds=1)
    assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))
    await assert_family_ended(http, plugin.tokens, successor)
    assert (await events(services))[:2] == ["token.refreshed", "token.refresh_reuse"]


async def test_A040_a_repeat_ends_the_family_if_the_successor_was_exchanged(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    successor = await exchanged(http, plugin.tokens)
    newest = await exchanged(http, successor)
    assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))
    await assert_family_ended(http, plugin.tokens, successor, newest)


async def test_A041_an_older_token_ends_the_family_after_three_quick_rotations(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    pairs = [plugin.tokens]
    for _ in range(3):
        pairs.append(await exchanged(http, pairs[-1]))
    assert_bad_refresh(await exchange(http, pairs[1]["refresh_token"]))
    await assert_family_ended(http, *pairs)


async def test_A042_fifty_simultaneous_exchanges_get_one_successor(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    answers = await asyncio.gather(*(exchange(http, plugin.tokens["refresh_token"]) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sorted(await events(services)) == ["token.refresh_replayed"] * 49 + ["token.refreshed"]
    async with services.storage.read() as session:
        assert list((await session.execute(select(family_table.c.generation))).scalars()) == [1]


async def test_A043_an_expired_token_does_not_end_the_family(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    successor = await exchanged(http, plugin.tokens)
    clock.advance(days=30)
    response = await exchange(http, plugin.tokens["refresh_token"])
    assert_bad_refresh(response, expired=True)
    assert_ok(await bearer(http, successor))
    assert await events(services) == ["token.refreshed"]


async def test_A046_an_exchange_with_the_id_of_another_key_has_no_effect(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    site, other = await as_service(), await as_service()
    successor = await exchanged(http, site.tokens)
    wrong = refresh(site, client_id=other.key["client_id"])
    assert_bad_refresh(await http.post(PATH, json=wrong))
    assert_ok(await bearer(http, successor))
    assert_ok(await exchange(http, successor["refresh_token"]))


async def test_A052_another_process_repeats_a_lost_response(
    http: httpx.AsyncClient, plugin: Site, settings: Settings, clock: FrozenClock
) -> None:
    lost = await exchange(http, plugin.tokens["refresh_token"])
    other = create_app(settings, Runtime(clock, SeededEntropy("another process")))
    async with other.test_app(), client_of(other) as elsewhere:
        again = await exchange(elsewhere, plugin.tokens["refresh_token"])
    assert again.content == lost.content


async def test_the_end_of_a_family_does_not_end_others_of_the_key(http: httpx.AsyncClient, plugin: Site) -> None:
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    other = assert_ok(await http.post(PATH, json=grant))
    await exchanged(http, await exchanged(http, plugin.tokens))
    assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))
    assert_ok(await bearer(http, other))
    assert_ok(await exchange(http, other["refresh_token"]))


async def test_a_generation_that_was_never_issued_has_no_effect(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    found = claims(plugin.tokens["refresh_token"])
    ahead = services.signer.issue("rt+jwt", {**found, "gen": 5}, services.clock.now(), 60)
    assert_bad_refresh(await exchange(http, ahead))
    assert_ok(await exchange(http, plugin.tokens["refresh_token"]))
    assert_bad_refresh(await exchange(http, ahead))
    assert_ok(await bearer(http, plugin.tokens))


async def test_reuse_during_an_exchange_ends_the_family(http: httpx.AsyncClient, plugin: Site) -> None:
    successor = await exchanged(http, await exchanged(http, plugin.tokens))
    thief, owner = await asyncio.gather(
        exchange(http, plugin.tokens["refresh_token"]), exchange(http, successor["refresh_token"])
    )
    assert_bad_refresh(thief)
    pairs = [successor] + ([owner.json()["data"]] if owner.status_code == 200 else [])
    await assert_family_ended(http, plugin.tokens, *pairs)


async def test_a_family_of_tokens_ends_after_a_year(http: httpx.AsyncClient, plugin: Site, clock: FrozenClock) -> None:
    started, pair = clock.now(), plugin.tokens
    for _ in range(12):
        clock.advance(days=29)
        pair = await exchanged(http, pair)
    end = (started + rotation.FAMILY_LIFETIME) // SECOND
    assert pair["refresh_expires_in"] == end - clock.now() // SECOND == 17 * DAY // SECOND
    assert claims(pair["refresh_token"])["exp"] == end
    clock.advance(days=17)
    assert_bad_refresh(await exchange(http, pair["refresh_token"]), expired=True)


@pytest.mark.parametrize("grace", [0, 60])
async def test_the_grace_of_an_exchange_is_a_setting(
    settings: Settings, world: Runtime, plugin: Site, grace: int
) -> None:
    tokens = TokenSettings(signing_key_file=settings.tokens.signing_key_file, refresh_grace_seconds=grace)
    other = create_app(make_settings(settings.data_dir, settings.database_url, tokens=tokens), world)
    assert isinstance(world.clock, FrozenClock)
    async with other.test_app(), client_of(other) as http:
        first = await exchange(http, plugin.tokens["refresh_token"])
        world.clock.advance(seconds=grace)
        again = await exchange(http, plugin.tokens["refresh_token"])
        assert again.content == first.content
        world.clock.advance(milliseconds=1)
        assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))


@pytest.mark.in_process("changes the settings of the app")
async def test_a_token_from_before_a_shorter_lifetime_is_exchanged_once(
    http: httpx.AsyncClient, app: Quart, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    shorter = services.settings.model_copy(update={"tokens": TokenSettings(refresh_ttl_seconds=DAY // SECOND)})
    app.extensions["profilesvc"] = replace(services, settings=shorter)
    await exchanged(http, plugin.tokens)
    clock.advance(days=3)
    await housekeeping.run_once(services)
    assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))


async def test_the_database_has_no_token_and_no_expired_rows(
    http: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    successor = await exchanged(http, await exchanged(http, plugin.tokens))
    assert_bad_refresh(await exchange(http, plugin.tokens["refresh_token"]))
    async with services.storage.read() as session:
        stored = (await session.execute(select(family_table.c.successor))).scalar_one()
    assert successor["refresh_token"].split(".")[1] not in stored
    clock.advance(days=31)
    await housekeeping.run_once(services)
    async with services.storage.read() as session:
        assert (await session.execute(select(func.count()).select_from(family_table))).scalar_one() == 0
        assert (await session.execute(select(func.count()).select_from(revoked_table))).scalar_one() == 1
    assert_error(await bearer(http, successor), 401, "AUTH_INVALID_TOKEN")
