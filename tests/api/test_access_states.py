"""The tokens of a key that is deactivated or reactivated, or whose owner is suspended (D-03, D-14, D-27)."""

import httpx
import pytest
from sqlalchemy import update

from conftest import AsUser
from profilesvc.domain.errors import ServiceError
from profilesvc.services import keys as key_service
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage.holds import lift, one_key
from profilesvc.storage.keys import raise_epoch
from profilesvc.storage.tables import keys, users
from profilesvc.storage.users import raise_user_epoch, update_user
from support.api import ALICE, Site, assert_error, assert_ok

LOCATIONS = "/api/v1/external-business/locations"
TOKEN = "/api/v1/auth/token"
REASONS = ("billing_issue", "plan_downgrade", "security_concern", "user_requested")


@pytest.mark.parametrize("reason", REASONS)
async def test_A079_a_deactivated_keys_tokens_are_rejected_with_the_three_details(
    plugin: Site, http: httpx.AsyncClient, services: Services, reason: str
) -> None:
    """For every one of the four reasons (docs/api-contract.md#key-states)."""
    await key_service.deactivate(services, plugin.key["client_id"], reason)
    expected = {
        "deactivation_reason": reason,
        "deactivated_at": "2026-01-02T03:04:05.678Z",
        "upgrade_url": "http://profiles.test/dashboard",
    }
    response = await plugin.http.get(LOCATIONS)
    assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == expected
    refresh = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    response = await http.post(TOKEN, json=refresh)
    assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == expected


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason != "security_concern"])
async def test_tokens_work_again_when_the_hold_is_lifted(plugin: Site, services: Services, reason: str) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], reason)
    await key_service.reactivate(services, plugin.key["client_id"])
    assert_ok(await plugin.http.get(LOCATIONS))


async def test_A080_tokens_from_before_a_security_concern_never_work_again(
    plugin: Site, http: httpx.AsyncClient, services: Services
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "security_concern")
    async with services.storage.write() as session:
        await lift(session, 1, one_key(plugin.key["service_client_id"]), "security_concern")
    response = await plugin.http.get(LOCATIONS)
    assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    refresh = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    assert_error(await http.post(TOKEN, json=refresh), 401, "AUTH_INVALID_TOKEN")
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    assert_ok(await http.post(TOKEN, json=grant))  # a new token has the new epoch


async def test_the_most_severe_hold_is_shown(plugin: Site, services: Services) -> None:
    for reason in ("user_requested", "plan_downgrade", "billing_issue", "security_concern"):
        await key_service.deactivate(services, plugin.key["client_id"], reason)
        details = assert_error(await plugin.http.get(LOCATIONS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details["deactivation_reason"] == reason


async def test_A075_the_row_of_the_key_limits_its_tokens(plugin: Site, services: Services) -> None:
    """Claims are a hint: permissions and location are taken from the key at each request (D-12)."""
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.write"))
    assert_error(await plugin.http.get(LOCATIONS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.read", location_name="locations/112"))
    assert_error(await plugin.http.get(f"{LOCATIONS}/111"), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await plugin.http.get(f"{LOCATIONS}/112"))


async def test_a_narrow_token_stays_narrow(plugin: Site, services: Services, http: httpx.AsyncClient) -> None:
    grant = {"grant_type": "client_credentials", **plugin.credentials, "permissions": ["business.write"]}
    token = assert_ok(await http.post(TOKEN, json=grant))["access_token"]
    response = await http.get(LOCATIONS, headers={"Authorization": f"Bearer {token}"})
    details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert details == {"reason": "permission_missing", "required": "business.read"}
    assert response.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="business.read"'


async def test_A082_the_tokens_of_a_suspended_owner_are_rejected(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, services: Services
) -> None:
    async with services.storage.write() as session:
        await update_user(session, 1, suspended_at=services.clock.now())
    for client in (alice, plugin.http):
        assert assert_error(await client.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    assert_error(await http.post(TOKEN, json=grant), 401, "AUTH_INVALID_TOKEN")
    for email in (ALICE, "nobody@example.com"):
        with pytest.raises(ServiceError, match="no active user"):
            await tokens.user_token(services, email)
    async with services.storage.write() as session:
        await update_user(session, 1, suspended_at=None)
    assert_ok(await alice.get(LOCATIONS))
    assert_ok(await plugin.http.get(LOCATIONS))


async def test_a_logout_ends_the_users_tokens_and_not_the_keys(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    async with services.storage.write() as session:
        await raise_user_epoch(session, 1)
    assert assert_error(await alice.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    assert_ok(await plugin.http.get(LOCATIONS))


async def test_a_changed_plan_counts_from_the_next_request(as_user: AsUser, services: Services) -> None:
    client = await as_user(ALICE)
    async with services.storage.write() as session:
        await session.execute(update(users).where(users.c.id == 1).values(plan="starter"))
    response = await client.post("/api/v1/posts", params={"locationId": "111"}, json={"summary": "x"})
    assert_error(response, 403, "PLAN_RESTRICTION")


async def test_A078_a_raised_epoch_ends_a_keys_tokens(plugin: Site, services: Services) -> None:
    async with services.storage.write() as session:
        await raise_epoch(session, 1, plugin.key["service_client_id"])
    assert assert_error(await plugin.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
