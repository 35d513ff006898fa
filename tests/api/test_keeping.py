"""Which responses may be cached: a cache must never return the response of another caller."""

import re
from collections.abc import Iterator

import httpx
import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE, AsService, Dial
from support.api import assert_error, assert_ok

LOCATIONS = "/api/v1/external-business/locations"
# Only a response that is the same for all callers may be stored by a shared cache.
SHARED = {
    "/openapi.json",
    "/docs",
    "/docs/swagger-ui.css",
    "/dashboard/static/icon.svg",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
}
VALUES = {
    "/docs/<name>": {"name": "swagger-ui.css"},
    "/dashboard/static/<name>": {"name": "icon.svg"},
}
_BY_DEFAULT = {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}


def directives(response: httpx.Response) -> dict[str, str]:
    """Cache-Control by name."""
    parts = [part.strip().partition("=") for part in response.headers.get("cache-control", "").lower().split(",")]
    return {name: value for name, _, value in parts if name}


def may_be_shared(response: httpx.Response) -> bool:
    """Whether a shared cache may store an answer to GET (RFC 9111 §3, §3.5, §4.2.2)."""
    said = directives(response)
    if "no-store" in said or "private" in said:
        return False
    if "authorization" in response.request.headers:
        return not said.keys().isdisjoint({"public", "s-maxage", "must-revalidate"})
    is_told = not said.keys().isdisjoint({"public", "max-age", "s-maxage"}) or "expires" in response.headers
    return is_told or response.status_code in _BY_DEFAULT


def varies(response: httpx.Response) -> set[str]:
    """The request headers that an answer depends on."""
    return {name.strip() for line in response.headers.get_list("vary") for name in line.split(",")}


def paths(app: Quart) -> Iterator[str]:
    """Every path that is served by GET, with something in its variables, and some that are not served."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        if "GET" in (rule.methods or ()):
            values = VALUES.get(rule.rule, {})
            yield re.sub(r"<(?:[^:>]*:)?([^>]+)>", lambda found: values.get(found[1], "111"), rule.rule)  # noqa: B023
    yield from ("/nothing", "/api/v1/nothing", "/dashboard/nothing", "//twice", "/oauth2/token")


@pytest.mark.parametrize("caller", ["nobody", "owner", "key"])
@ON_ONE_DATABASE
async def test_only_public_responses_may_be_cached_by_proxies(
    app: Quart, dial: Dial, alice: httpx.AsyncClient, as_service: AsService, caller: str
) -> None:
    clients = {"nobody": dial(), "owner": alice, "key": (await as_service()).http}
    shared = set()
    for path in paths(app):
        query = {"locationId": "111"} if path.startswith("/api/") else {}
        response = await clients[caller].get(path, params=query)
        assert len(response.headers.get_list("cache-control")) == len(response.headers.get_list("vary")) == 1, path
        assert "Origin" in varies(response)
        if may_be_shared(response):
            shared.add(path)
        if path.startswith(("/api/", "/oauth2/", "/metrics")):
            assert "Authorization" in varies(response), path
        elif path.startswith("/dashboard") and path not in SHARED:
            assert "Cookie" in varies(response), path
    assert shared <= SHARED
    assert caller != "nobody" or shared == SHARED


async def test_writes_and_errors_are_never_cached(http: httpx.AsyncClient, alice: httpx.AsyncClient) -> None:
    answers = [
        await alice.patch(f"{LOCATIONS}/111/sync", json={"syncEnabled": False}),
        await alice.post("/api/v1/posts", params={"locationId": "111"}, json={"summary": "Fresh"}),
        await alice.get(f"{LOCATIONS}/999"),
        await alice.get(LOCATIONS, params={"page": "x"}),
        await alice.put(LOCATIONS),
        await http.get(LOCATIONS),
        await http.get("/healthz"),
        await http.get("/healthz", headers={"Host": "a b"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 201, 404, 400, 405, 401, 200, 400]
    for answer in answers:
        assert "no-store" in directives(answer), answer.request.url


async def test_a_browser_revalidates_its_copy(alice: httpx.AsyncClient) -> None:
    """A response with an ETag may be stored by its own caller, who revalidates it each time."""
    assert directives(await alice.get(LOCATIONS)).keys() == {"private", "no-cache"}


async def test_vary_is_enough_to_separate_callers_in_a_cache(http: httpx.AsyncClient, as_service: AsService) -> None:
    """A cache that stores everything, as nginx can: its key has the headers that `Vary` names."""
    kept: dict[tuple[str | None, ...], bytes] = {}
    sites = [await as_service("locations/111"), await as_service("locations/211")]
    tokens = [None, *(site.http.headers["Authorization"] for site in sites)]
    for token in tokens * 2:
        headers = {} if token is None else {"Authorization": token}
        response = await http.get(LOCATIONS, headers=headers)
        key = tuple(response.request.headers.get(name) for name in sorted(varies(response)))
        assert kept.setdefault(key, response.content) == response.content
    assert len(kept) == 3
    assert_error(await http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN")
    assert assert_ok(await sites[0].http.get(LOCATIONS)) != assert_ok(await sites[1].http.get(LOCATIONS))


def test_the_rule_detects_a_wrong_header() -> None:
    """The rule of this file, tried on answers that must not pass."""
    asked = httpx.Request("GET", "http://profiles.test/", headers={"Authorization": "Bearer x"})
    for control, is_shared in [("", False), ("public", True), ("private, max-age=60", False), ("max-age=60", False)]:
        assert may_be_shared(httpx.Response(200, headers={"Cache-Control": control}, request=asked)) is is_shared
    anonymous = httpx.Request("GET", "http://profiles.test/")
    assert may_be_shared(httpx.Response(404, request=anonymous))
    assert not may_be_shared(httpx.Response(401, request=anonymous))
