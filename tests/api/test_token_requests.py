"""How the token route is asked: media types, methods, headers (rows A017 to A022 of the list of bad input)."""

import json
import logging
from typing import Any

import httpx
import pytest

from conftest import AsService
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok
from support.tokens import PATH, assert_bad_credentials, grant


async def test_A017_A018_media_types_that_are_not_json(http: httpx.AsyncClient, plugin: Site) -> None:
    assert_error(await http.post(PATH, data=grant(plugin)), 415, "UNSUPPORTED_MEDIA_TYPE")
    body = json.dumps(grant(plugin)).encode()
    for media in (
        "text/plain",
        "text/json",
        "application/jsonx",
        "json",
        "",
        "application/xml; x=application/json",
    ):
        response = await http.post(PATH, content=body, headers={"Content-Type": media})
        assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert_error(await http.post(PATH, content=body), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert_error(await http.post(PATH), 400, "VALIDATION_ERROR")
    assert_error(await http.post(PATH, headers={"Content-Type": "text/plain"}), 400, "VALIDATION_ERROR")


async def test_A019_media_types_that_are_json(http: httpx.AsyncClient, plugin: Site) -> None:
    body = json.dumps(grant(plugin)).encode()
    for media in (
        "application/json; charset=utf-8",
        "application/vnd.x+json",
        "APPLICATION/JSON",
        "application/json;",
    ):
        assert_ok(await http.post(PATH, content=body, headers={"Content-Type": media}))


async def test_A020_other_methods_are_refused(http: httpx.AsyncClient) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        response = await http.request(method, PATH)
        assert_error(response, 405, "METHOD_NOT_ALLOWED")
        assert response.headers["allow"] == "OPTIONS, POST"


async def test_A021_credentials_in_the_query(
    http: httpx.AsyncClient, plugin: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="profilesvc")
    bodies: list[dict[str, Any]] = [{"json": {}}, {}]
    for options in bodies:
        response = await http.post(PATH, params=grant(plugin), **options)
        assert_error(response, 400, "VALIDATION_ERROR")
        assert plugin.key["client_secret"] not in response.text
    ours = [record for record in caplog.records if record.name.startswith("profilesvc")]
    assert plugin.key["client_secret"] not in "".join(record.getMessage() for record in ours)


async def test_A022_an_authorization_header_is_ignored(http: httpx.AsyncClient, plugin: Site) -> None:
    access = plugin.tokens["access_token"]
    for value in (f"Bearer {access}", "Bearer garbage", "garbage", "Basic eDp5", ""):
        assert_ok(await http.post(PATH, json=grant(plugin), headers={"Authorization": value}))
        bad = await http.post(PATH, json=grant(plugin, client_secret="x"), headers={"Authorization": value})
        assert_bad_credentials(bad)


async def test_a_grant_ignores_unknown_fields(http: httpx.AsyncClient, plugin: Site) -> None:
    data = assert_ok(await http.post(PATH, json=grant(plugin, plan="agency", scope="user", user_id=2)))
    assert (data["plan"], data["scope"]) == ("pro", "service")


async def test_no_response_of_this_route_is_stored(
    http: httpx.AsyncClient, as_service: AsService, services: Services
) -> None:
    site = await as_service()
    await key_service.deactivate(services, site.key["client_id"], "billing_issue")
    for body, status in [(grant(site), 403), ({}, 400), (grant(site, client_secret="x"), 401)]:
        response = await http.post(PATH, json=body)
        assert (response.status_code, response.headers["cache-control"]) == (status, "no-store")
