"""One tenant against another: no read, no write, and no hint that there is anything to find (OWASP API1).

Every attempt is made on a resource of Alice and on one that does not exist. Both responses must be the same bytes.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from conftest import AsService, AsUser
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from support.api import BOB, Site, assert_error, assert_ok
from support.provider.drive import calls, forget_calls

API = "/api/v1"
LOCATIONS = f"{API}/external-business/locations"
KEYS = f"{API}/developer/credentials"
SUMMARY, TITLE = {"summary": "Taken"}, {"title": "Taken"}

Attempt = tuple[str, str, Any]
# Operations on a location; {} is where its id goes.
ON_LOCATIONS: list[Attempt] = [
    ("GET", LOCATIONS + "/{}", None),
    ("PATCH", LOCATIONS + "/{}/sync", {"syncEnabled": False}),
    ("POST", LOCATIONS + "/{}/refresh-verification", None),
    ("GET", LOCATIONS + "/{}/google-updated", None),
    ("POST", LOCATIONS + "/{}/google-updated/accept", {"updateMask": "title"}),
    ("POST", LOCATIONS + "/{}/google-updated/reject", {"updateMask": "title"}),
    ("GET", API + "/sync/comparison/{}", None),
    ("POST", API + "/sync/{}", TITLE),
    ("POST", API + "/sync/{}?validateOnly=true", TITLE),
    ("GET", API + "/sync/history/{}", None),
    ("GET", API + "/posts?locationId={}", None),
    ("POST", API + "/posts?locationId={}", SUMMARY),
    ("PATCH", API + "/posts/11101?locationId={}", SUMMARY),
    ("DELETE", API + "/posts/11101?locationId={}", None),
    ("GET", API + "/reviews?locationId={}", None),
    ("GET", API + "/reviews/111001?locationId={}", None),
    ("PUT", API + "/reviews/111001/reply?locationId={}", {"comment": "Taken"}),
    ("DELETE", API + "/reviews/111001/reply?locationId={}", None),
]
# Ways to write a location's id; 211 is the attacker's own.
SPELLINGS = [
    *("{}", "locations/{}", "locations%2F{}", "locations%2f{}", "Locations/{}", "LOCATIONS%2F{}", "/{}", "//{}"),
    *("accounts/1/locations/{}", "accounts/2/locations/{}", "accounts%2F2%2Flocations%2F{}", "locations/locations/{}"),
    *("211/../{}", "211%2F..%2F{}", "locations/211/../{}", "%2e%2e/{}", "./{}", "{}/", "{}/.", "{}%2F..%2F211"),
    *("{}%00", "{}%20", "%20{}", "{}%0a", "{};x=1", "{},211", "211,{}", "{}%23", "{}%3FlocationId=211", "0{}", "+{}"),
    *("211&locationId={}", "{}&locationId=211", "{}%26locationId=211", "*", "%25", "{}%252F"),
]
# Operations on resources of the attacker's own location, with ids of the victim's.
BELOW: list[Attempt] = [
    (method, f"{API}/{noun}/{name}{suffix}?locationId=211", body)
    for noun, child, ident, method, suffix, body in [
        ("posts", "localPosts", "{}01", "PATCH", "", SUMMARY),
        ("posts", "localPosts", "{}01", "DELETE", "", None),
        ("reviews", "reviews", "{}001", "GET", "", None),
        ("reviews", "reviews", "{}001", "PUT", "/reply", {"comment": "Taken"}),
        ("reviews", "reviews", "{}001", "DELETE", "/reply", None),
    ]
    for name in (
        ident,
        f"locations/{{}}/{child}/{ident}",
        f"locations%2F{{}}%2F{child}%2F{ident}",
        f"accounts/1/locations/{{}}/{child}/{ident}",
        f"locations/211/{child}/{ident}",
        f"locations/211/{child}/../../{{}}/{child}/{ident}",
    )
]
ON_KEYS: list[Attempt] = [
    ("GET", API + "/api-keys/{}/status", None),
    ("GET", API + "/api-keys/{}/status?history=true", None),
    ("GET", KEYS + "/{}/audit", None),
    ("GET", KEYS + "/{}/requests", None),
    ("POST", KEYS + "/{}/roll", {"overlap_seconds": 0}),
    ("POST", KEYS + "/{}/deactivate", {}),
    ("POST", KEYS + "/{}/reactivate", {}),
    ("DELETE", KEYS + "/{}", None),
]
HEADERS: list[dict[str, str]] = [
    {"X-Original-URL": f"{LOCATIONS}/111"},
    {"X-Rewrite-URL": f"{LOCATIONS}/111"},
    {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"},
    {"X-Forwarded-Prefix": f"{LOCATIONS}/111", "X-Forwarded-Uri": f"{LOCATIONS}/111"},
    {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "for=1;host=evil.example"},
    {"X-Forwarded-User": "alice@example.com", "X-Remote-User": "alice@example.com", "X-User-Id": "1", "X-User": "1"},
    {"X-Location-Id": "111", "X-Tenant-Id": "1", "X-Business-Id": "10", "X-Client-Id": "1"},
    {"Cookie": "user=1; session=alice; locationId=111"},
]


@pytest.fixture
async def victim(as_service: AsService) -> Site:
    return await as_service("locations/111")


@pytest.fixture(params=["user", "key"])
async def attacker(request: pytest.FixtureRequest, as_user: AsUser, as_service: AsService) -> httpx.AsyncClient:
    return await as_user(BOB) if request.param == "user" else (await as_service("locations/211")).http


@pytest.fixture
async def untouched(
    victim: Site, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, attacker: httpx.AsyncClient
) -> Any:
    """Everything of the victim's is as it was after the test, and the provider was never asked about it."""

    async def everything() -> list[Any]:
        client_id = victim.key["client_id"]
        paths = [
            f"{LOCATIONS}/111",
            f"{API}/sync/comparison/111",
            f"{API}/sync/history/111",
            f"{API}/posts?locationId=111",
        ]
        paths += [f"{API}/reviews?locationId=111", KEYS, f"{API}/api-keys/{client_id}/status?history=true"]
        answers = [timeless(assert_ok(await alice.get(path))) for path in (*paths, f"{KEYS}/{client_id}/audit")]
        assert_ok(await victim.http.get(f"{LOCATIONS}/111"))
        return answers

    before = await everything()
    await forget_calls(emulator)
    yield
    about = [call for call in await calls(emulator) if "locations/111" in str(call) or "accounts/1/" in str(call)]
    assert about == []
    assert await everything() == before


