"""A new secret for a key: what it changes and what not (A117, A118; D-26)."""

import asyncio
from typing import Any

import httpx
import pytest

from api.keys import KEYS, WEEK, listed, path
from conftest import AsService, AsUser
from profilesvc.contract.keys import KeyRoll
from profilesvc.domain.time import DAY, FrozenClock, iso
from profilesvc.services import credentials
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage import keys
from support.api import BOB, Site, assert_error, assert_ok, fields
from support.tokens import LOCATIONS, assert_bad_credentials, assert_bad_refresh, grant, refresh
from support.tokens import PATH as TOKEN


async def test_a_roll_shows_a_new_secret_once_and_changes_nothing_else(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    before = await listed(alice, plugin)
    response = await alice.post(path(plugin, "/roll"), json={})
    data = assert_ok(response)
    assert response.headers["cache-control"] == "no-store"
    secret = data.pop("client_secret")
    assert len(secret) == 64
    assert secret != plugin.key["client_secret"]
    assert data.pop("warning")
    assert data == {
        "client_id": plugin.key["client_id"],
        "service_client_id": plugin.key["service_client_id"],
        "rolled_at": iso(clock.now()),
        "previous_secret_expires_at": iso(clock.now() + DAY),
    }
    assert await listed(alice, plugin) == before
    assert_ok(await plugin.http.get(LOCATIONS))


async def test_A117_an_invalid_overlap_is_rejected(alice: httpx.AsyncClient, plugin: Site) -> None:
    overlap: Any
    for overlap in (-1, WEEK + 1, "1", 1.5, True, None, [], 10**30):
        response = await alice.post(path(plugin, "/roll"), json={"overlap_seconds": overlap})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["overlap_seconds"], overlap
    response = await alice.post(path(plugin, "/roll"), json={"overlap_seconds": float(WEEK)})
    assert_ok(response)  # PHP writes whole numbers so


async def test_A117_a_third_live_secret_is_a_conflict(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock, http: httpx.AsyncClient
) -> None:
    first = assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 60}))
    refused = await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 60})
    details = assert_error(refused, 409, "CONFLICT")
    assert details == {"previous_secret_expires_at": first["previous_secret_expires_at"]}
    assert_ok(await http.post(TOKEN, json=grant(plugin)))
    assert_ok(await http.post(TOKEN, json=grant(plugin, client_secret=first["client_secret"])))
    clock.advance(seconds=60)
    assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 60}))


async def test_A117_only_one_of_several_simultaneous_rolls_succeeds(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    answers = await asyncio.gather(*(alice.post(path(plugin, "/roll"), json={}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7


async def test_A117_only_the_operator_can_roll_a_deactivated_key(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
    response = await alice.post(path(plugin, "/roll"), json={})
    assert assert_error(response, 409, "CONFLICT") == {"deactivation_reason": "billing_issue"}
    body = KeyRoll()
    assert (await credentials.roll(services, None, plugin.key["client_id"], body)).client_secret
    assert (await listed(alice, plugin))["status"] == "deactivated"


@pytest.mark.parametrize("overlap", [1, 60, WEEK])
async def test_A118_the_old_secret_is_valid_to_the_exact_second(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, clock: FrozenClock, overlap: int
) -> None:
    rolled = assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": overlap}))
    clock.advance(seconds=overlap - 1)
    assert_ok(await http.post(TOKEN, json=grant(plugin)))
    clock.advance(milliseconds=999)
    assert_ok(await http.post(TOKEN, json=grant(plugin)))
    clock.advance(milliseconds=1)
    assert_bad_credentials(await http.post(TOKEN, json=grant(plugin)))
    assert_ok(await http.post(TOKEN, json=grant(plugin, client_secret=rolled["client_secret"])))


async def test_a_roll_without_an_overlap_ends_all_secrets_and_tokens_at_once(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient
) -> None:
    second = assert_ok(await alice.post(path(plugin, "/roll"), json={}))["client_secret"]
    third = assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 0}))["client_secret"]
    for secret in (plugin.key["client_secret"], second):
        assert_bad_credentials(await http.post(TOKEN, json=grant(plugin, client_secret=secret)))
    assert assert_error(await plugin.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    assert_bad_refresh(await http.post(TOKEN, json=refresh(plugin)))
    assert_ok(await http.post(TOKEN, json=grant(plugin, client_secret=third)))


async def test_roll_deactivate_and_reactivate_need_a_live_key_of_the_caller(
    alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService, clock: FrozenClock
) -> None:
    """The same answer for unknown, foreign, revoked and expired, by every one of the three routes."""
    gone, short = await as_service(), await as_service(expires_at="2026-01-03T00:00:00Z")
    bob = await as_user(BOB)
    foreign = await as_service()
    assert_ok(await alice.delete(path(gone)))
    clock.advance(days=1)
    answers = [
        await client.post(f"{KEYS}/{client_id}/{what}", json={})
        for what in ("roll", "deactivate", "reactivate")
        for client, client_id in [
            (alice, "svcid_1_1_nobody"),
            (bob, foreign.key["client_id"]),
            (alice, gone.key["client_id"]),
            (alice, short.key["client_id"]),
        ]
    ]
    for answer in answers:
        assert_error(answer, 404, "NOT_FOUND")
        assert answer.content == answers[0].content


async def test_a_grant_that_overlaps_a_roll_without_overlap_is_invalid(
    plugin: Site, services: Services, alice: httpx.AsyncClient
) -> None:
    """The epoch is read before the secrets: a roll in between leaves a token of the old epoch, or none."""
    async with services.storage.read() as session:
        before = await keys.state(session, plugin.key["client_id"])
    assert before is not None
    assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 0}))
    async with services.storage.read() as session:
        after = await keys.state(session, plugin.key["client_id"])
    assert after is not None
    assert after.epoch == before.epoch + 1
