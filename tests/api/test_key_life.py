"""A key from its first day to its last: deactivate, reactivate, billing, plan (A082, A119 to A122; D-27)."""

import asyncio

import httpx
import pytest

from api.keys import KEYS, listed, path, refusal
from conftest import ON_POSTGRES, AsService
from profilesvc.domain.time import FrozenClock, iso
from profilesvc.operations import operator
from profilesvc.services import audit, holds
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage import keys
from support.api import ALICE, Site, assert_error, assert_ok
from support.tokens import LOCATIONS, assert_bad_credentials, assert_bad_refresh, grant, refresh
from support.tokens import PATH as TOKEN


async def test_the_owner_switches_a_key_off_and_on(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    off = {
        "client_id": plugin.key["client_id"],
        "status": "deactivated",
        "deactivation_reason": "user_requested",
        "deactivated_at": iso(clock.now()),
    }
    assert assert_ok(await alice.post(path(plugin, "/deactivate"))) == off
    clock.advance(seconds=5)
    assert assert_ok(await alice.post(path(plugin, "/deactivate"))) == off
    details = assert_error(await plugin.http.get(LOCATIONS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert details["deactivation_reason"] == "user_requested"
    on = {**off, "status": "active", "deactivation_reason": None, "deactivated_at": None}
    for _ in range(2):
        assert assert_ok(await alice.post(path(plugin, "/reactivate"))) == on
    assert_ok(await plugin.http.get(LOCATIONS))  # tokens from before work again
    assert_ok(await http.post(TOKEN, json=refresh(plugin)))


@pytest.mark.parametrize("reason", ["billing_issue", "plan_downgrade", "security_concern"])
async def test_A119_the_owner_cannot_lift_the_holds_of_others(
    alice: httpx.AsyncClient, plugin: Site, services: Services, reason: str
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], reason)
    assert_ok(await alice.post(path(plugin, "/deactivate")))
    for _ in range(2):
        refused = await alice.post(path(plugin, "/reactivate"))
        details = assert_error(refused, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details["deactivation_reason"] == reason
        assert set(details) == {"deactivation_reason", "deactivated_at", "upgrade_url"}
    assert (await listed(alice, plugin))["deactivation_reason"] == reason


async def test_a_deactivated_key_can_be_revoked_and_seen(alice: httpx.AsyncClient, plugin: Site) -> None:
    assert_ok(await alice.post(path(plugin, "/deactivate")))
    assert_ok(await alice.get(f"/api/v1/api-keys/{plugin.key['client_id']}/status"))
    assert_ok(await alice.delete(path(plugin)))


async def test_an_expired_key_is_listed_as_a_revoked_one(
    alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    short = await as_service(expires_at="2026-01-03T00:00:00Z")
    clock.advance(days=1)
    assert assert_ok(await alice.get(KEYS))["credentials"] == []
    assert (await listed(alice, short))["status"] == "revoked"


async def test_A120_the_most_severe_of_several_holds_is_shown(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    client_id = plugin.key["client_id"]
    assert_ok(await alice.post(path(plugin, "/deactivate")))
    clock.advance(seconds=1)
    done = await key_service.deactivate(services, client_id, "billing_issue")
    assert (done.standing.deactivation_reason, done.standing.deactivated_at) == ("billing_issue", iso(clock.now()))
    lifted = await key_service.reactivate(services, client_id, "billing_issue")
    assert (lifted.lifted, lifted.remaining) == (["billing_issue"], ["user_requested"])
    assert (await listed(alice, plugin))["deactivation_reason"] == "user_requested"
    assert_error(await plugin.http.get(LOCATIONS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_A121_billing_events_late_or_twice_change_nothing(plugin: Site, services: Services) -> None:
    client_id = plugin.key["client_id"]

    async def failed(version: int) -> bool:
        return (await key_service.deactivate(services, client_id, "billing_issue", version=version)).changed

    async def paid(version: int) -> list[str]:
        return (await key_service.reactivate(services, client_id, "billing_issue", version=version)).lifted

    assert await failed(2)
    assert not await failed(2)
    assert await paid(1) == []
    assert_error(await plugin.http.get(LOCATIONS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert await paid(4) == ["billing_issue"]
    assert await paid(4) == []
    assert not await failed(3)
    assert_ok(await plugin.http.get(LOCATIONS))
    assert await failed(5)


async def test_A121_a_billing_event_of_a_user_holds_all_keys_and_new_ones(
    alice: httpx.AsyncClient, as_service: AsService, services: Services
) -> None:
    first, second = await as_service(), await as_service("locations/112")
    await key_service.deactivate(services, second.key["client_id"], "billing_issue", version=9)
    both = sorted([first.key["client_id"], second.key["client_id"]])

    assert (await holds.billing_event(services, ALICE, False, 3)).held == [first.key["client_id"]]
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "111"}
    new = assert_ok(await alice.post(KEYS, json=body), 201)
    held = assert_ok(await alice.get(KEYS))["credentials"]
    assert [entry["deactivation_reason"] for entry in held] == ["billing_issue"] * 3

    assert await holds.billing_event(services, ALICE, True, 2) == ([], [])
    assert await holds.billing_event(services, ALICE, False, 3) == ([], [])
    paid = await holds.billing_event(services, ALICE, True, 4)
    assert sorted(paid.lifted) == sorted([first.key["client_id"], new["client_id"]])
    await holds.billing_event(services, ALICE, False, 10)
    paid = await holds.billing_event(services, ALICE, True, 11)
    assert sorted(paid.lifted) == sorted([*both, new["client_id"]])
    assert_ok(await first.http.get(LOCATIONS))
    assert (await refusal(holds.billing_event(services, "no@example.com", True, 1)))[0] == "NOT_FOUND"


@ON_POSTGRES
async def test_a_billing_event_and_a_change_of_a_key_do_not_deadlock(plugin: Site, services: Services) -> None:
    """The one locks the user and then the key; the other the key, and its audit event refers to the user."""
    async with services.storage.write() as session:
        key = await keys.locked(session, plugin.key["client_id"], 1)
        assert key is not None
        billing = asyncio.create_task(holds.billing_event(services, ALICE, False, 7))
        await asyncio.sleep(0.5)
        await audit.record(services, session, "key.rolled", key.owner_id, key.id)
    assert (await billing).held == [plugin.key["client_id"]]


async def test_A122_a_security_concern_is_lifted_only_with_a_new_secret(
    alice: httpx.AsyncClient, plugin: Site, services: Services, http: httpx.AsyncClient
) -> None:
    client_id = plugin.key["client_id"]
    await key_service.deactivate(services, client_id, "user_requested")
    await key_service.deactivate(services, client_id, "security_concern")
    for reason in (None, "security_concern"):
        code, message = await refusal(key_service.reactivate(services, client_id, reason))
        assert code == "CONFLICT"
        assert "new secret" in message
    assert (await listed(alice, plugin))["deactivation_reason"] == "security_concern"

    done = await key_service.reactivate(services, client_id, roll=True)
    assert (done.standing.status, done.lifted, done.remaining) == (
        "active",
        ["security_concern", "user_requested"],
        [],
    )
    assert done.rolled is not None
    assert_bad_credentials(await http.post(TOKEN, json=grant(plugin)))
    assert assert_error(await plugin.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    assert_bad_refresh(await http.post(TOKEN, json=refresh(plugin)))
    assert_ok(await http.post(TOKEN, json=grant(plugin, client_secret=done.rolled.client_secret)))


async def test_another_hold_can_be_lifted_during_a_security_concern(plugin: Site, services: Services) -> None:
    for reason in ("billing_issue", "security_concern"):
        await key_service.deactivate(services, plugin.key["client_id"], reason)
    done = await key_service.reactivate(services, plugin.key["client_id"], "billing_issue")
    assert (done.standing.deactivation_reason, done.remaining) == ("security_concern", ["security_concern"])


async def test_an_active_key_that_is_reactivated_stays_active(plugin: Site, services: Services) -> None:
    done = await key_service.reactivate(services, plugin.key["client_id"])
    assert (done.standing.status, done.lifted, done.remaining, done.rolled) == ("active", [], [], None)


async def test_many_callers_at_once_put_a_hold_only_once(plugin: Site, services: Services) -> None:
    client_id = plugin.key["client_id"]
    done = await asyncio.gather(*(key_service.deactivate(services, client_id, "billing_issue") for _ in range(8)))
    assert sum(one.changed for one in done) == 1


async def test_a_hold_of_the_plan_ends_only_when_a_location_is_free(
    services: Services, clock: FrozenClock, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    clock.advance(seconds=1)
    last = await as_service("locations/119")
    client_id = last.key["client_id"]
    await operator.assign_plan(services, ALICE, "growth")  # 111, 112 and 113 are within
    assert (await refusal(key_service.reactivate(services, client_id)))[0] == "CONFLICT"
    assert (await refusal(key_service.reactivate(services, client_id, "plan_downgrade")))[0] == "CONFLICT"
    await key_service.deactivate(services, client_id, "billing_issue")
    done = await key_service.reactivate(services, client_id)
    assert (done.lifted, done.remaining) == (["billing_issue"], ["plan_downgrade"])
    assert done.standing.deactivation_reason == "plan_downgrade"

    assert await operator.unassign_location(services, "locations/114") == []
    assert await operator.unassign_location(services, "locations/113") == [client_id]
    assert_ok(await last.http.get(LOCATIONS))
    entries = {entry["name"]: entry for entry in assert_ok(await alice.get(LOCATIONS))["locations"]}
    assert (entries["locations/113"]["isAssigned"], entries["locations/113"]["businessId"]) == (False, None)


async def test_a_location_with_a_live_key_keeps_its_slot(services: Services, plugin: Site) -> None:
    assert (await refusal(operator.unassign_location(services, "locations/111")))[0] == "CONFLICT"
    for name in ("locations/119", "locations/999"):
        assert (await refusal(operator.unassign_location(services, name)))[0] == "NOT_FOUND"


async def test_a_revoked_key_frees_no_slot(
    services: Services, clock: FrozenClock, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    """A key that is revoked is usually replaced: its location must not lose its place meanwhile."""
    first = await as_service("locations/111")
    clock.advance(seconds=1)
    last = await as_service("locations/119")
    await operator.assign_plan(services, ALICE, "starter")
    assert_ok(await alice.delete(path(first)))
    assert (await listed(alice, last))["deactivation_reason"] == "plan_downgrade"
    await as_service("locations/111")


async def test_a_plan_hold_that_the_plan_does_not_ask_for_is_lifted(plugin: Site, services: Services) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "plan_downgrade")
    assert (await key_service.reactivate(services, plugin.key["client_id"])).standing.status == "active"


async def test_A082_a_suspension_ends_tokens_and_grants_until_the_user_is_resumed(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, services: Services
) -> None:
    await operator.suspend(services, ALICE)
    for client in (alice, plugin.http):
        assert assert_error(await client.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    assert_bad_credentials(await http.post(TOKEN, json=grant(plugin)))
    assert_bad_refresh(await http.post(TOKEN, json=refresh(plugin)))
    checked = await http.post("/api/v1/auth/validate-service-credentials", json=plugin.credentials)
    assert assert_ok(checked)["valid"] is False
    await operator.resume(services, ALICE)
    for client in (alice, plugin.http):
        assert_ok(await client.get(LOCATIONS))
    assert_ok(await http.post(TOKEN, json=refresh(plugin)))


async def test_A082_the_operator_reaches_the_keys_of_a_suspended_user(plugin: Site, services: Services) -> None:
    await operator.suspend(services, ALICE)
    assert (await key_service.deactivate(services, plugin.key["client_id"], "security_concern")).changed
    assert (await key_service.revoke(services, None, plugin.key["client_id"])).revoked


async def test_A082_a_logout_ends_user_tokens_and_no_service_token(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await operator.logout(services, ALICE)
    assert assert_error(await alice.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    assert_ok(await plugin.http.get(LOCATIONS))
