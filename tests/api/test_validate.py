"""The credential check over HTTP (rows A027 to A032 of the list of bad input)."""

from typing import Any

import httpx

from conftest import AsService
from profilesvc.domain.time import FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok, fields

VALIDATE = "/api/v1/auth/validate-service-credentials"


def check(site: Site, **members: Any) -> dict[str, Any]:
    return {**site.credentials, **members}


ALLOWED_SITES = (
    None,
    "example.com",
    "www.example.com",
    "https://WWW.Example.com:443/path?x=1",
    "example.com.",
    "http://example.com",
    "BÜCHER.example",
    "xn--bcher-kva.example",
)


OTHER_SITES = (
    "other.example",
    "sub.example.com",
    "example.com.evil.com",
    "evilexample.com",
    "example.com@evil.com",
    "https://example.com@evil.com/",
    "example.com%00.evil.com",
    "example.com\0.evil.com",
    "example.com\n",
    "example.com\\.evil.com",
    "com",
    "",
    " ",
    "127.0.0.1",
    "x" * 3_000,
)


async def test_a_check_of_credentials_returns_every_field_of_the_contract(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    response = await http.post(VALIDATE, json=check(plugin, site_domain="https://harbour.example"))
    assert assert_ok(response) == {
        "valid": True,
        "user": {"id": 1, "email": "alice@example.com", "name": "Alice Ito"},
        "business": {"id": 10, "name": "Harbour Coffee"},
        "location": {
            "id": "locations/111",
            "name": "Harbour Coffee, Pier",
            "address": "海岸通1丁目1-4 桟橋ビル1階, 横浜市, 神奈川県, 231-0002",
            "is_verified": True,
        },
        "plan": "pro",
        "plan_display_name": "Pro",
        "capabilities": {"sync": True, "posts": True, "reviews": True},
    }
    assert response.headers["cache-control"] == "no-store"


async def test_the_capabilities_are_those_of_the_plan(http: httpx.AsyncClient, as_service: AsService) -> None:
    data = assert_ok(await http.post(VALIDATE, json=check(await as_service("locations/311"))))
    assert (data["plan"], data["plan_display_name"]) == ("starter", "Starter")
    assert data["capabilities"] == {"sync": True, "posts": False, "reviews": False}


async def test_a_check_of_credentials_reports_an_unverified_location(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    data = assert_ok(await http.post(VALIDATE, json=check(await as_service("locations/113"))))
    assert data["location"]["is_verified"] is False


async def test_a_check_of_credentials_changes_nothing_and_issues_no_token(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    listed = "/api/v1/developer/credentials"
    await services.background.drain()  # the grant's own last_used_at
    before = assert_ok(await alice.get(listed))
    clock.advance(hours=5)
    response = await http.post(VALIDATE, json=check(plugin))
    assert "token" not in response.text
    await services.background.drain()
    assert assert_ok(await alice.get(listed)) == before


async def test_A027_a_wrong_pair_of_id_and_secret_is_invalid(http: httpx.AsyncClient, plugin: Site) -> None:
    for wrong in ({"client_id": "svcid_1_1_nobody"}, {"client_secret": "x"}, {"client_id": "\0"}):
        response = await http.post(VALIDATE, json=check(plugin, **wrong))
        assert assert_ok(response) == {"valid": False, "reason": "invalid_credentials"}
        assert response.headers["cache-control"] == "no-store"


async def test_A027_a_revoked_or_expired_key_is_invalid_like_a_wrong_pair(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    gone, short = await as_service(), await as_service(expires_at="2026-01-02T04:00:00Z")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{gone.key['client_id']}"))
    clock.advance(hours=1)
    for site in (gone, short):
        response = await http.post(VALIDATE, json=check(site))
        assert assert_ok(response) == {"valid": False, "reason": "invalid_credentials"}


async def test_A028_to_A030_a_site_domain_must_be_one_of_the_key(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service(primary_domain="example.com", allowed_domains=["bücher.example"])
    for good in ALLOWED_SITES:
        assert assert_ok(await http.post(VALIDATE, json=check(site, site_domain=good)))["valid"] is True, good
    for bad in OTHER_SITES:
        response = await http.post(VALIDATE, json=check(site, site_domain=bad))
        assert assert_ok(response) == {"valid": False, "reason": "domain_not_allowed"}, bad


async def test_A031_a_deactivated_key_gets_the_reason_only_with_its_secret(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "user_requested")
    details = assert_error(await http.post(VALIDATE, json=check(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert details == {
        "deactivation_reason": "user_requested",
        "deactivated_at": "2026-01-02T03:04:05.678Z",
        "upgrade_url": "http://profiles.test/dashboard",
    }
    wrong = await http.post(VALIDATE, json=check(plugin, client_secret="x"))
    assert assert_ok(wrong) == {"valid": False, "reason": "invalid_credentials"}


async def test_A032_fields_that_are_missing_or_no_strings_are_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    for name in ("client_id", "client_secret"):
        body = {key: value for key, value in check(plugin).items() if key != name}
        assert fields(assert_error(await http.post(VALIDATE, json=body), 400, "VALIDATION_ERROR")) == [name]
        value: Any
        for value in (None, 5, []):
            response = await http.post(VALIDATE, json=check(plugin, **{name: value}))
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name]
    for value in (5, [], {}, True):
        response = await http.post(VALIDATE, json=check(plugin, site_domain=value))
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["site_domain"]
