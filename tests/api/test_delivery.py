"""Conditional requests and packed answers: what is sent again, in which form, and what is never packed."""

import asyncio
import gzip
from collections.abc import Callable

import httpx
import pytest
from quart import Response

from conftest import ON_ONE_DATABASE, AsService, Dial
from profilesvc.api.caching import negotiated, tag_of
from support.api import Site, assert_error, assert_ok
from support.posts import PATH, PIER

LOCATIONS = "/api/v1/external-business/locations"
TAGGED = [
    f"{PATH}?locationId=111",
    LOCATIONS,
    f"{LOCATIONS}/111",
    "/api/v1/reviews?locationId=111",
    "/api/v1/sync/history/111",
    "/api/v1/sync/comparison/111",
    "/api/v1/businesses",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/openapi.json",
    "/docs",
    "/docs/swagger-ui.css",
    "/dashboard/static/dashboard.css",
]
GZIP, PLAIN = {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}


async def raw(http: httpx.AsyncClient, path: str, method: str = "GET", **headers: str) -> tuple[httpx.Response, bytes]:
    """The answer, and its body as it came."""
    async with http.stream(method, path, headers=headers) as response:
        return response, b"".join([part async for part in response.aiter_raw()])


@pytest.mark.parametrize("path", TAGGED)
@ON_ONE_DATABASE
async def test_is_not_sent_again_while_it_is_unchanged(alice: httpx.AsyncClient, path: str) -> None:
    first = await alice.get(path)
    tag = first.headers["etag"]
    assert (first.status_code, tag[:3], tag[-1]) == (200, 'W/"', '"')
    for known in (tag, tag[2:], f'"other", {tag}', "*"):
        for method in ("GET", "HEAD"):
            again = await alice.request(method, path, headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b""), (known, method)
            for name in ("etag", "cache-control", "vary", "ratelimit"):
                assert again.headers.get(name) == first.headers.get(name)
            assert again.headers["x-request-id"]
            assert again.headers.keys().isdisjoint({"content-type", "content-length", "content-encoding"})
    for unknown in ('W/"other"', tag[:-2] + '"', "", "garbage"):
        assert (await alice.get(path, headers={"If-None-Match": unknown})).content == first.content


async def test_is_sent_again_when_it_has_changed(plugin: Site) -> None:
    first = await plugin.http.get(PATH, params=PIER)
    assert (await plugin.http.get(PATH, params=PIER)).headers["etag"] == first.headers["etag"]
    assert_ok(await plugin.http.post(PATH, params=PIER, json={"summary": "Fresh bread"}), 201)
    changed = await plugin.http.get(PATH, params=PIER, headers={"If-None-Match": first.headers["etag"]})
    assert len(assert_ok(changed)["localPosts"]) > 0
    assert changed.headers["etag"] != first.headers["etag"]


async def test_a_condition_reveals_nothing_to_other_callers(
    http: httpx.AsyncClient, dial: Dial, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    tag = (await alice.get(f"{LOCATIONS}/111")).headers["etag"]
    for condition in (tag, "*"):
        headers = {"If-None-Match": condition}
        assert_error(await http.get(f"{LOCATIONS}/111", headers=headers), 401, "AUTH_INVALID_TOKEN")
        other = (await as_service("locations/211")).http
        refused = await other.get(f"{LOCATIONS}/111", headers=headers)
        assert_error(refused, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert "etag" not in refused.headers


async def test_a_condition_is_counted_like_any_request(alice: httpx.AsyncClient, limited: Callable[..., None]) -> None:
    limited(reads_per_user="2/minute")
    tag = (await alice.get(LOCATIONS)).headers["etag"]
    statuses = [(await alice.get(LOCATIONS, headers={"If-None-Match": tag})).status_code for _ in range(2)]
    assert statuses == [304, 429]


@pytest.mark.parametrize("path", [f"{PATH}?locationId=111", LOCATIONS, "/openapi.json", "/docs/swagger-ui.css"])
@ON_ONE_DATABASE
async def test_is_compressed_for_clients_that_accept_gzip(alice: httpx.AsyncClient, path: str) -> None:
    plain, body = await raw(alice, path, **PLAIN)
    assert "content-encoding" not in plain.headers
    packed, sent = await raw(alice, path, **GZIP)
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(sent) == body
    assert len(sent) == int(packed.headers["content-length"]) < len(body) == int(plain.headers["content-length"])
    assert packed.headers["etag"] == plain.headers["etag"]
    for answer in (plain, packed):
        assert "Accept-Encoding" in answer.headers["vary"]
    head, nothing = await raw(alice, path, "HEAD", **GZIP)
    assert (nothing, head.headers["content-encoding"]) == (b"", "gzip")
    assert head.headers["content-length"] == packed.headers["content-length"]


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip, deflate, br", True),
        ("*", True),
        ("GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("br, deflate", False),
        ("identity, gzip;q=0.5", False),
        ("", False),
        ("gzip;q=x", False),
    ],
)
@ON_ONE_DATABASE
async def test_the_caller_chooses_the_coding(http: httpx.AsyncClient, accepted: str, is_packed: bool) -> None:
    response, _ = await raw(http, "/openapi.json", **{"Accept-Encoding": accepted})
    assert ("content-encoding" in response.headers) is is_packed


async def test_a_response_with_a_secret_is_neither_tagged_nor_compressed(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site
) -> None:
    """The length of a compressed body reveals whether a guess that it reflects is in it."""
    keys = "/api/v1/developer/credentials"
    body = {"name": "x" * 100, "business_id": 10, "assigned_location_id": "111", "allowed_domains": ["a.example"]}
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    answers = [
        await alice.post(keys, json=body, headers=GZIP),
        await alice.post(f"{keys}/{plugin.key['client_id']}/roll", json={}, headers=GZIP),
        await alice.get(keys, headers=GZIP),
        await http.post("/api/v1/auth/token", json=grant, headers=GZIP),
        await http.post("/oauth2/token", data=grant, headers=GZIP),
        await http.get("/dashboard/sign-in", headers=GZIP),
        await http.get("/dashboard/sign-in", params={"next": "/dashboard/" + "x" * 2000}, headers=GZIP),
    ]
    for answer in answers:
        assert answer.is_success, answer.text
        assert answer.headers.keys().isdisjoint({"content-encoding", "etag"}), answer.request.url
        assert "no-store" in answer.headers["cache-control"]


async def test_a_short_response_is_not_compressed(alice: httpx.AsyncClient) -> None:
    answer = await alice.get("/api/v1/businesses", headers=GZIP)
    assert "content-encoding" not in answer.headers
    assert "Accept-Encoding" in answer.headers["vary"]


@pytest.mark.parametrize(("size", "is_done"), [(2_000, True), (3_000_000, False)])
async def test_compression_does_not_block_the_loop(size: int, is_done: bool) -> None:
    body = b"words " * (size // 6)
    response = Response(body)
    packing = asyncio.create_task(negotiated({b"accept-encoding": [b"gzip"]}, response, tag_of(body)))
    await asyncio.sleep(0)
    assert packing.done() is is_done
    response = await packing
    assert (response.status_code, gzip.decompress(await response.get_data(as_text=False))) == (200, body)
