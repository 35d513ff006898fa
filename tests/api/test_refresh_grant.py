"""The refresh grant, and how long a user token lasts (rows A044 to A051 of the list of bad input)."""

from typing import Any

import httpx
from sqlalchemy import update

from conftest import AsService, AsUser
from profilesvc.domain.time import DAY, SECOND, FrozenClock
from profilesvc.fixtures import fixture_path
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage.tables import keys
from profilesvc.tokens.keys import hmac_key
from support.api import ALICE, Site, assert_error, assert_ok, fields
from support.cases.hostile import Forge, odd_claims
from support.tokens import BOTH, LOCATIONS, PATH, assert_bad_refresh, claims, refresh


async def test_a_refresh_returns_the_same_fields_as_the_first_grant(
    http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    clock.advance(days=29)
    response = await http.post(PATH, json=refresh(plugin))
    data = assert_ok(response)
    assert set(data) == set(plugin.tokens)
    same = {"token_type", "scope", "plan", "expires_in", "permissions", "refresh_expires_in"}
    assert {name: data[name] for name in same} == {name: plugin.tokens[name] for name in same}
    assert response.headers["cache-control"] == "no-store"
    old, new = claims(plugin.tokens["refresh_token"]), claims(data["refresh_token"])
    assert (new["fam"], new["gen"]) == (old["fam"], old["gen"] + 1)
    assert new["jti"] != old["jti"]
    assert new["exp"] == clock.now() // SECOND + 2_592_000
    works = {"Authorization": f"Bearer {data['access_token']}"}
    assert_ok(await http.get(LOCATIONS, headers=works))


async def test_a_refresh_token_is_valid_for_thirty_days(
    http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    clock.advance(milliseconds=claims(plugin.tokens["refresh_token"])["exp"] * SECOND - clock.now())
    response = await http.post(PATH, json=refresh(plugin))
    assert_bad_refresh(response, expired=True)
    assert_ok(await plugin.http.get(LOCATIONS))  # the access token outlives it (D-11)


async def test_A044_A045_access_and_refresh_tokens_do_not_replace_each_other(
    http: httpx.AsyncClient, as_user: AsUser, plugin: Site
) -> None:
    user = (await as_user(ALICE)).headers["Authorization"].removeprefix("Bearer ")
    for token in (plugin.tokens["access_token"], user):
        assert_bad_refresh(await http.post(PATH, json=refresh(plugin, refresh_token=token)))
    headers = {"Authorization": f"Bearer {plugin.tokens['refresh_token']}"}
    details = assert_error(await http.get(LOCATIONS, headers=headers), 401, "AUTH_INVALID_TOKEN")
    assert details == {"reason": "invalid"}


async def test_A074_a_signed_token_with_claims_that_are_not_ours_is_rejected(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    found, key = claims(plugin.tokens["refresh_token"]), hmac_key(fixture_path("refresh_key.pem").read_bytes())
    forge = Forge(key, found, found["iat"], typ="rt+jwt")
    user = {"scope": "user", "sub": "1", "client_id": "dashboard"}
    for name, token in [*odd_claims(forge), ("a user's", forge.with_claims(**user))]:
        response = await http.post(PATH, json=refresh(plugin, refresh_token=token))
        assert response.status_code == 401, name
        assert_bad_refresh(response)
        asked = {**plugin.credentials, "token": token}
        assert (await http.post("/oauth2/introspect", data=asked)).json() == {"active": False}, name
        assert (await http.post("/oauth2/revoke", data=asked)).status_code == 200, name
    assert_ok(await http.post(PATH, json=refresh(plugin, refresh_token=forge.good())))


async def test_A046_credentials_sent_with_a_refresh_token_must_match(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    site, other = await as_service(), await as_service()
    for wrong in ({"client_id": other.key["client_id"]}, other.credentials, {"client_secret": "x"}):
        assert_bad_refresh(await http.post(PATH, json=refresh(site, **wrong)))
    assert_ok(await http.post(PATH, json=refresh(site, **site.credentials)))


async def test_A047_a_refresh_token_of_a_revoked_key_is_rejected(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site
) -> None:
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
    assert_bad_refresh(await http.post(PATH, json=refresh(plugin)))


async def test_A048_a_refresh_fails_only_while_its_key_is_deactivated(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
    details = assert_error(await http.post(PATH, json=refresh(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert details["deactivation_reason"] == "billing_issue"
    await key_service.reactivate(services, plugin.key["client_id"])
    assert_ok(await http.post(PATH, json=refresh(plugin)))


async def test_A049_A050_a_refresh_has_the_permissions_that_the_key_still_allows(
    http: httpx.AsyncClient, as_service: AsService, services: Services
) -> None:
    site = await as_service(requested=["business.read"])
    wider = await http.post(PATH, json=refresh(site, permissions=BOTH))
    assert assert_ok(wider)["permissions"] == ["business.read"]
    site = await as_service()
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.read"))
    reduced = assert_ok(await http.post(PATH, json=refresh(site)))
    assert reduced["permissions"] == ["business.read"]
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.write"))
    again = refresh(site, refresh_token=reduced["refresh_token"])
    assert_error(await http.post(PATH, json=again), 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_A051_strings_that_are_not_refresh_tokens_are_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    token = plugin.tokens["refresh_token"]
    value: Any
    for value in (None, 5, {}, [token], True):
        response = await http.post(PATH, json=refresh(plugin, refresh_token=value))
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["refresh_token"], value
    missing = await http.post(PATH, json={"grant_type": "refresh_token"})
    assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["refresh_token"]
    for value in ("", "eyJ", "x" * 60_000, f"{token}=", f"{token}\n", f"{token}\0", token[:-1], "..", "é"):
        assert_bad_refresh(await http.post(PATH, json=refresh(plugin, refresh_token=value)))
    assert_ok(await http.post(PATH, json=refresh(plugin)))


async def test_a_user_token_is_valid_for_seven_days_with_all_permissions(
    alice: httpx.AsyncClient, clock: FrozenClock
) -> None:
    found = claims(alice.headers["Authorization"])
    assert (found["scope"], found["sub"]) == ("user", "1")
    assert found["exp"] - found["iat"] == 7 * DAY // SECOND
    names = [entry["name"] for entry in assert_ok(await alice.get(LOCATIONS))["locations"]]
    assert sorted(names) == [f"locations/{ident}" for ident in (111, 112, 113, 114, 119)]
    clock.advance(milliseconds=found["exp"] * SECOND - 1 - clock.now())
    assert_ok(await alice.get(LOCATIONS))
    clock.advance(milliseconds=1)
    assert assert_error(await alice.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "expired"}
