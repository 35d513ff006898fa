"""Sync over HTTP: what is sent, what is filtered, what is refused (D-80 to D-83)."""

import re

import httpx
import pytest

from conftest import AsService, AsUser
from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock
from profilesvc.services import sync
from profilesvc.services.context import AllowedLocation, Caller, Services
from support.api import CAROL, Site, assert_error, assert_ok, fields
from support.provider.drive import calls, document, drift
from support.syncs import COMPARISON, PIER, SAMPLE, SYNC, history


async def test_a_sync_returns_every_field_of_the_contract(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.post(f"{SYNC}/111", json={**SAMPLE, "attributes": {"wifi": "free"}}))
    assert re.fullmatch(r"sync_[0-9a-hjkmnp-tv-z]{20}", data.pop("syncId"))
    assert data == {
        "status": "success",
        "fieldsUpdated": [
            "title",
            "storefrontAddress.addressLines",
            "storefrontAddress.postalCode",
            "phoneNumbers.primaryPhone",
        ],
        "fieldsFiltered": ["attributes.wifi"],
        "timestamp": "2026-01-02T03:04:05.678Z",
    }


async def test_a_sync_merges_fields_that_the_provider_needs_whole(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    """regionCode, language and the other phones are kept from the provider (D-82)."""
    assert_ok(await alice.post(f"{SYNC}/111", json=SAMPLE))
    there = await document(emulator, PIER)
    assert there["title"] == "Harbour Coffee, Pier 2"
    assert there["storefrontAddress"] == {
        "regionCode": "JP",
        "languageCode": "ja",
        "sublocality": "中区",
        **SAMPLE["storefrontAddress"],
    }
    assert there["phoneNumbers"] == {
        "primaryPhone": "+81 45-555-0177",
        "additionalPhones": ["+81 45-555-0110"],
    }
    (patch,) = await calls(emulator, "PATCH")
    assert patch["query"]["updateMask"] == "title,storefrontAddress,phoneNumbers"
    assert set(patch["body"]) == {"title", "storefrontAddress", "phoneNumbers"}


async def test_a_sync_sends_only_fields_that_differ(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    body = {"title": "Harbour Coffee, Pier", "websiteUri": "https://harbour.example/new"}
    data = assert_ok(await alice.post(f"{SYNC}/111", json=body))
    assert data["fieldsUpdated"] == ["websiteUri"]
    (patch,) = await calls(emulator, "PATCH")
    assert patch["query"]["updateMask"] == "websiteUri"


async def test_a_sync_sends_nothing_if_nothing_differs(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.post(f"{SYNC}/111", json={"title": "Harbour Coffee, Pier"}))
    assert (data["status"], data["fieldsUpdated"], data["fieldsFiltered"]) == ("success", [], [])
    assert await calls(emulator, "PATCH") == []


async def test_the_updated_fields_are_in_the_order_of_the_request(alice: httpx.AsyncClient) -> None:
    body = {
        "websiteUri": "https://harbour.example/x",
        "labels": ["a", "b"],
        "phoneNumbers": {"primaryPhone": "+81 45-555-0188"},
        "profile": {"description": "New."},
        "title": "T",
    }
    data = assert_ok(await alice.post(f"{SYNC}/111", json=body))
    assert data["fieldsUpdated"] == [
        "websiteUri",
        "labels",
        "phoneNumbers.primaryPhone",
        "profile.description",
        "title",
    ]


async def test_a_sync_is_seen_by_the_other_routes(alice: httpx.AsyncClient) -> None:
    assert_ok(await alice.post(f"{SYNC}/111", json=SAMPLE))
    assert assert_ok(await alice.get("/api/v1/external-business/locations/111"))["title"] == SAMPLE["title"]
    comparison = assert_ok(await alice.get(f"{COMPARISON}/111"))
    assert comparison["source"]["title"] == comparison["lastSync"]["title"] == SAMPLE["title"]
    assert comparison["differences"] == []


@pytest.mark.parametrize("spelling", ["111", PIER, "locations%2F111"])
async def test_a_sync_accepts_every_form_of_the_location(plugin: Site, spelling: str) -> None:
    assert_ok(await plugin.http.post(f"{SYNC}/{spelling}", json={"title": "T"}))


async def test_a_sync_filters_fields_outside_the_format(alice: httpx.AsyncClient) -> None:
    body = {
        "name": "locations/999",
        "languageCode": "de",
        "metadata": {"placeId": "x", "mapsUri": "y"},
        "openInfo": {"status": "OPEN", "canReopen": False},
        "isVerified": True,
        "plan": "agency",
        "nested": {"deep": {"leaf": 1}, "list": [{"a": 1}]},
        "title": "T",
    }
    data = assert_ok(await alice.post(f"{SYNC}/111", json=body))
    assert data["fieldsUpdated"] == ["title"]
    assert data["fieldsFiltered"] == [
        "name",
        "languageCode",
        "metadata.placeId",
        "metadata.mapsUri",
        "openInfo.canReopen",
        "isVerified",
        "plan",
        "nested.deep.leaf",
        "nested.list",
    ]


async def test_A137_a_sync_checks_every_field_of_its_body(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert_error(await alice.post(f"{SYNC}/111", json={}), 400, "VALIDATION_ERROR")
    assert_error(await alice.post(f"{SYNC}/111"), 400, "VALIDATION_ERROR")
    data = assert_ok(await alice.post(f"{SYNC}/111", json={"a": 1, "b": {"c": None}, "d": {}}))
    assert (data["status"], data["fieldsUpdated"]) == ("skipped", [])
    assert data["fieldsFiltered"] == ["a", "b.c", "d"]
    for body, field in [
        ({"title": 5}, "title"),
        ({"title": ["x"]}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"phoneNumbers": "+1"}, "phoneNumbers"),
        ({"phoneNumbers": {"primaryPhone": 5}}, "phoneNumbers.primaryPhone"),
        ({"phoneNumbers": {"primaryPhone": "5" * 10_240}}, "phoneNumbers.primaryPhone"),
        ({"storefrontAddress": {"addressLines": "x"}}, "storefrontAddress.addressLines"),
        ({"storefrontAddress": {"addressLines": [1]}}, "storefrontAddress.addressLines.0"),
        ({"storefrontAddress": ["x"]}, "storefrontAddress"),
        ({"regularHours": {"periods": [{"openDay": "FUNDAY"}]}}, "regularHours.periods.0.openDay"),
    ]:
        details = assert_error(await alice.post(f"{SYNC}/111", json=body), 400, "VALIDATION_ERROR")
        assert field in fields(details), body
    assert await calls(emulator) == []
    assert [entry["status"] for entry in await history(alice)] == ["skipped", "success"]


async def test_a_sync_of_an_address_needs_a_region(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    await drift(emulator, locations={PIER: {"storefrontAddress": {"addressLines": ["x"]}}})
    body = {"storefrontAddress": {"locality": "Yokohama"}}
    details = assert_error(await alice.post(f"{SYNC}/111", json=body), 400, "VALIDATION_ERROR")
    assert fields(details) == ["storefrontAddress.regionCode"]
    body["storefrontAddress"]["regionCode"] = "JP"
    assert_ok(await alice.post(f"{SYNC}/111", json=body))


async def test_a_sync_filters_fields_by_the_plan_of_the_owner(
    as_user: AsUser, as_service: AsService, emulator: httpx.AsyncClient
) -> None:
    body = {"labels": ["x"], "title": "Diaz Dental 2", "specialHours": {"specialHourPeriods": []}}
    site = await as_service("locations/311")
    for client, updated in [(site.http, ["title"]), (await as_user(CAROL), [])]:
        data = assert_ok(await client.post(f"{SYNC}/311", json=body))
        assert data["fieldsUpdated"] == updated
        assert data["fieldsFiltered"] == ["labels", "specialHours.specialHourPeriods"]
    assert (await document(emulator, "locations/311"))["title"] == "Diaz Dental 2"
    skipped = assert_ok(await site.http.post(f"{SYNC}/311", json={"labels": ["x"]}))
    assert skipped["status"] == "skipped"


async def test_a_sync_needs_a_verified_location_with_sync_switched_on(
    alice: httpx.AsyncClient, services: Services
) -> None:
    off = await alice.post(f"{SYNC}/112", json={"title": "T"})
    assert_error(off, 409, "SYNC_DISABLED")
    unverified = await alice.post(f"{SYNC}/113", json={"title": "T"})
    details = assert_error(unverified, 409, "LOCATION_NOT_VERIFIED")
    assert details == {"verificationState": "VERIFICATION_REQUESTED"}
    assert_ok(await alice.patch("/api/v1/external-business/locations/112/sync", json={"syncEnabled": True}))
    assert_ok(await alice.post(f"{SYNC}/112", json={"title": "T"}))
    assert await history(alice, "113") == []
    without = services.plans["pro"].model_copy(update={"sync": False})
    with pytest.raises(ServiceError) as refusal:
        await sync.run(
            services,
            Caller(1, without, frozenset()),
            AllowedLocation(PIER, 1, without, "accounts/1", None),
            {"title": "T"},
            None,
        )
    assert refusal.value.kind is PLAN_RESTRICTION


async def test_the_ids_of_syncs_sort_by_time(alice: httpx.AsyncClient, clock: FrozenClock) -> None:
    made = []
    for number in range(5):
        made.append(assert_ok(await alice.post(f"{SYNC}/111", json={"title": f"T{number}"}))["syncId"])
        clock.advance(milliseconds=1)
    assert made == sorted(made)
    assert len(set(made)) == 5
