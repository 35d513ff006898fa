"""D-127: a site is the same one for the credential check, pages, heartbeats and the domains of a key."""

from typing import Any

import httpx
import pytest

from conftest import AsService, Change
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok
from support.cases.sites import ADDRESSES

KEYS = "/api/v1/developer/credentials"
VALIDATE = "/api/v1/auth/validate-service-credentials"
LOCATIONS = "/api/v1/external-business/locations"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
VALID = [case for case in ADDRESSES if case["site"]]


async def is_valid(http: httpx.AsyncClient, site: Site, address: str) -> bool:
    response = await http.post(VALIDATE, json={**site.credentials, "site_domain": address})
    valid: bool = assert_ok(response)["valid"]
    return valid


async def is_served(site: Site, address: str) -> bool:
    return (await site.http.get(LOCATIONS, headers={"Origin": f"https://{address}"})).status_code == 200


async def beat(site: Site, *addresses: str) -> None:
    for address in addresses:
        agent: Any = f"WordPress/6.8; {address}".encode()
        assert_ok(await site.http.post(HEARTBEAT, json={}, headers={"User-Agent": agent}))


async def is_mismatch(owner: httpx.AsyncClient, site: Site) -> bool:
    status = assert_ok(await owner.get(f"/api/v1/api-keys/{site.key['client_id']}/status"))
    return "warnings" in status


async def test_a_key_without_domains_checks_what_it_serves(http: httpx.AsyncClient, plugin: Site) -> None:
    for case in ADDRESSES:
        assert await is_valid(http, plugin, case["address"]) is (case["site"] is not None), case
        if case["site"]:
            assert await is_served(plugin, case["site"]), case


async def test_a_domain_of_a_key_is_served_and_checked_or_refused_with_its_rule(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, change: Change, services: Services
) -> None:
    change(settings=services.settings.model_copy(update={"environment": "production"}))
    path = f"{KEYS}/{plugin.key['client_id']}"
    for case in ADDRESSES:
        response = await alice.patch(path, json={"allowed_domains": [case["address"]]})
        if case["refused"]:
            details = assert_error(response, 400, "VALIDATION_ERROR")
            assert [each["problem"] for each in details["errors"]] == [case["refused"]], case
            continue
        assert assert_ok(response)["allowed_domains"] == [case["site"]], case
        assert await is_valid(http, plugin, case["address"]), case
        assert await is_served(plugin, case["site"]), case
        assert not await is_valid(http, plugin, "other.example"), case
        assert not await is_served(plugin, "other.example"), case


@pytest.mark.parametrize("members", [{}, {"primary_domain": "harbour.example"}], ids=["no domains", "domains"])
async def test_the_www_twin_is_the_same_site(
    members: dict[str, Any], alice: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service(**members)
    await beat(site, "https://harbour.example", "https://www.harbour.example", "http://HARBOUR.example:80/blog")
    assert not await is_mismatch(alice, site)
    await beat(site, "https://harbour.example:8443")
    assert await is_mismatch(alice, site)


async def test_a_copy_is_not_forgotten_because_the_site_has_two_names(
    alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    """The copy stays the other site, although the twin was the last one before."""
    for members in ({}, {"primary_domain": "harbour.example"}, {"allowed_domains": ["harbour.example", "b.example"]}):
        site = await as_service(**members)
        names = [
            "https://harbour.example",
            "https://b.example" if "allowed_domains" in members else "https://www.harbour.example",
        ]
        clock.advance(minutes=1)
        await beat(site, names[0], "https://my_site.example", names[1], names[0], names[1])
        assert await is_mismatch(alice, site), members
        clock.advance(hours=24)
        await beat(site, *names)
        assert not await is_mismatch(alice, site), members
