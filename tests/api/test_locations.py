"""Locations over HTTP: list and read."""

from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from conftest import START, AsService, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services.context import Services
from profilesvc.storage.tables import locations
from support.api import BOB, CAROL, Site, assert_error, assert_ok, fields
from support.provider.drive import calls, drift, fail, forget_calls, heal

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


async def test_the_entries_of_the_list_have_every_field_of_the_contract(alice: httpx.AsyncClient) -> None:
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


async def test_the_list_defaults_to_all_locations_by_title_on_a_page_of_twenty(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(LIST))
    assert names(data) == BY_TITLE
    assert data["pagination"] == {"page": 1, "limit": 20, "totalCount": 5, "hasMore": False}


async def test_the_list_shows_only_the_locations_of_the_caller(as_user: AsUser) -> None:
    for email, expected in [(BOB, ["locations/211", "locations/219"]), (CAROL, ["locations/311"])]:
        data = assert_ok(await (await as_user(email)).get(LIST))
        assert names(data) == expected
        assert data["pagination"]["totalCount"] == len(expected)


async def test_the_list_can_be_restricted_to_unassigned_locations(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    data = assert_ok(await alice.get(LIST, params={"type": "unassigned"}))
    assert names(data) == ["locations/119"]
    assert data["pagination"]["totalCount"] == 1
    assert names(assert_ok(await alice.get(LIST, params={"type": "all"}))) == BY_TITLE
    assert names(assert_ok(await (await as_user(CAROL)).get(LIST, params={"type": "unassigned"}))) == []
    for value in ("assigned", "ALL", "", "all,unassigned"):
        response = await alice.get(LIST, params={"type": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["type"], value


async def test_the_pages_of_the_list_have_no_gap_and_no_repeat(alice: httpx.AsyncClient) -> None:
    seen: list[str] = []
    for page in (1, 2, 3, 4):
        data = assert_ok(await alice.get(LIST, params={"page": page, "limit": 2}))
        assert data["pagination"] == {"page": page, "limit": 2, "totalCount": 5, "hasMore": page < 3}
        seen += names(data)
    assert seen == BY_TITLE
    far = assert_ok(await alice.get(LIST, params={"page": 999_999_999, "limit": 100}))
    assert far["locations"] == []
    assert far["pagination"]["hasMore"] is False


async def test_A098_the_limit_of_a_page_is_clamped_at_100_and_returned(
    alice: httpx.AsyncClient, services: Services
) -> None:
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


async def test_the_list_shows_a_key_only_its_own_location(plugin: Site, as_service: AsService) -> None:
    data = assert_ok(await plugin.http.get(LIST))
    assert names(data) == [PIER]
    assert data["pagination"] == {"page": 1, "limit": 20, "totalCount": 1, "hasMore": False}
    data = assert_ok(await plugin.http.get(LIST, params={"type": "unassigned"}))
    assert (data["locations"], data["pagination"]["totalCount"]) == ([], 0)


async def test_the_list_is_read_from_the_cache(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    await fail(emulator)
    assert_ok(await alice.get(LIST))


@pytest.mark.parametrize("spelling", ["111", PIER, "locations%2F111"])
async def test_a_location_has_every_field_of_the_contract(alice: httpx.AsyncClient, spelling: str) -> None:
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


async def test_a_location_leaves_out_fields_that_the_provider_leaves_out(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await drift(emulator, locations={PIER: {"regularHours": None, "specialHours": None, "moreHours": None}})
    clock.advance(seconds=61)
    assert "regularHours" not in assert_ok(await alice.get(f"{LIST}/111"))


async def test_a_location_is_read_from_the_provider_when_its_cache_is_a_minute_old(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
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
    assert "Changed by other hands" in (await alice.get(LIST)).text  # the list is the same cache


async def test_the_cache_is_returned_with_its_age_while_the_provider_is_down(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    clock.advance(seconds=90, milliseconds=900)
    for kind in ("status", "disconnect", "broken_body"):
        await fail(emulator, kind)
        response = await alice.get(f"{LIST}/111")
        assert assert_ok(response)["title"] == "Harbour Coffee, Pier"
        assert response.headers["x-data-age"] == "90"
        await heal(emulator)
    assert "x-data-age" not in (await alice.get(f"{LIST}/111")).headers


async def test_a_caller_reads_only_their_own_locations(alice: httpx.AsyncClient, plugin: Site) -> None:
    foreign, missing = await alice.get(f"{LIST}/211"), await alice.get(f"{LIST}/999")
    assert_error(foreign, 404, "NOT_FOUND")
    assert foreign.json() == missing.json()
    refused = [await plugin.http.get(f"{LIST}/{ident}") for ident in ("112", "211", "999")]
    for response in refused:
        assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert response.json() == refused[0].json()


async def test_the_response_names_a_bad_location_id(alice: httpx.AsyncClient) -> None:
    for ident in ("x" * 65, "accounts/1/locations/111", "1;2", "%00", "%ff", "a%20b", "locations"):
        details = assert_error(await alice.get(f"{LIST}/{ident}"), 400, "VALIDATION_ERROR")
        assert details["errors"][0]["in"] == "path"
        assert fields(details) == ["locationId"], ident


@pytest.mark.parametrize(
    "title", ["Harbour\x00Coffee", "".join(chr(0x4E00 + i * 7919 % 20000) for i in range(6000))], ids=["NUL", "long"]
)
@pytest.mark.in_process("replaces the provider")
async def test_a_title_that_a_database_cannot_index_is_returned_unchanged(
    alice: httpx.AsyncClient, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    """PostgreSQL stores no NUL, and indexes no text of some thousands of bytes."""
    profile = {"name": "locations/111", "title": title}

    async def odd(*_: object) -> dict[str, str]:
        return profile

    monkeypatch.setattr(RemoteProvider, "location", odd)
    clock.advance(seconds=61)
    response = await alice.get(f"{LIST}/111")
    assert assert_ok(response)["title"] == title
    assert "x-data-age" not in response.headers
    listed = assert_ok(await alice.get(LIST))["locations"]
    assert title in [place["title"] for place in listed]


async def test_the_cache_was_read_at_the_start(alice: httpx.AsyncClient, services: Services) -> None:
    async with services.storage.read() as session:
        assert set((await session.execute(select(locations.c.profile_read_at))).scalars()) == {START}
