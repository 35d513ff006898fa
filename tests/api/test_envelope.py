"""Whatever is asked, the answer is the envelope, with the headers that every answer carries (D-02, D-04)."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE, client_of
from profilesvc.api.failures import STANDARD_PATHS
from profilesvc.bootstrap import create_app
from profilesvc.settings import Settings
from support.api import assert_error, assert_ok
from support.fleet.processes import in_process
from support.identity.oauth import assert_oauth_error

LOCATIONS = "/api/v1/external-business/locations"


TOKEN = "/api/v1/auth/token"


JSON = {"Content-Type": "application/json"}


SAMPLES = {
    "<location:locationId>": "111",
    "<post:postId>": "nopost",
    "<review:reviewId>": "noreview",
    "<client_id>": "svcid_1_1_x",
    "<webhook_id>": "1",
    "<delivery_id>": "1",
    "<alert_id>": "1",
    "<connection_id>": "1",
    "<name>": "docs.js",
}


def rules(app: Quart) -> Iterator[tuple[str, set[str]]]:
    """Every path of the API with sample values, and its methods; pages for people are left out."""
    paths: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(("/dashboard", "/guides")):
            continue
        path = rule.rule
        for variable, sample in SAMPLES.items():
            path = path.replace(variable, sample)
        assert "<" not in path, f"no sample for {rule.rule}"
        paths.setdefault(path, set()).update(rule.methods or ())
    yield from paths.items()


UNKNOWN_PATHS = (
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v2/businesses",
    "/API/v1/businesses",
    "/api/V1/businesses",
    "/api/v1/Businesses",
    "//api/v1/businesses",
    "/api//v1/businesses",
    "/api/v1/businesses/",
    "/api/v1/businesses;x=1",
    "/api/v1/businesses%00",
    "/api/v1/businesses%20",
    "/api/v1/%2e%2e/v1/businesses",
    "/api/v1/x%0d%0aSet-Cookie:a=b",
    "/api/v1/%ff",
    "/api/v1/" + "x" * 5_000,
    f"{LOCATIONS}/",
    f"{LOCATIONS}/111/",
    f"{LOCATIONS}//111",
    f"{LOCATIONS}/111/nothing",
    "/api/v1/api-keys/a%2Fb/status",
    "/static/x",
    "/favicon.ico",
)


ODD_IDS = (
    "211%2F..%2F111",
    "locations/211%2F..%2F111",
    "111;x=1",
    "111%3Bx=1",
    "%2e%2e",
    "%2e%2e%2f111",
    "%00",
    "111%00",
    "%ff",
    "111%0a",
    "111%20",
    "+111",
    "locations%252F111",
    "locations%5C111",
    "LOCATIONS/111",
    "111,112",
    "111%23",
    "%EF%BC%91%EF%BC%91%EF%BC%91",
    ".%00",
)


async def test_an_unknown_path_is_not_found(everywhere: httpx.AsyncClient, alice: httpx.AsyncClient) -> None:
    token = {"Authorization": alice.headers["Authorization"]}
    for path in UNKNOWN_PATHS:
        for headers in ({}, token):
            response = await everywhere.get(path, headers=headers)
            assert_error(response, 404, "NOT_FOUND")


async def test_A096_odd_paths_never_reach_another_resource(
    everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    token = {"Authorization": alice.headers["Authorization"]}
    for ident in ODD_IDS:
        response = await everywhere.get(f"{LOCATIONS}/{ident}", headers=token)
        assert response.status_code in (400, 404), ident
        assert_error(response, response.status_code, {400: "VALIDATION_ERROR", 404: "NOT_FOUND"}[response.status_code])
    for ident in ("%00", "a%00b", "%ff", "%2e%2e", "a b", "x" * 5_000, "'", "%25", "*"):
        for method, path in [
            ("GET", f"/api/v1/api-keys/{ident}/status"),
            ("DELETE", f"/api/v1/developer/credentials/{ident}"),
            ("PATCH", f"/api/v1/posts/{ident}?locationId=111"),
        ]:
            response = await everywhere.request(method, path, headers=token, json=None)
            assert response.status_code in (400, 404, 405), (method, ident)


async def test_A094_a_method_that_a_path_does_not_accept_is_a_405(app: Quart, everywhere: httpx.AsyncClient) -> None:
    for path, methods in rules(app):
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", *in_process("FOO")} - methods:
            response = await everywhere.request(method, path)
            if path.startswith(STANDARD_PATHS):  # D-02
                assert_oauth_error(response, 405, "invalid_request")
            else:
                assert_error(response, 405, "METHOD_NOT_ALLOWED")
            assert set(response.headers["allow"].split(", ")) == methods, path


async def test_A094_a_method_override_is_ignored(everywhere: httpx.AsyncClient, alice: httpx.AsyncClient) -> None:
    headers = {
        "Authorization": alice.headers["Authorization"],
        "X-HTTP-Method-Override": "DELETE",
        "X-Method-Override": "DELETE",
    }
    assert_ok(await everywhere.get("/api/v1/businesses", headers=headers, params={"_method": "DELETE"}))


async def test_A095_options_is_an_empty_204_on_every_route(app: Quart, everywhere: httpx.AsyncClient) -> None:
    for path, methods in rules(app):
        response = await everywhere.options(path)
        assert (response.status_code, response.content) == (204, b""), path
        assert set(response.headers["allow"].split(", ")) == methods
        assert "content-type" not in response.headers


async def test_A095_head_is_get_without_its_body(
    app: Quart, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    token = {"Authorization": alice.headers["Authorization"]}
    for path, methods in rules(app):
        if "GET" not in methods:
            continue
        for headers in ({}, token):
            got, head = [await everywhere.request(m, path, headers=headers) for m in ("GET", "HEAD")]
            assert (head.status_code, head.content) == (got.status_code, b""), path
            for name in ("content-type", "cache-control", "www-authenticate"):
                assert head.headers.get(name) == got.headers.get(name)


async def test_A090_a_body_that_the_framework_rejects_has_the_envelope(everywhere: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 65_536

    big = await everywhere.post(TOKEN, content=b"x" * 17_000_000, headers=JSON)
    assert_error(big, 413, "PAYLOAD_TOO_LARGE")
    chunked = await everywhere.post(TOKEN, content=endless(), headers=JSON)
    assert_error(chunked, 413, "PAYLOAD_TOO_LARGE")
    form = await everywhere.post(TOKEN, files={"a": b"x"})
    assert_error(form, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_body_on_a_route_without_one_is_ignored(
    everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    headers = {"Authorization": alice.headers["Authorization"], "Content-Type": "text/plain"}
    response = await everywhere.request("GET", "/api/v1/businesses", content=b"\xff{", headers=headers)
    assert_ok(response)


@pytest.mark.in_process("serves under another base URL")
@ON_ONE_DATABASE
async def test_an_https_base_url_makes_browsers_use_https_only(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"base_url": "https://profiles.example"}))
    async with app.test_app(), client_of(app) as client:
        paths = ("/healthz", LOCATIONS, "/api/v1/nothing", "//", "/oauth2/token", "/dashboard", "/dashboard/nothing")
        for path in (*paths, "/dashboard/static/dashboard.css"):
            headers = (await client.get(path)).headers
            assert headers.get_list("strict-transport-security") == ["max-age=31536000"], path
            assert headers.get_list("x-content-type-options") == ["nosniff"], path
