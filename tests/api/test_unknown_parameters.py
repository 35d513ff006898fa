"""D-123: a write rejects a query parameter that it does not have, and a sync has an update mask."""

from typing import Any

import httpx
import pytest

from support.api import Site, assert_error, assert_ok, fields
from support.provider.drive import calls, document, forget_calls
from support.surface import REQUESTS
from support.syncs import COMPARISON, PIER, SYNC

POSTS = "/api/v1/posts"
WRITES = {name: request for name, request in REQUESTS.items() if request[0] != "GET"}


@pytest.mark.parametrize("operation", WRITES)
async def test_a_write_rejects_an_unknown_parameter(alice: httpx.AsyncClient, plugin: Site, operation: str) -> None:
    method, path, body, query = WRITES[operation]
    client = plugin.http if operation == "send_heartbeat" else alice
    response = await client.request(method, path, params={**query, "cache": "1"}, json=body)
    details = assert_error(response, 400, "VALIDATION_ERROR")
    assert details["errors"] == [{"in": "query", "field": "cache", "problem": "is unknown"}]


@pytest.mark.parametrize("name", ["updateMask", "x", "a[b]", "ü", "%00", "a" * 200, "a\nb"])
async def test_the_error_names_the_unknown_parameter(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, name: str
) -> None:
    await forget_calls(emulator)
    params = {"locationId": "111", name: "1"}
    response = await alice.post(POSTS, params=params, json={"summary": "x"})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name.split("[")[0][:100]]
    assert await calls(emulator) == []


async def test_the_error_names_every_unknown_parameter_and_the_right_one(alice: httpx.AsyncClient) -> None:
    path = f"{SYNC}/111?validateonly=true&b=&update_mask=title"
    details = assert_error(await alice.post(path, json={"title": "T"}), 400, "VALIDATION_ERROR")
    assert [(error["field"], error["problem"]) for error in details["errors"]] == [
        ("validateonly", "is unknown; use `validateOnly`"),
        ("b", "is unknown"),
        ("update_mask", "is unknown; use `updateMask`"),
    ]


async def test_a_read_ignores_an_unknown_parameter(alice: httpx.AsyncClient) -> None:
    assert_ok(await alice.get(POSTS, params={"locationId": "111", "updateMask": "title"}))


async def test_the_token_is_checked_before_unknown_parameters(http: httpx.AsyncClient) -> None:
    assert_error(await http.post(f"{SYNC}/111?x=1", json={"title": "T"}), 401, "AUTH_INVALID_TOKEN")


async def test_the_token_endpoint_ignores_unknown_parameters(http: httpx.AsyncClient) -> None:
    """RFC 6749 §3.2: unrecognised parameters are ignored."""
    response = await http.post("/oauth2/token", data={"grant_type": "client_credentials", "y": "1"})
    assert response.json()["error"] == "invalid_client"


async def _sync(client: httpx.AsyncClient, mask: str, body: dict[str, Any], **query: str) -> httpx.Response:
    return await client.post(f"{SYNC}/111", params={"updateMask": mask, **query}, json=body)


async def test_a_sync_with_a_mask_sends_and_stores_only_the_named_fields(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    before = await document(emulator, PIER)
    body = {"title": "Harbour Y", "websiteUri": "https://y.harbour.example/", "unknown": 1, "labels": ["x"]}
    for query in ({"validateOnly": "true"}, {}):
        done = assert_ok(await _sync(alice, "title", body, **query))
        assert (done["fieldsUpdated"], done["fieldsFiltered"]) == (["title"], [])
    after = await document(emulator, PIER)
    assert (after["title"], after["websiteUri"]) == ("Harbour Y", before["websiteUri"])
    source = assert_ok(await alice.get(f"{COMPARISON}/111"))["source"]
    assert (source["title"], source["websiteUri"]) == ("Harbour Y", before["websiteUri"])


async def test_a_sync_with_a_mask_checks_the_types_of_all_fields(alice: httpx.AsyncClient) -> None:
    details = assert_error(await _sync(alice, "title", {"title": "T", "labels": 5}), 400, "VALIDATION_ERROR")
    assert [error["field"] for error in details["errors"]] == ["labels"]


async def test_a_sync_with_a_mask_clears_a_named_field_that_the_body_lacks(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    done = assert_ok(await _sync(alice, "websiteUri,profile.description", {"title": "T"}))
    assert set(done["fieldsUpdated"]) <= {"websiteUri", "profile.description"}
    after = await document(emulator, PIER)
    assert "websiteUri" not in after
    assert "description" not in after.get("profile", {})
    assert after["title"] != "T"


async def test_a_mask_of_one_field_of_a_message_leaves_the_others(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    before = (await document(emulator, PIER))["storefrontAddress"]
    body = {"storefrontAddress": {"locality": "Kobe", "postalCode": "1"}}
    assert_ok(await _sync(alice, "storefrontAddress.locality", body))
    assert (await document(emulator, PIER))["storefrontAddress"] == {**before, "locality": "Kobe"}


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        ("colour", "`colour` is not a field of a location, such as `title` or `profile.description`"),
        (
            "title,profile.text",
            "`profile.text` is not a field of a location, such as `title` or `profile.description`",
        ),
        ("phone_numbers", "`phone_numbers` is not a field of a location, such as `title` or `profile.description`"),
        ("*", "`*` is not a field of a location, such as `title` or `profile.description`"),
        ("", "`` is not a field of a location, such as `title` or `profile.description`"),
        ("metadata", "`metadata` cannot be changed"),
        ("title,title", "`title` is named twice"),
    ],
)
async def test_a_mask_with_a_field_that_no_sync_can_send_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, mask: str, problem: str
) -> None:
    await forget_calls(emulator)
    details = assert_error(await _sync(alice, mask, {"title": "T"}), 400, "VALIDATION_ERROR")
    assert details["errors"] == [{"in": "query", "field": "updateMask", "problem": problem}]
    assert await calls(emulator) == []
