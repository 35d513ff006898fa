"""`validateOnly=true`: what a sync would do, and nothing done."""

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService, AsUser
from support.api import CAROL, Site, assert_error, assert_ok, fields

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
async def test_rejects_another_value(plugin: Site, value: str) -> None:
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
