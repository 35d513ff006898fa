"""The sync switch and the verification of a location over HTTP."""

from typing import Any

import httpx
import pytest

from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import switch_sync
from support.api import Site, assert_error, assert_ok, fields
from support.provider.drive import drift, fail, heal

LIST = "/api/v1/external-business/locations"


PIER = "locations/111"


async def test_the_sync_switch_returns_the_fields_of_the_contract(alice: httpx.AsyncClient) -> None:
    for enabled in (True, True, False, False, True):
        response = await alice.patch(f"{LIST}/locations/112/sync", json={"syncEnabled": enabled})
        assert assert_ok(response) == {"locationId": "locations/112", "syncEnabled": enabled}
        entry = next(e for e in assert_ok(await alice.get(LIST))["locations"] if e["name"] == "locations/112")
        assert entry["syncEnabled"] is enabled


async def test_A138_sync_can_be_switched_on_only_for_a_verified_location(alice: httpx.AsyncClient) -> None:
    response = await alice.patch(f"{LIST}/113/sync", json={"syncEnabled": True})
    details = assert_error(response, 409, "LOCATION_NOT_VERIFIED")
    assert details == {"verificationState": "VERIFICATION_REQUESTED"}
    assert_ok(await alice.patch(f"{LIST}/113/sync", json={"syncEnabled": False}))


async def test_sync_can_be_switched_on_only_by_a_plan_with_sync_and_off_by_any(
    services: Services, alice: httpx.AsyncClient
) -> None:
    """Every plan of the packaged catalogue has sync, so the operation is asked directly."""
    plan = services.plans["pro"].model_copy(update={"sync": False})
    without = AllowedLocation("locations/112", 1, plan, "accounts/1", None)
    with pytest.raises(ServiceError) as refusal:
        await switch_sync(services, without, True)
    assert refusal.value.kind is PLAN_RESTRICTION
    assert (await switch_sync(services, without, False)).syncEnabled is False


