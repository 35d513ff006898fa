"""Malformed forms, Basic credentials and requests at the OAuth endpoints: never 5xx, never HTML."""

import random
from typing import Any

import httpx
import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE
from support.api import Site
from support.fleet.processes import in_process
from support.identity.oauth import (
    FORM,
    GRANT,
    INTROSPECT,
    JWKS,
    METADATA,
    OFFLINE,
    REVOKE,
    TOKEN,
    assert_oauth_error,
    assert_tokens,
    basic,
    basic_header,
)

ROUTES = (TOKEN, INTROSPECT, REVOKE)
NOT_A_FORM: list[tuple[str, bytes]] = [
    ("repeated", b"grant_type=client_credentials&grant_type=client_credentials&token=x"),
    ("repeated, unknown", b"grant_type=client_credentials&token=x&a=1&a=2"),
    ("repeated, one empty", b"grant_type=client_credentials&token=x&token=&grant_type="),
    ("repeated, escaped", b"grant_type=client_credentials&token=x&t%6fken=y&grant%5Ftype=z"),
    ("a % at the end", b"grant_type=client_credentials&token=x%"),
    ("half an escape", b"grant_type=client_credentials&token=x%4"),
    ("no hex", b"grant_type=client_credentials&token=%zz"),
    ("a bad escape in a name", b"grant_type=client_credentials&token=x&%q=1"),
    ("escaped, not UTF-8", b"grant_type=client_credentials&token=%ff"),
    ("a surrogate", b"grant_type=client_credentials&token=%ed%a0%80"),
    ("overlong", b"grant_type=client_credentials&token=%c0%af"),
    ("bare UTF-8", "grant_type=client_credentials&token=é".encode()),
    ("bare bytes", b"grant_type=client_credentials&token=\xff\xfe"),
    ("UTF-16", "grant_type=client_credentials&token=x".encode("utf-16")),
    ("101 parameters", b"&".join([b"grant_type=client_credentials", *(b"p%d=1" % n for n in range(101))])),
    ("30,000 parameters", b"&" * 30_000 + b"a=1" + b"&b" * 10_000),
    ("empty", b""),
    ("only separators", b"&&&==&"),
    ("JSON", b'{"grant_type":"client_credentials","token":"x"}'),
]
BASICS: list[tuple[str, str]] = [
    ("nothing", "Basic"),
    *in_process(("a blank", "Basic ")),
    ("not base64", "Basic !!!!"),
    ("base64url", "Basic a-b_c"),
    ("no padding", "Basic YTpiYw"),
    ("odd length", "Basic YTpiY"),
    ("two words", "Basic YTpi YTpi"),
    ("another scheme", "Digest username=x"),
    ("no scheme", "YTpiYw=="),
    ("comma", "Basic YTpi, Basic YTpi"),
]
PAIRS: list[tuple[str, bytes]] = [
    ("no colon", b"svcid_1_1_x"),
    ("only a colon", b":"),
    ("no id", b":secret"),
    ("no secret", b"svcid_1_1_x:"),
    ("not UTF-8", b"svcid_1_1_x:\xff\xfe"),
    ("escaped, not UTF-8", b"svcid_1_1_x:%ff"),
    ("a bad escape", b"svcid_1_1_x:%zz%"),
    ("NUL", b"svcid_1_1_x\0:\0"),
    ("escaped NUL", b"svcid_1_1_x%00:%00"),
    ("a line break", b"svcid_1_1_x\r\nX-A: b:c"),
    ("SQL", b"' OR 1=1 --:x"),
    ("long", b"x" * 5_000 + b":" + b"y" * 5_000),
]


def form_of(path: str, site: Site) -> dict[str, str]:
    return GRANT if path == TOKEN else {"token": site.tokens["access_token"]}


@pytest.mark.parametrize("path", ROUTES)
@ON_ONE_DATABASE
async def test_bodies_that_are_not_forms(http: httpx.AsyncClient, plugin: Site, path: str) -> None:
    for name, raw in NOT_A_FORM:
        for headers in (basic(plugin), {}):
            response = await http.post(path, content=raw, headers={**FORM, **headers})
            assert assert_oauth_error(response, 400, "invalid_request") == {}, name


@pytest.mark.parametrize("path", ROUTES)
@ON_ONE_DATABASE
async def test_A017_other_media_types_are_refused(http: httpx.AsyncClient, plugin: Site, path: str) -> None:
    raw = b"grant_type=client_credentials&token=x"
    for media in ("application/json", "text/plain", "multipart/form-data; boundary=x", "", "application/xml", None):
        headers = {**basic(plugin)} if media is None else {**basic(plugin), "Content-Type": media}
        response = await http.post(path, content=raw, headers=headers)
        assert_oauth_error(response, 400, "invalid_request")
    for media in ("application/x-www-form-urlencoded; charset=UTF-8", "Application/X-WWW-Form-URLencoded"):
        response = await http.post(path, content=raw, headers={**basic(plugin), "Content-Type": media})
        assert response.status_code == 200


