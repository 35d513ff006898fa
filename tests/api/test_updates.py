"""The provider's own changes of a profile: read, accept, reject, and the status of each difference."""

import asyncio
from typing import Any

import httpx
import pytest

from conftest import AsService, AsUser
from profilesvc.domain.time import FrozenClock
from support.api import CAROL, Site, assert_error, assert_ok
from support.provider.drive import calls, document, drift, fail, forget_calls, heal

PIER = "locations/111"
HERE = "/api/v1/external-business/locations/111/google-updated"
ACCEPT, REJECT = f"{HERE}/accept", f"{HERE}/reject"
SYNC, COMPARISON, HISTORY = "/api/v1/sync/111", "/api/v1/sync/comparison/111", "/api/v1/sync/history/111"
TITLE, SITE = "Harbour Coffee Pier", "https://maps.example/harbour"
PHONES = {"primaryPhone": "+81 45-555-0177"}
SYNCED = {"title": "Harbour Coffee, Pier", "websiteUri": "https://harbour.example/pier"}


@pytest.fixture(autouse=True)
async def overridden(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    """A synced profile. The provider has changed three of its fields."""
    assert_ok(await alice.post(SYNC, json=SYNCED))
    await override(emulator, title=TITLE, websiteUri=SITE, phoneNumbers=PHONES)
    await forget_calls(emulator)


async def override(emulator: httpx.AsyncClient, **fields: Any) -> None:
    await drift(emulator, google_updated={PIER: fields})


async def patches(emulator: httpx.AsyncClient) -> list[tuple[str, Any]]:
    return [(call["query"]["updateMask"], call["body"]) for call in await calls(emulator, "PATCH")]


async def asked(emulator: httpx.AsyncClient) -> list[dict[str, Any]]:
    """The requests about locations: each process also asks for a token."""
    return [call for call in await calls(emulator) if call["path"] != "/token"]


def problems(response: httpx.Response) -> list[str]:
    details = assert_error(response, 400, "VALIDATION_ERROR")
    assert {(each["in"], each["field"]) for each in details["errors"]} == {("body", "updateMask")}
    return [each["problem"] for each in details["errors"]]


async def test_a_read_of_updates_returns_the_consumers_version_and_both_masks(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(HERE))
    assert set(data) == {"location", "diffMask", "pendingMask"}
    assert data["location"]["title"] == TITLE
    assert data["location"]["phoneNumbers"] == PHONES
    assert (data["diffMask"], data["pendingMask"]) == ("phoneNumbers,title,websiteUri", "")


async def test_a_read_of_updates_is_one_call_to_the_provider(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert_ok(await alice.get(HERE))
    (call,) = await asked(emulator)
    assert call["path"] == f"/v1/{PIER}:getGoogleUpdated"


async def test_the_masks_are_empty_without_changes_of_the_provider(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await override(emulator)
    data = assert_ok(await alice.get(HERE))
    assert (data["diffMask"], data["pendingMask"]) == ("", "")
    assert data["location"]["title"] == SYNCED["title"]


async def test_a_read_of_updates_shows_edits_in_review(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    await drift(emulator, switches={"edit_review_seconds": 60})
    assert_ok(await alice.post(SYNC, json={"labels": ["new"]}))
    data = assert_ok(await alice.get(HERE))
    assert data["pendingMask"] == "labels"
    assert "labels" in data["diffMask"].split(",")


async def test_an_acceptance_is_one_patch_with_the_mask_and_the_providers_value(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    data = assert_ok(await alice.post(ACCEPT, json={"updateMask": "phoneNumbers,title"}))
    assert data["updateMask"] == "phoneNumbers,title"
    assert data["location"]["title"] == TITLE
    body = {"phoneNumbers": PHONES, "title": TITLE}
    assert await patches(emulator) == [("phoneNumbers,title", body)]
    assert assert_ok(await alice.get(HERE))["diffMask"] == "websiteUri"
    assert (await document(emulator, PIER))["phoneNumbers"] == PHONES


async def test_an_accepted_value_becomes_the_desired_value(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    """Neither the comparison shows a difference, nor does a sync of the source undo it."""
    assert_ok(await alice.post(ACCEPT, json={"updateMask": "title,phoneNumbers"}))
    compared = assert_ok(await alice.get(COMPARISON))
    assert compared["differences"] == []
    assert (compared["source"]["title"], compared["source"]["phoneNumbers"]) == (TITLE, PHONES)
    assert (compared["lastSync"]["title"], compared["lastSync"]["phoneNumbers"]) == (TITLE, PHONES)
    await forget_calls(emulator)
    assert assert_ok(await alice.post(SYNC, json=compared["source"]))["fieldsUpdated"] == []
    assert await patches(emulator) == []


async def test_an_acceptance_publishes_no_drift(alice: httpx.AsyncClient) -> None:
    mask = {"updateMask": "title,phoneNumbers,websiteUri"}
    assert_ok(await alice.post(ACCEPT, json=mask))
    assert_ok(await alice.get(COMPARISON))
    published = assert_ok(await alice.get("/api/v1/events"))["events"]
    assert [each["type"] for each in published] == ["sync.succeeded", "sync.succeeded"]
    assert published[-1]["data"]["fields_updated"] == mask["updateMask"].split(",")


async def test_an_acceptance_of_a_removed_field_clears_it(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await override(emulator, websiteUri=None)
    assert_ok(await alice.post(ACCEPT, json={"updateMask": "websiteUri"}))
    assert await patches(emulator) == [("websiteUri", {})]
    compared = assert_ok(await alice.get(COMPARISON))
    assert compared["differences"] == []
    assert compared["source"]["websiteUri"] is None


async def test_an_acceptance_of_a_part_of_a_message_leaves_the_rest(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    theirs = {"status": "CLOSED_TEMPORARILY", "openingDate": {"year": 2001, "month": 2}, "canReopen": True}
    await override(emulator, openInfo=theirs)
    assert_ok(await alice.post(ACCEPT, json={"updateMask": "openInfo.status"}))
    assert await patches(emulator) == [("openInfo.status", {"openInfo": {"status": "CLOSED_TEMPORARILY"}})]
    assert assert_ok(await alice.get(HERE))["diffMask"] == "openInfo"  # the date is still theirs
    assert_ok(await alice.post(REJECT, json={"updateMask": "openInfo.openingDate"}))
    assert assert_ok(await alice.get(HERE))["diffMask"] == ""


async def test_an_acceptance_reads_a_stale_field_first(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    """The provider rejects an edit of a field that it has just changed, until the change was read."""
    await drift(emulator, blocked={PIER: {"title": "STALE_DATA"}})
    assert_ok(await alice.post(ACCEPT, json={"updateMask": "title"}))


async def test_a_rejection_is_one_patch_with_the_owners_last_value(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    data = assert_ok(await alice.post(REJECT, json={"updateMask": "title"}))
    assert data["location"]["title"] == SYNCED["title"]
    assert await patches(emulator) == [("title", {"title": SYNCED["title"]})]
    updated = assert_ok(await alice.get(HERE))
    assert updated["diffMask"] == "phoneNumbers,websiteUri"
    assert updated["location"]["title"] == SYNCED["title"]
    assert assert_ok(await alice.get(COMPARISON))["source"]["title"] == SYNCED["title"]


async def test_a_rejection_sends_all_phone_numbers_together(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    ours = (await document(emulator, PIER))["phoneNumbers"]
    assert ours["additionalPhones"]
    assert_ok(await alice.post(REJECT, json={"updateMask": "phoneNumbers"}))
    assert await patches(emulator) == [("phoneNumbers", {"phoneNumbers": ours})]


async def test_a_rejection_is_in_review_until_the_provider_approves_it(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await drift(emulator, switches={"edit_review_seconds": 60})
    assert_ok(await alice.post(REJECT, json={"updateMask": "title"}))
    updated = assert_ok(await alice.get(HERE))
    assert (updated["pendingMask"], updated["location"]["title"]) == ("title", TITLE)
    assert problems(await alice.post(ACCEPT, json={"updateMask": "title"})) == [
        "`title` is in review: consumers do not see the last edit of it yet"
    ]
    clock.advance(seconds=60)
    updated = assert_ok(await alice.get(HERE))
    assert (updated["pendingMask"], updated["location"]["title"]) == ("", SYNCED["title"])


async def test_A173_every_invalid_path_of_a_mask_is_named(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    unknown = "is not a field of a location, such as `title` or `profile.description`"
    for mask, expected in {
        "title,nothing": [f"`nothing` {unknown}"],
        "phone_numbers": [f"`phone_numbers` {unknown}"],
        "*": [f"`*` {unknown}"],
        ",": [f"`` {unknown}"] * 2,
        "title,": [f"`` {unknown}"],
        "title.x": [f"`title.x` {unknown}"],
        "regularHours.periods.openDay": [f"`regularHours.periods.openDay` {unknown}"],
        "name,metadata,languageCode": [f"`{name}` cannot be changed" for name in ("name", "metadata", "languageCode")],
        "openInfo.canReopen": ["`openInfo.canReopen` cannot be changed"],
        "phoneNumbers.primaryPhone": ["`phoneNumbers.primaryPhone` must be `phoneNumbers`, which is sent whole"],
        "categories.primaryCategory": ["`categories.primaryCategory` must be `categories`, which is sent whole"],
        "openInfo.openingDate.year": [
            "`openInfo.openingDate.year` must be `openInfo.openingDate`, which is sent whole"
        ],
        "title,title": ["`title` is named twice"],
        "profile,profile.description": ["`profile.description` is named twice"],
    }.items():
        for path in (ACCEPT, REJECT):
            assert problems(await alice.post(path, json={"updateMask": mask})) == expected
    assert await calls(emulator) == []


async def test_A174_a_field_that_the_provider_has_not_changed_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for path in (ACCEPT, REJECT):
        assert problems(await alice.post(path, json={"updateMask": "title,labels,regularHours"})) == [
            "`labels` is not a field that the provider has changed",
            "`regularHours` is not a field that the provider has changed",
        ]
    assert await patches(emulator) == []


async def test_A175_a_body_of_another_form_is_rejected(alice: httpx.AsyncClient) -> None:
    for body in ({}, {"updateMask": ""}, {"updateMask": ["title"]}, {"updateMask": "x" * 1001}, {"mask": "title"}):
        details = assert_error(await alice.post(ACCEPT, json=body), 400, "VALIDATION_ERROR")
        assert details["errors"]


async def test_A176_a_service_area_without_its_address_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    """The provider would make a hybrid business one without premises."""
    places = {"placeInfos": [{"placeId": "ChIJ-yokohama", "placeName": "Yokohama"}]}
    area = {"businessType": "CUSTOMER_AND_BUSINESS_LOCATION", "places": places}
    await override(emulator, serviceArea=area)
    assert problems(await alice.post(ACCEPT, json={"updateMask": "serviceArea"})) == [
        "`serviceArea` must be sent with `storefrontAddress`, which would be lost without it"
    ]
    await drift(emulator, switches={"strict": True})
    data = assert_ok(await alice.post(ACCEPT, json={"updateMask": "serviceArea,storefrontAddress"}))
    assert data["location"]["serviceArea"] == area
    assert data["location"]["storefrontAddress"]["regionCode"] == "JP"


async def test_an_update_needs_a_verified_location_with_sync_switched_on(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, google_updated={"locations/112": {"title": "Other"}})
    path = ACCEPT.replace("111", "112")
    assert_error(await alice.post(path, json={"updateMask": "title"}), 409, "SYNC_DISABLED")
    path = ACCEPT.replace("111", "113")
    assert_error(await alice.post(path, json={"updateMask": "title"}), 409, "LOCATION_NOT_VERIFIED")
    assert await patches(emulator) == []


async def test_an_update_of_a_location_that_lost_its_verification_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, voice_of_merchant={PIER: {"hasBusinessAuthority": True, "verify": {}}})
    assert_error(await alice.post(REJECT, json={"updateMask": "title"}), 409, "LOCATION_NOT_VERIFIED")
    assert await patches(emulator) == []


async def test_an_update_of_a_field_that_the_plan_lacks_is_rejected(
    as_user: AsUser, emulator: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    carol = await as_user(CAROL)
    await drift(emulator, google_updated={"locations/311": {"title": "Diaz", "serviceItems": []}})
    path = ACCEPT.replace("111", "311")
    response = await carol.post(path, json={"updateMask": "title,serviceItems"})
    assert_error(response, 403, "PLAN_RESTRICTION")
    assert "serviceItems" in response.json()["error"]["message"]
    assert await patches(emulator) == []


async def test_a_key_needs_the_permission_to_write_to_accept_an_update(
    as_service: AsService, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    reader = await as_service(permissions=["business.read"])
    assert_ok(await reader.http.get(HERE))
    assert_error(await reader.http.post(ACCEPT, json={"updateMask": "title"}), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await plugin.http.post(ACCEPT, json={"updateMask": "title"}))


@pytest.mark.parametrize("path", [ACCEPT, REJECT])
async def test_a_repeated_request_is_one_patch(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, path: str
) -> None:
    options: Any = {"json": {"updateMask": "title"}, "headers": {"X-Idempotency-Key": "one"}}
    first = await alice.post(path, **options)
    again = await alice.post(path, **options)
    assert again.headers["idempotency-replayed"] == "true"
    assert assert_ok(first) == assert_ok(again)
    assert len(await patches(emulator)) == 1
    other = {**options, "json": {"updateMask": "websiteUri"}}
    assert_error(await alice.post(path, **other), 422, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize("path", [ACCEPT, REJECT])
async def test_a_lost_response_is_repeated_safely(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, path: str
) -> None:
    """The field no longer differs then, because the first attempt had its effect."""
    options: Any = {"json": {"updateMask": "title"}, "headers": {"X-Idempotency-Key": "one"}}
    await fail(emulator, "huge", method="PATCH", after=True)
    assert_error(await alice.post(path, **options), 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    wanted = TITLE if path == ACCEPT else SYNCED["title"]
    assert assert_ok(await alice.post(path, **options))["location"]["title"] == wanted
    compared = assert_ok(await alice.get(COMPARISON))
    assert (compared["source"]["title"], compared["differences"]) == (wanted, [])


async def test_an_acceptance_never_interleaves_with_a_sync(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator, "delay", method="PATCH", seconds=0.3, times=1)
    await forget_calls(emulator)
    settling = alice.post(ACCEPT, json={"updateMask": "phoneNumbers"})
    for answer in await asyncio.gather(alice.post(SYNC, json={"title": "Renamed"}), settling):
        assert_ok(answer)
    seen = [call["method"] for call in await asked(emulator)]
    one, other = ["GET", "PATCH"], ["GET", "GET", "PATCH"]
    assert seen in (one + other, other + one)


async def test_a_decision_is_in_the_history_and_the_audit_trail(alice: httpx.AsyncClient) -> None:
    accepted = assert_ok(await alice.post(ACCEPT, json={"updateMask": "title,phoneNumbers"}))
    rejected = assert_ok(await alice.post(REJECT, json={"updateMask": "websiteUri"}))
    newest = assert_ok(await alice.get(HISTORY))["history"][:2]
    found = {each["syncId"]: (each["direction"], each["fieldsUpdated"], each["status"]) for each in newest}
    assert found == {
        accepted["syncId"]: ("pull", 2, "success"),
        rejected["syncId"]: ("push", 1, "success"),
    }
    trail = assert_ok(await alice.get("/api/v1/audit"))["events"]
    settled = [(each["event"], each["details"]) for each in trail if each["event"].startswith("provider.update")]
    assert sorted(settled) == [
        ("provider.update_accepted", {"location_id": PIER, "fields": ["title", "phoneNumbers"]}),
        ("provider.update_rejected", {"location_id": PIER, "fields": ["websiteUri"]}),
    ]


async def test_each_difference_has_the_status_of_its_edit(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, switches={"edit_review_seconds": 60})
    assert_ok(await alice.post(SYNC, json={"labels": ["new"], "profile": {"description": "Coffee."}}))
    changed = {"title": "Pier", "labels": ["theirs"], "profile": {"description": "Theirs."}}
    await drift(emulator, locations={PIER: {**changed, "websiteUri": "https://harbour.example/other"}})
    compared = assert_ok(await alice.get(COMPARISON))
    assert {each["field"]: each["editStatus"] for each in compared["differences"]} == {
        "title": "overridden_by_provider",
        "websiteUri": "overridden_by_provider",
        "labels": "pending",
        "profile.description": "pending",
    }


async def test_a_comparison_reads_updates_only_if_the_metadata_shows_a_reason(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert assert_ok(await alice.get(COMPARISON))["differences"] == []  # publishes the provider's changes
    await forget_calls(emulator)
    assert assert_ok(await alice.get(COMPARISON))["differences"] == []
    assert len(await asked(emulator)) == 1, "there is no difference to ask about"
    await override(emulator)
    await drift(emulator, locations={PIER: {"title": "Pier"}})
    await forget_calls(emulator)
    (difference,) = assert_ok(await alice.get(COMPARISON))["differences"]
    assert (difference["field"], difference["editStatus"]) == ("title", "live")
    assert len(await asked(emulator)) == 1
    await override(emulator, labels=["theirs"])
    assert_ok(await alice.get(COMPARISON))
    await forget_calls(emulator)
    (difference,) = assert_ok(await alice.get(COMPARISON))["differences"]
    assert difference["editStatus"] == "live"
    assert len(await asked(emulator)) == 2
