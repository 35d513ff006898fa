"""Bad bodies on every route that takes one (rows A083 to A103 of the list of bad input)."""

import json
import logging
from typing import Any

import httpx
import pytest
from quart import Quart
from sqlalchemy import func, select

from profilesvc.services.context import Services
from profilesvc.storage.tables import keys, syncs
from support.api import Site, assert_error, assert_ok, fields

KEYS = "/api/v1/developer/credentials"


LOCATIONS = "/api/v1/external-business/locations"


HEARTBEAT = "/api/v1/api-keys/heartbeat"


TOKEN = "/api/v1/auth/token"


VALIDATE = "/api/v1/auth/validate-service-credentials"


POSTS = "/api/v1/posts"


JSON = {"Content-Type": "application/json"}


# Every route with a body, for a key or a user that may call it.
BODIES = [
    ("user", "POST", KEYS),
    ("user", "POST", f"{KEYS}/svcid_1_1_x/roll"),
    ("user", "PATCH", f"{KEYS}/svcid_1_1_x"),
    ("key", "POST", HEARTBEAT),
    ("nobody", "POST", TOKEN),
    ("nobody", "POST", VALIDATE),
    ("key", "POST", f"{POSTS}?locationId=111"),
    ("key", "PATCH", f"{POSTS}/11101?locationId=111"),
    ("key", "PUT", "/api/v1/reviews/111002/reply?locationId=111"),
    ("key", "PATCH", f"{LOCATIONS}/111/sync"),
    ("key", "POST", f"{LOCATIONS}/111/google-updated/accept"),
    ("key", "POST", f"{LOCATIONS}/111/google-updated/reject"),
    ("key", "POST", "/api/v1/sync/111"),
    ("user", "PATCH", f"{KEYS}/svcid_1_1_x/alerts"),
    ("user", "POST", "/api/v1/alerts"),
    ("user", "PATCH", "/api/v1/alerts/1"),
    ("user", "POST", "/api/v1/provider-connections/1/import"),
    ("user", "POST", "/api/v1/webhooks"),
    ("user", "PATCH", "/api/v1/webhooks/1"),
    ("user", "POST", "/api/v1/webhooks/1/recover"),
]

NOT_PLAIN_JSON: list[tuple[str, bytes]] = [
    ("A001 empty", b""),
    ("A001 blank", b" \r\n\t"),
    ("A001 half", b'{"a":'),
    ("A001 a list", b"[]"),
    ("A001 null", b"null"),
    ("A001 a string", b'"x"'),
    ("A001 a number", b"1"),
    ("A001 two values", b'{"a":1}{"a":1}'),
    ("A001 a comment", b'{"a":1/**/}'),
    ("A001 a trailing comma", b'{"a":1,}'),
    ("A001 single quotes", b"{'a':1}"),
    ("A001 a control character", b'{"a":"\n"}'),
    ("A083 invalid UTF-8", b'{"a":"\xff"}'),
    ("A083 overlong UTF-8", b'{"a":"\xc0\xaf"}'),
    ("A083 a surrogate in UTF-8", b'{"a":"\xed\xa0\x80"}'),
    ("A083 UTF-16", '{"a":1}'.encode("utf-16")),
    ("A083 UTF-16 without a mark", '{"a":1}'.encode("utf-16-le")),
    ("A083 UTF-32", '{"a":1}'.encode("utf-32")),
    ("A083 latin-1", '{"a":"é"}'.encode("latin-1")),
    ("A084 30,000 arrays", b"[" * 30_000 + b"]" * 30_000),
    ("A084 30,000 objects that never end", b'{"a":' * 10_000),
    ("A084 depth 33", b'{"a":' * 33 + b"1" + b"}" * 33),
    ("A084 depth 33 of arrays", b'{"a":' + b"[" * 32 + b"]" * 32 + b"}"),
    ("A085 a byte order mark", b'\xef\xbb\xbf{"a":1}'),
    ("A086 NaN", b'{"a":NaN}'),
    ("A086 Infinity", b'{"a":-Infinity}'),
    ("A086 1e400", b'{"a":1e400}'),
    ("A086 5,000 digits", b'{"a":' + b"9" * 5_000 + b"}"),
    ("A088 a field twice", b'{"a":1,"a":1}'),
    ("A088 a field twice, deep", b'{"b":{"a":1,"a":2}}'),
    ("A088 a field twice, escaped", b'{"a":1,"\\u0061":1}'),
    ("A089 a lone surrogate", b'{"a":"\\ud800"}'),
    ("A089 a lone surrogate as a name", b'{"\\udfff":1}'),
    ("A089 a lone surrogate, deep", b'{"a":[{"b":"\\udc00x"}]}'),
    ("A001 a control character", b'{"a":"\n"}'),
]


def key_body(**members: Any) -> dict[str, Any]:
    return {"name": "My Site", "business_id": 10, "assigned_location_id": "locations/111", **members}


@pytest.fixture
def clients(http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site) -> dict[str, httpx.AsyncClient]:
    return {"nobody": http, "user": alice, "key": plugin.http}


async def rows(services: Services) -> list[int]:
    """How many keys and syncs there are: what bad input must not change."""
    async with services.storage.read() as session:
        return [int((await session.execute(select(func.count()).select_from(t))).scalar_one()) for t in (keys, syncs)]