def timeless(answer: Any) -> Any:
    """The response without fields that change by the victim's own reads or by the clock."""
    return json.loads(re.sub(r'"(last_used_at|to)": "[^"]+"', r'"\1": null', json.dumps(answer)))


async def both(client: httpx.AsyncClient, attempt: Attempt, theirs: str, nobodys: str) -> list[str]:
    """The parts of a response that could reveal whether a resource exists."""
    method, path, body = attempt
    seen = []
    for name in (theirs, nobodys):
        response = await client.request(method, path.replace("{}", name), json=body)
        seen.append((response.status_code, response.text.replace(name, "NAME")))
    wrong = [] if seen[0] == seen[1] else [f"{method} {path}: {seen}"]
    if seen[0][0] < 300 or seen[0][0] >= 500:
        wrong.append(f"{method} {path}: {seen[0]}")
    return wrong


def on_locations() -> Iterator[Attempt]:
    for method, path, body in ON_LOCATIONS:
        for spelling in SPELLINGS:
            yield method, path.replace("{}", spelling), body


@pytest.mark.usefixtures("untouched")
async def test_another_tenants_location_looks_missing(attacker: httpx.AsyncClient) -> None:
    attempts = [*on_locations(), *BELOW]
    assert len(attempts) >= 500
    assert [wrong for attempt in attempts for wrong in await both(attacker, attempt, "111", "999")] == []


