"""`validateOnly=true`: what a sync would do, and nothing done. The provider decides, if it can be asked (D-124)."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService, AsUser
from profilesvc.provider.breaker import FAILURES
from profilesvc.services.context import Services
from support.api import CAROL, Site, assert_error, assert_ok, fields
from support.cases.profiles import INVALID, VALID, Case
from support.provider.drive import calls, drift, fail, forget_calls, heal
from support.syncs import store_source

PATH = "/api/v1/sync/111"
ONLY = {"validateOnly": "true"}


async def test_names_changed_and_filtered_fields_with_reasons(plugin: Site) -> None:
    before = assert_ok(await plugin.http.get("/api/v1/sync/comparison/111"))
    body = {
        "title": before["provider"]["title"],
        "profile": {"description": "New words."},
        "metadata": {"placeId": "x"},
        "languageCode": "fr",
        "wifi": {"free": True},
    }
    data = assert_ok(await plugin.http.post(PATH, params=ONLY, json=body))
    assert data.pop("timestamp") == "2026-01-02T03:04:05.678Z"
    assert data == {
        "validateOnly": True,
        "checked": "provider",
        "status": "success",
        "fieldsUpdated": ["profile.description"],
        "fieldsUnchanged": ["title"],
        "fieldsFiltered": ["metadata.placeId", "languageCode", "wifi.free"],
        "reasons": [
            {"field": "metadata.placeId", "reason": "output_only"},
            {"field": "languageCode", "reason": "immutable"},
            {"field": "wifi.free", "reason": "unknown"},
        ],
    }
    assert assert_ok(await plugin.http.get("/api/v1/sync/comparison/111")) == before


async def test_leaves_no_history_and_no_patch(plugin: Site, emulator: httpx.AsyncClient) -> None:
    before = assert_ok(await plugin.http.get("/api/v1/sync/history/111"))
    headers = {"X-Idempotency-Key": "a"}
    for _ in range(2):
        response = await plugin.http.post(PATH, params=ONLY, json={"title": "New"}, headers=headers)
        assert assert_ok(response)["fieldsUpdated"] == ["title"]
        assert "Idempotency-Replayed" not in response.headers
    assert assert_ok(await plugin.http.get("/api/v1/sync/history/111")) == before
    calls = (await emulator.get("/__emulator/requests")).json()["requests"]
    assert [call["query"].get("validateOnly") for call in calls if call["method"] == "PATCH"] == ["true", "true"]


async def test_names_the_plan_as_the_reason(as_user: AsUser) -> None:
    carol = await as_user(CAROL)
    data = assert_ok(await carol.post("/api/v1/sync/311", params=ONLY, json={"labels": ["a"]}))
    assert (data["status"], data["reasons"]) == ("skipped", [{"field": "labels", "reason": "plan"}])


@pytest.mark.parametrize("value", ["yes", "1", "", "TRUE"])
@ON_ONE_DATABASE
async def test_another_value_of_preview_is_rejected(plugin: Site, value: str) -> None:
    details = assert_error(
        await plugin.http.post(PATH, params={"validateOnly": value}, json={"title": "x"}), 400, "VALIDATION_ERROR"
    )
    assert fields(details) == ["validateOnly"]


@pytest.mark.parametrize("name", ["validateonly", "ValidateOnly", "validate_only"])
@ON_ONE_DATABASE
async def test_a_misspelt_dry_run_is_not_a_sync(plugin: Site, name: str) -> None:
    answer = await plugin.http.post(PATH, params={name: "true"}, json={"title": "x"})
    assert fields(assert_error(answer, 400, "VALIDATION_ERROR")) == [name]


async def test_rejects_the_same_bodies_as_a_sync(as_user: AsUser, as_service: AsService, plugin: Site) -> None:
    switched_off = await as_service("locations/112")
    answer = await switched_off.http.post("/api/v1/sync/112", params=ONLY, json={"title": "x"})
    assert_error(answer, 409, "SYNC_DISABLED")
    assert_error(await plugin.http.post(PATH, params=ONLY, json={}), 400, "VALIDATION_ERROR")
    assert_error(await plugin.http.post(PATH, params=ONLY, json={"title": 5}), 400, "VALIDATION_ERROR")
    reader = await as_service(requested=["business.read"])
    answer = await reader.http.post(PATH, params=ONLY, json={"title": "x"})
    assert_error(answer, 403, "AUTH_INSUFFICIENT_PERMISSIONS")


# What only the provider knows: rules about the values that it has, and fields that it has closed.
PROVIDERS_OWN = [
    Case({"storefrontAddress": None}),
    Case({"storefrontAddress": {"regionCode": "US"}}),
    Case({"regularHours": None}),
    Case({"latlng": {"latitude": 1.5, "longitude": 2}}),
    Case({"labels": ["closed"]}),
    Case({"websiteUri": "https://harbour.example/stale"}),
]


async def verdict(site: Site, body: dict[str, Any], **params: str) -> tuple[int, Any]:
    """The status, and the error without what differs by the time and the request."""
    answer = await site.http.post(PATH, params=params, json=body)
    error = answer.json().get("error") or {}
    return answer.status_code, (error.get("code"), error.get("message"), error.get("details"))


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@ON_ONE_DATABASE
async def test_the_verdict_of_a_preview_is_that_of_the_sync(
    plugin: Site, emulator: httpx.AsyncClient, strict: bool
) -> None:
    blocked = {"labels": "THROTTLED", "websiteUri": "STALE_DATA"}
    await drift(emulator, switches={"strict": strict})
    seen = set()
    for case in [*VALID, *INVALID, *PROVIDERS_OWN]:
        is_own = case in PROVIDERS_OWN
        await drift(emulator, blocked={"locations/111": blocked if is_own else {}})
        before = await verdict(plugin, case.body, **ONLY)
        assert before == await verdict(plugin, case.body), case
        seen.add((is_own, before[0]))
        if not is_own:
            assert before[0] == (400 if case.field else 200), case
    assert seen == {(False, 200), (False, 400), (True, 502)} | (set() if strict else {(True, 200)})


async def test_a_rejection_by_the_provider_is_the_error_of_the_sync(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await drift(emulator, switches={"strict": True})
    details = assert_error(
        await plugin.http.post(PATH, params=ONLY, json={"storefrontAddress": {"regionCode": "US"}}),
        502,
        "PROVIDER_API_ERROR",
    )
    assert (details["reason"], details["provider_reason"]) == ("rejected", "ADDRESS_EDIT_CHANGES_COUNTRY")
    assert details["fields"] == ["storefront_address.region_code"]


FAULTS: list[dict[str, Any]] = [{"status": 503}, {"status": 429}, {"kind": "disconnect"}, {"kind": "broken_body"}]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("only", ["PATCH", ""])
@ON_ONE_DATABASE
async def test_a_provider_that_cannot_be_asked_is_named(
    plugin: Site, emulator: httpx.AsyncClient, fault: dict[str, Any], only: str
) -> None:
    """Also if it fails between the read of the profile and the validation."""
    body = {"title": "Harbour Coffee, Pier", "profile": {"description": "New words."}}
    assert_ok(await plugin.http.get("/api/v1/sync/comparison/111"))
    await fail(emulator, **fault, times=1000, method=only or ".*")
    data = assert_ok(await plugin.http.post(PATH, params=ONLY, json=body))
    assert (data["checked"], data["fieldsUpdated"], data["fieldsUnchanged"]) == (
        "format",
        ["profile.description"],
        ["title"],
    )
    await heal(emulator)


@ON_ONE_DATABASE
async def test_an_open_circuit_is_not_asked(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, "disconnect", times=1000)
    for _ in range(FAILURES):
        assert assert_ok(await plugin.http.post(PATH, params=ONLY, json={"title": "New"}))["checked"] == "format"
    await heal(emulator)
    await forget_calls(emulator)
    assert assert_ok(await plugin.http.post(PATH, params=ONLY, json={"title": "New"}))["checked"] == "format"
    assert await calls(emulator, "GET") == []


async def test_equal_values_need_no_second_call(plugin: Site, emulator: httpx.AsyncClient) -> None:
    title = assert_ok(await plugin.http.get("/api/v1/sync/comparison/111"))["provider"]["title"]
    await forget_calls(emulator)
    data = assert_ok(await plugin.http.post(PATH, params=ONLY, json={"title": title}))
    assert (data["checked"], data["fieldsUnchanged"]) == ("provider", ["title"])
    assert await calls(emulator, "PATCH") == []
    skipped = assert_ok(await plugin.http.post(PATH, params=ONLY, json={"wifi": True}))
    assert (skipped["checked"], skipped["status"]) == ("format", "skipped")


async def test_a_lost_verification_is_the_error_of_the_sync_and_nothing_is_stored(
    plugin: Site, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, voice_of_merchant={"locations/111": {"verify": {"hasPendingVerification": True}}})
    for params in (ONLY, ONLY, {}):
        details = assert_error(
            await plugin.http.post(PATH, params=params, json={"title": "New"}), 409, "LOCATION_NOT_VERIFIED"
        )
        assert details["verificationState"] == "VERIFICATION_REQUESTED"


async def test_values_that_the_provider_has_are_not_refused(plugin: Site, emulator: httpx.AsyncClient) -> None:
    """A site sends its whole profile, also what the provider accepted before it had a rule."""
    odd = {"websiteUri": "harbour.example", "labels": [f"{number}" for number in range(9)], "storeCode": "<1>"}
    await drift(emulator, locations={"locations/111": odd})
    assert_ok(await plugin.http.get("/api/v1/sync/comparison/111"))  # stores the profile
    data = assert_ok(await plugin.http.post(PATH, params=ONLY, json={**odd, "title": "New"}))
    assert (data["fieldsUpdated"], len(data["fieldsUnchanged"])) == (["title"], 3)
    assert assert_ok(await plugin.http.post(PATH, json={**odd, "title": "New"}))["fieldsUpdated"] == ["title"]
    changed = {**odd, "storeCode": "<2>"}
    answer = await plugin.http.post(PATH, params=ONLY, json=changed)
    assert fields(assert_error(answer, 400, "VALIDATION_ERROR")) == ["storeCode"]


async def test_stored_values_that_break_a_rule_are_shown(plugin: Site, services: Services) -> None:
    """Also values of every other kind of violation: a source of an earlier version could have them all."""
    bodies = [case.body for case in INVALID if case.body.get("title", "x") is not None]
    for body in bodies:
        await store_source(services, "locations/111", body)
        data = assert_ok(await plugin.http.get("/api/v1/sync/comparison/111"))
        assert data["source"] == body
    assert assert_ok(await plugin.http.post(PATH, json={"title": "New"}))["fieldsUpdated"] == ["title"]