async def test_the_list_of_routes_is_complete(app: Quart) -> None:
    taking = {
        f"{found.method} {found.path}"
        for view in app.view_functions.values()
        if (found := getattr(view, "endpoint", None)) and found.body is not None
    }
    assert len(taking) == len(BODIES)


async def test_A083_to_A089_every_route_rejects_a_body_that_is_not_plain_json(
    clients: dict[str, httpx.AsyncClient], services: Services
) -> None:
    before = await rows(services)
    for name, raw in NOT_PLAIN_JSON:
        for caller, method, path in BODIES:
            response = await clients[caller].request(method, path, content=raw, headers=JSON)
            details = assert_error(response, 400, "VALIDATION_ERROR")
            assert details["errors"][0]["in"] == "body", (name, path)
            assert " at at " not in response.text
    assert await rows(services) == before


async def test_A084_a_body_of_depth_32_is_accepted(clients: dict[str, httpx.AsyncClient]) -> None:
    raw = b'{"a":' * 32 + b"1" + b"}" * 32
    response = await clients["key"].post(HEARTBEAT, content=raw, headers=JSON)
    assert_ok(response)


async def test_A090_A102_every_route_rejects_a_body_that_is_too_large(
    clients: dict[str, httpx.AsyncClient], services: Services
) -> None:
    before = await rows(services)
    many = json.dumps({f"member{number}": number for number in range(100_000)}).encode()
    for caller, method, path in BODIES:
        cap = (64 if caller == "nobody" else 256) * 1024
        for raw, status in [(b"{" + b" " * cap, 413), (b"{" + b" " * (cap - 1), 400), (many, 413)]:
            response = await clients[caller].request(method, path, content=raw, headers=JSON)
            assert_error(response, status, {413: "PAYLOAD_TOO_LARGE", 400: "VALIDATION_ERROR"}[status])
    for caller, method, path, body in [
        ("user", "POST", KEYS, key_body(name="x" * 200_000)),
        ("key", "POST", "/api/v1/sync/111", {"title": "x" * 200_000}),
        ("key", "POST", HEARTBEAT, {"detected_plugins": ["x"] * 10_000}),
        ("key", "POST", f"{POSTS}?locationId=111", {"summary": "x" * 200_000}),
    ]:
        response = await clients[caller].request(method, path, json=body)
        assert_error(response, 400, "VALIDATION_ERROR")
    assert await rows(services) == before


async def test_A017_every_route_rejects_media_types_other_than_json(clients: dict[str, httpx.AsyncClient]) -> None:
    for caller, method, path in BODIES:
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml"):
            response = await clients[caller].request(method, path, content=b"{}", headers={"Content-Type": media})
            assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_A101_a_body_cannot_set_read_only_fields(
    clients: dict[str, httpx.AsyncClient], services: Services
) -> None:
    extra = {
        "plan": "agency",
        "user_id": 2,
        "owner_id": 2,
        "client_id": "mine",
        "isVerified": True,
        "__proto__": {"x": 1},
        "id": 7,
    }
    made = assert_ok(await clients["user"].post(KEYS, json=key_body(**extra)), 201)
    assert (made["plan"], made["client_id"].split("_")[1]) == ("pro", "1")
    assert made["service_client_id"] != 7
    assert_ok(await clients["key"].post(HEARTBEAT, json={**extra, "key_id": 99}))
    switch = await clients["key"].patch(f"{LOCATIONS}/111/sync", json={"syncEnabled": True, **extra})
    assert "isVerified" in fields(assert_error(switch, 400, "VALIDATION_ERROR"))
    post = await clients["key"].post(f"{POSTS}?locationId=111", json={"summary": "x", **extra})
    assert "plan" in fields(assert_error(post, 400, "VALIDATION_ERROR"))
    synced = assert_ok(await clients["key"].post("/api/v1/sync/111", json={**extra, "name": "locations/211"}))
    assert synced["status"] == "skipped"


async def test_A103_text_that_looks_like_code_is_returned_unchanged(
    clients: dict[str, httpx.AsyncClient], plugin: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="profilesvc")
    texts = [
        "<script>alert(1)</script>",
        "'; DROP TABLE keys; --",
        "{{7*7}} ${7*7} <%= 7 %>",
        "a\r\nSet-Cookie: b=c",
        "\x1b[31mred\x1b[0m",
        "‮evil",
        "%s %d {0}",
    ]
    for text in texts:
        made = await clients["user"].post(KEYS, json=key_body(name=text))
        assert assert_ok(made, 201)["name"] == text.strip()
        assert made.headers["content-type"] == "application/json"
        assert "set-cookie" not in made.headers
        assert_ok(await clients["key"].post(HEARTBEAT, json={"plugin_version": text}))
        status = await clients["user"].get(f"/api/v1/api-keys/{plugin.key['client_id']}/status")
        assert assert_ok(status)["plugin_version"] == text
        assert_ok(await clients["key"].post("/api/v1/sync/111", json={"title": text}))
        read = await clients["key"].get(f"{LOCATIONS}/111")
        assert assert_ok(read)["title"] == text
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("profilesvc")]
    assert not any("\n" in line or "\x1b" in line for line in ours)