async def test_A139_the_sync_switch_accepts_one_boolean_and_nothing_else(alice: httpx.AsyncClient) -> None:
    value: Any
    for value in ("true", 1, 0, None, [], {}, "on"):
        response = await alice.patch(f"{LIST}/112/sync", json={"syncEnabled": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["syncEnabled"], value
    missing = await alice.patch(f"{LIST}/112/sync", json={})
    assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["syncEnabled"]
    extra = await alice.patch(f"{LIST}/112/sync", json={"syncEnabled": True, "isVerified": True})
    assert fields(assert_error(extra, 400, "VALIDATION_ERROR")) == ["isVerified"]
    typo = await alice.patch(f"{LIST}/112/sync", json={"syncenabled": True})
    assert set(fields(assert_error(typo, 400, "VALIDATION_ERROR"))) == {"syncEnabled", "syncenabled"}


async def test_a_key_switches_sync_only_of_its_own_location(plugin: Site) -> None:
    assert_ok(await plugin.http.patch(f"{LIST}/111/sync", json={"syncEnabled": False}))
    response = await plugin.http.patch(f"{LIST}/112/sync", json={"syncEnabled": True})
    assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")


# Row by row of D-73: what the provider says, and what it means.
VERIFICATIONS: list[tuple[dict[str, Any], list[dict[str, Any]], str]] = [
    ({"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}, [], "VERIFIED"),
    ({"hasVoiceOfMerchant": True, "complyWithGuidelines": {}}, [], "VERIFIED"),
    ({"complyWithGuidelines": {"recommendationReason": "X"}}, [], "SUSPENDED"),
    ({"resolveOwnershipConflict": {}}, [], "DUPLICATE"),
    ({"waitForVoiceOfMerchant": {}}, [], "VERIFICATION_REQUESTED"),
    ({"verify": {"hasPendingVerification": True}}, [], "VERIFICATION_REQUESTED"),
    ({"verify": {}}, [{"state": "COMPLETED"}, {"state": "PENDING"}], "VERIFICATION_REQUESTED"),
    ({"verify": {}}, [{"state": "PENDING"}, {"state": "FAILED"}], "UNVERIFIED"),
    ({"verify": {}}, [], "UNVERIFIED"),
]


async def test_a_refresh_returns_the_verification_state_of_the_provider(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for voice, verifications, state in VERIFICATIONS:
        dated = [
            {
                "name": f"locations/113/verifications/{n}",
                "method": "SMS",
                "createTime": f"2026-01-0{n}T00:00:00Z",
                **v,
            }
            for n, v in enumerate(verifications, 1)
        ]
        await drift(emulator, voice_of_merchant={"locations/113": voice}, verifications={"locations/113": dated})
        data = assert_ok(await alice.post(f"{LIST}/113/refresh-verification"))
        assert data == {
            "locationId": "locations/113",
            "isVerified": state == "VERIFIED",
            "verificationState": state,
        }
        listed = next(e for e in assert_ok(await alice.get(LIST))["locations"] if e["name"] == "locations/113")
        assert listed["locationState"]["isVerified"] is (state == "VERIFIED")


async def test_sync_can_be_switched_on_after_a_refresh_of_the_verification(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    switch = {"syncEnabled": True}
    assert_error(await alice.patch(f"{LIST}/113/sync", json=switch), 409, "LOCATION_NOT_VERIFIED")
    await drift(emulator, voice_of_merchant={"locations/113": {"hasVoiceOfMerchant": True}})
    assert_error(await alice.patch(f"{LIST}/113/sync", json=switch), 409, "LOCATION_NOT_VERIFIED")
    assert_ok(await alice.post(f"{LIST}/113/refresh-verification"))
    assert_ok(await alice.patch(f"{LIST}/113/sync", json=switch))


async def test_A138_a_lost_verification_switches_sync_off(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, voice_of_merchant={PIER: {"complyWithGuidelines": {}}})
    assert assert_ok(await alice.post(f"{LIST}/111/refresh-verification"))["verificationState"] == "SUSPENDED"
    entry = next(e for e in assert_ok(await alice.get(LIST))["locations"] if e["name"] == PIER)
    assert (entry["syncEnabled"], entry["locationState"]) == (False, {"isVerified": False})
    details = assert_error(await alice.post("/api/v1/sync/111", json={"title": "x"}), 409, "LOCATION_NOT_VERIFIED")
    assert details == {"verificationState": "SUSPENDED"}
    await drift(emulator, voice_of_merchant={PIER: {"hasVoiceOfMerchant": True}})
    assert_ok(await alice.post(f"{LIST}/111/refresh-verification"))
    assert_error(await alice.post("/api/v1/sync/111", json={"title": "x"}), 409, "SYNC_DISABLED")


async def test_a_refresh_of_the_verification_ignores_a_body(alice: httpx.AsyncClient) -> None:
    for options in ({"content": b"\xff{"}, {"data": {"a": "b"}}, {"json": {"isVerified": False}}):
        assert assert_ok(await alice.post(f"{LIST}/111/refresh-verification", **options))["isVerified"] is True


async def test_A142_a_refresh_reports_a_failure_of_the_provider_and_changes_nothing(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    fault: Any
    for fault, reason, retryable in [
        ({"status": 400}, "rejected", False),
        ({"status": 401}, None, None),
        ({"status": 403}, "rejected", False),
        ({"status": 429}, "rate_limited", True),
        ({"status": 500}, "unavailable", True),
        ({"status": 503}, "unavailable", True),
        ({"kind": "broken_body"}, "unavailable", True),
        ({"kind": "disconnect"}, "unavailable", True),
        ({"kind": "redirect"}, "unavailable", False),
        ({"kind": "huge"}, "unavailable", False),
    ]:
        await fail(emulator, **fault)
        response = await alice.post(f"{LIST}/111/refresh-verification")
        details = assert_error(response, 502, "PROVIDER_API_ERROR")
        assert details["reason"] in ("rejected", "unavailable", "timeout", "rate_limited")
        if reason is not None:
            assert (details["reason"], details["retryable"]) == (reason, retryable), fault
        await heal(emulator)
    entry = next(e for e in assert_ok(await alice.get(LIST))["locations"] if e["name"] == PIER)
    assert (entry["syncEnabled"], entry["locationState"]) == (True, {"isVerified": True})  # nothing changed
