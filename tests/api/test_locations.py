"""Locations over HTTP: list, read, the sync switch, verification."""

from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from conftest import START, AsService, AsUser
from drive import calls, drift, fail, forget_calls, heal
from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.world import FrozenClock
from profilesvc.services.context import Reached, Services
from profilesvc.services.locations import switch_sync
from profilesvc.storage.tables import locations
from support import BOB, CAROL, Site, assert_error, assert_ok, fields

LIST = "/api/v1/external-business/locations"
PIER = "locations/111"
PIER_ADDRESS = {
    "regionCode": "JP",
    "languageCode": "ja",
    "postalCode": "231-0002",
    "administrativeArea": "神奈川県",
    "locality": "横浜市",
    "sublocality": "中区",
    "addressLines": ["海岸通1丁目1-4 桟橋ビル1階"],
}
BY_TITLE = ["locations/114", "locations/113", "locations/111", "locations/112", "locations/119"]


def names(data: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in data["locations"]]


class TestList:
    async def test_entries_carry_every_member_of_the_contract(self, alice: httpx.AsyncClient) -> None:
        data = assert_ok(await alice.get(LIST))
        assert set(data) == {"locations", "pagination"}
        entries = {entry["name"]: entry for entry in data["locations"]}
        assert entries[PIER] == {
            "name": PIER,
            "title": "Harbour Coffee, Pier",
            "storefrontAddress": PIER_ADDRESS,
            "isAssigned": True,
            "businessId": 10,
            "businessName": "Harbour Coffee",
            "locationState": {"isVerified": True},
            "syncEnabled": True,
        }
        unassigned = entries["locations/119"]
        assert (unassigned["isAssigned"], unassigned["businessId"], unassigned["businessName"]) == (False, None, None)
        assert entries["locations/113"]["locationState"] == {"isVerified": False}
        assert entries["locations/112"]["syncEnabled"] is False

    async def test_defaults_to_all_on_the_first_page_of_twenty_by_title(self, alice: httpx.AsyncClient) -> None:
        data = assert_ok(await alice.get(LIST))
        assert names(data) == BY_TITLE
        assert data["pagination"] == {"page": 1, "limit": 20, "totalCount": 5, "hasMore": False}

    async def test_shows_the_callers_locations_alone(self, as_user: AsUser) -> None:
        for email, expected in [(BOB, ["locations/211", "locations/219"]), (CAROL, ["locations/311"])]:
            data = assert_ok(await (await as_user(email)).get(LIST))
            assert names(data) == expected
            assert data["pagination"]["totalCount"] == len(expected)

    async def test_type(self, alice: httpx.AsyncClient, as_user: AsUser) -> None:
        data = assert_ok(await alice.get(LIST, params={"type": "unassigned"}))
        assert names(data) == ["locations/119"]
        assert data["pagination"]["totalCount"] == 1
        assert names(assert_ok(await alice.get(LIST, params={"type": "all"}))) == BY_TITLE
        assert names(assert_ok(await (await as_user(CAROL)).get(LIST, params={"type": "unassigned"}))) == []
        for value in ("assigned", "ALL", "", "all,unassigned"):
            response = await alice.get(LIST, params={"type": value})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["type"], value

    async def test_pages_without_a_gap_or_a_repeat(self, alice: httpx.AsyncClient) -> None:
        seen: list[str] = []
        for page in (1, 2, 3, 4):
            data = assert_ok(await alice.get(LIST, params={"page": page, "limit": 2}))
            assert data["pagination"] == {"page": page, "limit": 2, "totalCount": 5, "hasMore": page < 3}
            seen += names(data)
        assert seen == BY_TITLE
        far = assert_ok(await alice.get(LIST, params={"page": 999_999_999, "limit": 100}))
        assert far["locations"] == []
        assert far["pagination"]["hasMore"] is False

    async def test_a098_limit_is_clamped_at_100_and_echoed(self, alice: httpx.AsyncClient, services: Services) -> None:
        async with services.storage.write() as session:
            row = (await session.execute(select(locations).where(locations.c.name == PIER))).mappings().one()
            for number in range(120):
                await session.execute(insert(locations).values({**row, "name": f"locations/x{number:03d}"}))
        for limit, effective in [(100, 100), (101, 100), (100_000, 100), (99, 99)]:
            data = assert_ok(await alice.get(LIST, params={"limit": limit}))
            assert (data["pagination"]["limit"], len(data["locations"])) == (effective, effective)
            assert data["pagination"]["totalCount"] == 125
        second = assert_ok(await alice.get(LIST, params={"limit": 500, "page": 2}))
        assert len(second["locations"]) == 25  # equal titles go by name, so pages fit together
        first = assert_ok(await alice.get(LIST, params={"limit": 500}))
        assert len({*names(first), *names(second)}) == 125

    async def test_shows_a_key_its_own_location_alone(self, plugin: Site, as_service: AsService) -> None:
        data = assert_ok(await plugin.http.get(LIST))
        assert names(data) == [PIER]
        assert data["pagination"] == {"page": 1, "limit": 20, "totalCount": 1, "hasMore": False}
        data = assert_ok(await plugin.http.get(LIST, params={"type": "unassigned"}))
        assert (data["locations"], data["pagination"]["totalCount"]) == ([], 0)

    async def test_answers_from_the_mirror(self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
        await fail(emulator)
        assert_ok(await alice.get(LIST))


class TestRead:
    @pytest.mark.parametrize("spelling", ["111", PIER, "locations%2F111"])
    async def test_answers_every_member_of_the_contract(self, alice: httpx.AsyncClient, spelling: str) -> None:
        response = await alice.get(f"{LIST}/{spelling}")
        data = assert_ok(response)
        hours = data.pop("regularHours")
        assert data == {
            "name": PIER,
            "title": "Harbour Coffee, Pier",
            "storefrontAddress": PIER_ADDRESS,
            "phoneNumbers": {"primaryPhone": "+81 45-555-0111", "additionalPhones": ["+81 45-555-0110"]},
            "locationState": {"isVerified": True},
        }
        assert len(hours["periods"]) == 7
        assert hours["periods"][4]["closeTime"] == {"hours": 24}
        assert "x-data-age" not in response.headers

    async def test_leaves_out_what_the_provider_leaves_out(
        self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
    ) -> None:
        await drift(emulator, locations={PIER: {"regularHours": None, "specialHours": None, "moreHours": None}})
        clock.advance(seconds=61)
        assert "regularHours" not in assert_ok(await alice.get(f"{LIST}/111"))

    async def test_reads_the_provider_once_the_mirror_is_a_minute_old(
        self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
    ) -> None:
        await drift(emulator, locations={PIER: {"title": "Changed by other hands"}})
        await forget_calls(emulator)
        clock.advance(seconds=60)
        assert assert_ok(await alice.get(f"{LIST}/111"))["title"] == "Harbour Coffee, Pier"
        assert await calls(emulator) == []
        clock.advance(milliseconds=1)
        assert assert_ok(await alice.get(f"{LIST}/111"))["title"] == "Changed by other hands"
        assert_ok(await alice.get(f"{LIST}/111"))
        assert len(await calls(emulator, "GET")) == 1
        assert "Changed by other hands" in (await alice.get(LIST)).text  # the list is the same mirror

    async def test_answers_the_mirror_with_its_age_while_the_provider_is_down(
        self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
    ) -> None:
        clock.advance(seconds=90, milliseconds=900)
        for kind in ("status", "disconnect", "broken_body"):
            await fail(emulator, kind)
            response = await alice.get(f"{LIST}/111")
            assert assert_ok(response)["title"] == "Harbour Coffee, Pier"
            assert response.headers["x-data-age"] == "90"
            await heal(emulator)
        assert "x-data-age" not in (await alice.get(f"{LIST}/111")).headers

    async def test_is_for_the_own_location_alone(self, alice: httpx.AsyncClient, plugin: Site) -> None:
        foreign, missing = await alice.get(f"{LIST}/211"), await alice.get(f"{LIST}/999")
        assert_error(foreign, 404, "NOT_FOUND")
        assert foreign.json() == missing.json()
        refused = [await plugin.http.get(f"{LIST}/{ident}") for ident in ("112", "211", "999")]
        for response in refused:
            assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
            assert response.json() == refused[0].json()

    async def test_names_a_bad_id(self, alice: httpx.AsyncClient) -> None:
        for ident in ("x" * 65, "accounts/1/locations/111", "1;2", "%00", "%ff", "a%20b", "locations"):
            details = assert_error(await alice.get(f"{LIST}/{ident}"), 400, "VALIDATION_ERROR")
            assert details["errors"][0]["in"] == "path"
            assert fields(details) == ["locationId"], ident


class TestSwitch:
    async def test_switches_and_answers_the_contracts_members(self, alice: httpx.AsyncClient) -> None:
        for enabled in (True, True, False, False, True):
            response = await alice.patch(f"{LIST}/locations/112/sync", json={"syncEnabled": enabled})
            assert assert_ok(response) == {"locationId": "locations/112", "syncEnabled": enabled}
            entry = next(e for e in assert_ok(await alice.get(LIST))["locations"] if e["name"] == "locations/112")
            assert entry["syncEnabled"] is enabled

    async def test_a138_on_needs_a_verified_location(self, alice: httpx.AsyncClient) -> None:
        response = await alice.patch(f"{LIST}/113/sync", json={"syncEnabled": True})
        details = assert_error(response, 409, "LOCATION_NOT_VERIFIED")
        assert details == {"verificationState": "VERIFICATION_REQUESTED"}
        assert_ok(await alice.patch(f"{LIST}/113/sync", json={"syncEnabled": False}))

    async def test_on_needs_a_plan_with_sync_and_off_does_not(
        self, services: Services, alice: httpx.AsyncClient
    ) -> None:
        """Every plan of the packaged catalogue has sync, so the operation is asked directly."""
        plan = services.plans.get("pro").model_copy(update={"sync": False})
        without = Reached("locations/112", 1, plan)
        with pytest.raises(ServiceError) as refusal:
            await switch_sync(services, without, True)
        assert refusal.value.kind is PLAN_RESTRICTION
        assert (await switch_sync(services, without, False)).syncEnabled is False

    async def test_a139_takes_one_boolean_and_nothing_else(self, alice: httpx.AsyncClient) -> None:
        for value in ("true", 1, 0, None, [], {}, "on"):
            response = await alice.patch(f"{LIST}/112/sync", json={"syncEnabled": value})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["syncEnabled"], value
        missing = await alice.patch(f"{LIST}/112/sync", json={})
        assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["syncEnabled"]
        extra = await alice.patch(f"{LIST}/112/sync", json={"syncEnabled": True, "isVerified": True})
        assert fields(assert_error(extra, 400, "VALIDATION_ERROR")) == ["isVerified"]
        typo = await alice.patch(f"{LIST}/112/sync", json={"syncenabled": True})
        assert set(fields(assert_error(typo, 400, "VALIDATION_ERROR"))) == {"syncEnabled", "syncenabled"}

    async def test_works_with_a_key(self, plugin: Site) -> None:
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


class TestRefreshVerification:
    async def test_answers_what_the_provider_says(self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
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

    async def test_lets_sync_be_switched_on_afterwards(
        self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
    ) -> None:
        switch = {"syncEnabled": True}
        assert_error(await alice.patch(f"{LIST}/113/sync", json=switch), 409, "LOCATION_NOT_VERIFIED")
        await drift(emulator, voice_of_merchant={"locations/113": {"hasVoiceOfMerchant": True}})
        assert_error(await alice.patch(f"{LIST}/113/sync", json=switch), 409, "LOCATION_NOT_VERIFIED")
        assert_ok(await alice.post(f"{LIST}/113/refresh-verification"))
        assert_ok(await alice.patch(f"{LIST}/113/sync", json=switch))

    async def test_a138_lost_verification_switches_sync_off(
        self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
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

    async def test_ignores_a_body(self, alice: httpx.AsyncClient) -> None:
        for options in ({"content": b"\xff{"}, {"data": {"a": "b"}}, {"json": {"isVerified": False}}):
            assert assert_ok(await alice.post(f"{LIST}/111/refresh-verification", **options))["isVerified"] is True

    async def test_a142_a_provider_in_trouble(self, alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
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


async def test_the_mirror_was_read_at_the_start(alice: httpx.AsyncClient, services: Services) -> None:
    async with services.storage.read() as session:
        assert set((await session.execute(select(locations.c.profile_read_at))).scalars()) == {START}