@pytest.mark.parametrize("path", ROUTES)
@ON_ONE_DATABASE
async def test_A090_a_form_that_is_too_large_is_refused(http: httpx.AsyncClient, plugin: Site, path: str) -> None:
    start = b"grant_type=client_credentials&token=x&padding="
    headers = {**FORM, **basic(plugin)}
    edge = await http.post(path, content=start + b"x" * (65_536 - len(start)), headers=headers)
    assert edge.status_code == 200
    for size in (65_537, 300_000, 3_000_000):
        response = await http.post(path, content=start + b"x" * (size - len(start)), headers=headers)
        assert_oauth_error(response, 413, "invalid_request")


@pytest.mark.parametrize("path", ROUTES)
@ON_ONE_DATABASE
async def test_invalid_basic_credentials_are_refused(http: httpx.AsyncClient, plugin: Site, path: str) -> None:
    form = form_of(path, plugin)
    for _, value in BASICS:
        response = await http.post(path, data=form, headers={"Authorization": value})
        assert_oauth_error(response, 401, "invalid_client")
    for _, pair in PAIRS:
        assert_oauth_error(await http.post(path, data=form, headers=basic_header(pair)), 401, "invalid_client")
    raw = [(b"Authorization", b"Basic \xff\xfe")]
    assert_oauth_error(await http.post(path, data=form, headers=raw), 401, "invalid_client")


async def test_basic_is_spelled_in_any_case(http: httpx.AsyncClient, plugin: Site) -> None:
    value = basic(plugin)["Authorization"].removeprefix("Basic")
    for scheme in ("basic", "BASIC", "bAsIc"):
        assert_tokens(await http.post(TOKEN, data=OFFLINE, headers={"Authorization": f"{scheme}{value}"}))


async def test_A094_other_methods_and_paths_are_refused(http: httpx.AsyncClient) -> None:
    for path in ROUTES:
        for method in ("GET", "PUT", "DELETE", "PATCH", *in_process("FOO")):
            response = await http.request(method, path)
            assert_oauth_error(response, 405, "invalid_request")
            assert response.headers["allow"] == "OPTIONS, POST"
    for path in (METADATA, JWKS):
        assert_oauth_error(await http.post(path), 405, "invalid_request")
    for path in ("/oauth2/", "/oauth2/authorize", "/oauth2/token/", "/.well-known/openid-configuration"):
        assert_oauth_error(await http.get(path), 404, "invalid_request")
    options = await http.options(TOKEN)
    assert (options.status_code, set(options.headers["allow"].split(", "))) == (204, {"OPTIONS", "POST"})


async def test_A081_A093_rejections_before_the_application(http: httpx.AsyncClient) -> None:
    for headers, status in [({"X-A": "v" * 17_000}, 431), ({"Host": "a b"}, 400)]:
        response = await http.post(TOKEN, data=GRANT, headers=headers)
        assert response.status_code == status
        assert set(response.json()) == {"error", "error_description"}
        assert response.json()["error"] == "invalid_request"


@ON_ONE_DATABASE
@pytest.mark.slow
async def test_random_forms_and_headers(app: Quart, http: httpx.AsyncClient, plugin: Site) -> None:
    """A thousand requests of pieces that each mean something to a parser."""
    chance = random.Random(6749)
    good = basic(plugin)["Authorization"]
    pieces = ["grant_type", "client_id", "client_secret", "scope", "token", "refresh_token", "=", "=", "&", "&", "%"]
    pieces += ["%00", "%ff", "%zz", "+", "client_credentials", "refresh_token", "business.read", "é", "\r\n", ";", " "]
    pieces += [plugin.key["client_id"], plugin.key["client_secret"], plugin.tokens["refresh_token"][:40]]
    authorizations = [good, good[:-3], good + "=", "Basic", "Bearer x", f"Bearer {good}", "Basic Og==", ""]
    statuses: dict[int, int] = {}
    for _ in range(1_000):
        raw = "".join(chance.choices(pieces, k=chance.randrange(12))).encode()
        headers: dict[str, Any] = {**FORM, "Authorization": chance.choice(authorizations)}
        response = await http.post(chance.choice(ROUTES), content=raw, headers=headers)
        assert response.status_code in (200, 400, 401), (raw, headers)
        assert response.headers["content-type"] == "application/json"
        assert response.status_code == 200 or set(response.json()) == {"error", "error_description"}
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
    assert {400, 401} <= set(statuses)
