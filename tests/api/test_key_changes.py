"""Change a key: rename it, replace its domains, and end the secret before the last roll."""

import asyncio
from typing import Any

import httpx
import pytest

from conftest import AsService, AsUser
from support.api import BOB, assert_error, assert_ok, fields

PATH = "/api/v1/developer/credentials"
HEARTBEAT = "/api/v1/api-keys/heartbeat"


async def made(alice: httpx.AsyncClient, **members: Any) -> dict[str, Any]:
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "111", **members}
    key: dict[str, Any] = assert_ok(await alice.post(PATH, json=body), 201)
    return key


async def changes(alice: httpx.AsyncClient, path: str) -> list[Any]:
    trail = assert_ok(await alice.get(f"{path}/audit"))["events"]
    return [one["details"]["fields"] for one in trail if one["event"] == "key.changed"]


async def test_a_key_is_renamed_and_keeps_its_id(alice: httpx.AsyncClient) -> None:
    path = f"{PATH}/{(await made(alice))['client_id']}"
    before = assert_ok(await alice.get(path))
    renamed = await alice.patch(path, json={"name": "  Our shop "})
    assert assert_ok(renamed) == {**before, "name": "Our shop"} == assert_ok(await alice.get(path))
    assert renamed.headers["cache-control"] == "no-store"
    assert_ok(await alice.patch(path, json={"name": "Our shop"}))
    assert await changes(alice, path) == [["name"]]


@pytest.mark.parametrize(
    ("body", "primary", "allowed"),
    [
        ({"allowed_domains": ["B.example"]}, "a.example", ["a.example", "www.a.example", "b.example"]),
        ({"allowed_domains": None}, "a.example", ["a.example", "www.a.example"]),
        ({"primary_domain": "c.example"}, "c.example", ["c.example", "www.c.example", "x.example"]),
        ({"primary_domain": None}, None, ["x.example"]),
        ({"primary_domain": None, "allowed_domains": []}, None, []),
        ({"primary_domain": "https://www.a.example/x"}, "www.a.example", ["www.a.example", "a.example", "x.example"]),
    ],
)
async def test_domains_that_are_not_sent_stay(
    alice: httpx.AsyncClient, body: dict[str, Any], primary: str | None, allowed: list[str]
) -> None:
    key = await made(alice, primary_domain="a.example", allowed_domains=["x.example"])
    changed = assert_ok(await alice.patch(f"{PATH}/{key['client_id']}", json=body))
    assert (changed["primary_domain"], changed["allowed_domains"]) == (primary, allowed)


async def test_the_next_request_and_the_next_preflight_use_the_new_domains(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, as_service: AsService
) -> None:
    async def preflight(domain: str) -> bool:
        headers = {"Origin": f"https://{domain}", "Access-Control-Request-Method": "POST"}
        answer = await http.options(HEARTBEAT, headers=headers)
        return "access-control-allow-origin" in answer.headers

    site = await as_service(primary_domain="a.example", allowed_domains=["x.example"])
    assert [await preflight(f"{name}.example") for name in "abx"] == [True, False, True]
    assert_ok(await site.http.post(HEARTBEAT, json={}, headers={"Origin": "https://a.example"}))
    change = {"primary_domain": "b.example"}
    assert_ok(await alice.patch(f"{PATH}/{site.key['client_id']}", json=change))
    rejected = await site.http.post(HEARTBEAT, json={}, headers={"Origin": "https://a.example"})
    assert_error(rejected, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await site.http.post(HEARTBEAT, json={}, headers={"Origin": "https://b.example"}))
    assert [await preflight(f"{name}.example") for name in "abx"] == [False, True, True]
    assert_ok(await alice.delete(f"{PATH}/{site.key['client_id']}"))
    assert [await preflight(f"{name}.example") for name in "abx"] == [False, False, False]


@pytest.mark.parametrize("body", [{}, {"name": None}, {"label": "x"}])
async def test_A186_a_change_of_nothing_is_rejected(alice: httpx.AsyncClient, body: dict[str, Any]) -> None:
    key = await made(alice)
    refused = await alice.patch(f"{PATH}/{key['client_id']}", json=body)
    details = assert_error(refused, 400, "VALIDATION_ERROR")
    assert fields(details) == [""]


async def test_A187_all_problems_of_a_change_are_named(alice: httpx.AsyncClient) -> None:
    path = f"{PATH}/{(await made(alice))['client_id']}"
    body = {"name": " ", "primary_domain": "10.0.0.1", "allowed_domains": ["ok.example", "co.uk"]}
    details = assert_error(await alice.patch(path, json=body), 400, "VALIDATION_ERROR")
    assert fields(details) == ["name", "primary_domain", "allowed_domains.1"]
    assert await changes(alice, path) == []


async def test_A188_foreign_and_revoked_keys_are_unknown(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    path = f"{PATH}/{(await made(alice))['client_id']}"
    bob = await as_user(BOB)
    for call in (bob.get(path), bob.patch(path, json={"name": "x"}), bob.post(f"{path}/end-previous-secret")):
        assert_error(await call, 404, "NOT_FOUND")
    assert_ok(await alice.delete(path))
    assert assert_ok(await alice.get(path))["status"] == "revoked"
    for call in (alice.patch(path, json={"name": "x"}), alice.post(f"{path}/end-previous-secret")):
        assert_error(await call, 404, "NOT_FOUND")


async def test_the_previous_secret_ends_now(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service()
    path = f"{PATH}/{site.key['client_id']}"
    rolled = assert_ok(await alice.post(f"{path}/roll", json={"overlap_seconds": 3600}))
    assert assert_ok(await alice.get(path))["previous_secret_expires_at"] == rolled["previous_secret_expires_at"]
    for _ in range(2):
        ended = assert_ok(await alice.post(f"{path}/end-previous-secret"))
        assert ended["previous_secret_expires_at"] is None
    grant = {"grant_type": "client_credentials", "client_id": site.key["client_id"]}
    old = await http.post("/api/v1/auth/token", json={**grant, "client_secret": site.key["client_secret"]})
    assert_error(old, 401, "AUTH_INVALID_TOKEN")
    assert_ok(await http.post("/api/v1/auth/token", json={**grant, "client_secret": rolled["client_secret"]}))
    assert_ok(await site.http.post(HEARTBEAT, json={}))  # its token stays
    events = [one["event"] for one in assert_ok(await alice.get(f"{path}/audit"))["events"]]
    assert events.count("key.secret_ended") == 1
    assert_ok(await alice.post(f"{path}/roll", json={"overlap_seconds": 3600}))  # there is room for another overlap


async def test_changes_at_the_same_time_leave_one_set_of_domains(
    alice: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    path = f"{PATH}/{(await made(alice, primary_domain='a.example'))['client_id']}"
    bodies = [{"primary_domain": f"d{number}.example"} for number in range(4)]
    for answer in await asyncio.gather(*(alice.patch(path, json=body) for body in bodies)):
        assert_ok(answer)
    last = assert_ok(await alice.get(path))["primary_domain"]
    accepted = []
    for body in bodies:
        headers = {"Origin": f"https://{body['primary_domain']}", "Access-Control-Request-Method": "POST"}
        answer = await http.options(HEARTBEAT, headers=headers)
        if "access-control-allow-origin" in answer.headers:
            accepted.append(body["primary_domain"])
    assert accepted == [last]