@pytest.mark.usefixtures("untouched")
async def test_another_tenants_key_looks_missing(attacker: httpx.AsyncClient, victim: Site) -> None:
    known, unknown = victim.key["client_id"], "svcid_1_1767323045000_site"
    wrong = []
    for attempt in ON_KEYS:
        for spell in (str, str.upper, lambda name: "".join(f"%{ord(char):02X}" for char in name), "./{}".format):
            wrong += await both(attacker, attempt, spell(known), spell(unknown))
        wrong += await both(attacker, attempt, str(victim.key["service_client_id"]), "999999")
    for body in (
        {"business_id": 10},
        {"assigned_location_id": "111"},
        {"business_id": 10, "assigned_location_id": "111"},
    ):
        missing = {name: 999 if isinstance(value, int) else "999" for name, value in body.items()}
        key = {"name": "Taken", "business_id": 20, "assigned_location_id": "211"}
        answers = [await attacker.post(KEYS, json={**key, **members}) for members in (body, missing)]
        assert answers[0].content == answers[1].content
        assert answers[0].status_code in (403, 404)
    assert wrong == []


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_another_tenants_rows_are_not_even_locked(as_user: AsUser, victim: Site, services: Services) -> None:
    """A lock is a write: it leaves the transaction's number in the row, and the owner waits for it."""

    async def versions() -> list[Any]:
        async with services.storage.read() as session:
            rows = text("SELECT client_id, xmin::text, xmax::text FROM keys WHERE owner_id = 1 ORDER BY id")
            places = text("SELECT name, xmin::text, xmax::text FROM locations WHERE owner_id = 1 ORDER BY name")
            return [*map(tuple, await session.execute(rows)), *map(tuple, await session.execute(places))]

    bob = await as_user(BOB)
    await services.part(PendingEvents).write(services)  # the victim's own grant, which refers to the key
    await services.part(RequestLog).write(services)
    before = await versions()
    for method, path, body in ON_KEYS:
        assert_error(await bob.request(method, path.format(victim.key["client_id"]), json=body), 404, "NOT_FOUND")
    key = {"name": "Taken", "business_id": 20, "assigned_location_id": "111"}
    assert_error(await bob.post(KEYS, json=key), 404, "NOT_FOUND")
    assert await versions() == before


@pytest.mark.usefixtures("untouched")
async def test_no_header_leads_elsewhere(attacker: httpx.AsyncClient) -> None:
    for path in (f"{LOCATIONS}/211", f"{API}/posts?locationId=211", LOCATIONS):
        plain = await attacker.get(path)
        for headers in HEADERS:
            answer = await attacker.get(path, headers=headers)
            assert (answer.status_code, answer.json()) == (plain.status_code, plain.json()), headers
        assert "111" not in plain.text


@pytest.mark.usefixtures("untouched")
async def test_page_tokens_and_idempotency_keys_are_useless_to_others(
    attacker: httpx.AsyncClient, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for noun in ("posts", "reviews"):
        theirs = assert_ok(await alice.get(f"{API}/{noun}?locationId=111&pageSize=1"))["nextPageToken"]
        assert theirs
        answer = await attacker.get(f"{API}/{noun}", params={"locationId": "211", "pageToken": theirs})
        assert_error(answer, 400, "VALIDATION_ERROR")
    await forget_calls(emulator)


async def test_an_idempotency_value_replays_nothing_of_another(victim: Site, attacker: httpx.AsyncClient) -> None:
    headers = {"X-Idempotency-Key": "shared"}
    first = assert_ok(await victim.http.post(f"{API}/sync/111", json=TITLE, headers=headers))
    second = await attacker.post(f"{API}/sync/211", json=TITLE, headers=headers)
    assert assert_ok(second)["syncId"] != first["syncId"]
    assert "idempotency-replayed" not in second.headers


async def test_tokens_of_another_caller_look_invalid(
    victim: Site, as_service: AsService, http: httpx.AsyncClient
) -> None:
    own = await as_service("locations/211")
    auth = (own.key["client_id"], own.key["client_secret"])
    for name in ("access_token", "refresh_token"):
        for route in ("introspect", "revoke"):
            answers = [
                await http.post(f"/oauth2/{route}", data={"token": token}, auth=auth)
                for token in (victim.tokens[name], "nonsense")
            ]
            assert (answers[0].status_code, answers[0].content) == (answers[1].status_code, answers[1].content)
    exchange = {"grant_type": "refresh_token", "refresh_token": victim.tokens["refresh_token"], **own.credentials}
    assert_error(await http.post(f"{API}/auth/token", json=exchange), 401, "AUTH_INVALID_TOKEN")
    assert_ok(await victim.http.get(f"{LOCATIONS}/111"))
    exchange = {"grant_type": "refresh_token", "refresh_token": victim.tokens["refresh_token"]}
    assert_ok(await http.post(f"{API}/auth/token", json=exchange))
