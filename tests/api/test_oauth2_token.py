"""POST /oauth2/token: both grants in the shapes and errors of RFC 6749 (D-05)."""

from urllib.parse import quote, quote_plus

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.domain.time import FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok
from support.identity.oauth import FORM, GRANT, OFFLINE, TOKEN, assert_oauth_error, assert_tokens, basic, basic_header
from support.tokens import LOCATIONS, claims

JSON_ROUTE = "/api/v1/auth/token"


def refresh_form(token: str) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": token}


@pytest.mark.parametrize("way", ["basic", "form", "both with the id alone"])
async def test_a_client_credentials_grant_returns_the_fields_of_the_standard(
    http: httpx.AsyncClient, plugin: Site, way: str
) -> None:
    form, headers = {**GRANT, "unknown": "ignored"}, basic(plugin)
    if way == "form":
        form, headers = {**form, **plugin.credentials}, {}
    elif way != "basic":
        form["client_id"] = plugin.key["client_id"]
    body = assert_tokens(await http.post(TOKEN, data=form, headers=headers), refreshable=False)
    assert body["expires_in"] == 7_776_000
    assert body["scope"] == "business.read business.write"
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    assert_ok(await http.get(LOCATIONS, headers=headers))


async def test_the_access_token_has_the_claims_of_rfc_9068(http: httpx.AsyncClient, plugin: Site) -> None:
    body = assert_tokens(await http.post(TOKEN, data=GRANT, headers=basic(plugin)), refreshable=False)
    found = claims(body["access_token"])
    assert {"iss", "exp", "aud", "sub", "client_id", "iat", "jti"} <= set(found)
    assert found["iss"] == found["aud"] == "http://profiles.test"


async def test_basic_credentials_are_accepted_plain_and_percent_encoded(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    """RFC 6749 §2.3.1 wants the encoding and most libraries leave it out; secrets hold + and /."""
    seen: set[str] = set()
    while not seen >= {"+", "/"}:
        site = await as_service()
        client, secret = site.key["client_id"], site.key["client_secret"]
        seen |= set(secret)
        for pair in (f"{client}:{secret}", f"{quote_plus(client)}:{quote_plus(secret)}"):
            assert_tokens(await http.post(TOKEN, data=OFFLINE, headers=basic_header(pair)))
        everything = "".join(f"%{ord(letter):02x}" for letter in secret)
        assert_tokens(await http.post(TOKEN, data=OFFLINE, headers=basic_header(f"{quote(client)}:{everything}")))


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        ("business.read", "business.read"),
        ("business.write business.read", "business.read business.write"),
        ("business.read  business.admin ", "business.read"),
        ("", "business.read business.write"),
        ("offline_access", "business.read business.write offline_access"),
        ("business.read offline_access", "business.read offline_access"),
        ("OFFLINE_ACCESS business.read", "business.read"),
    ],
)
@ON_ONE_DATABASE
async def test_the_scope_of_a_grant_names_its_permissions(
    http: httpx.AsyncClient, plugin: Site, scope: str, granted: str
) -> None:
    response = await http.post(TOKEN, data={**GRANT, "scope": scope}, headers=basic(plugin))
    body = assert_tokens(response, refreshable=granted.endswith(" offline_access"))
    assert body["scope"] == granted
    permissions = [name for name in granted.split() if name != "offline_access"]
    assert claims(body["access_token"])["permissions"] == permissions


async def test_a_scope_that_leaves_no_permission_is_invalid(http: httpx.AsyncClient, as_service: AsService) -> None:
    reader = await as_service(permissions=["business.read"])
    many = " ".join(["business.read"] * 33)
    for scope in (
        "business.write",
        "business.write offline_access",
        "BUSINESS.READ",
        "business.read\tx",
        "é",
        'a"b',
        "\0",
        many,
        "x" * 9_000,
    ):
        response = await http.post(TOKEN, data={**GRANT, "scope": scope}, headers=basic(reader))
        assert assert_oauth_error(response, 400, "invalid_scope") == {}, scope


async def test_wrong_credentials_are_an_invalid_client(
    http: httpx.AsyncClient, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    site, other = await as_service(), await as_service()
    client, secret = site.key["client_id"], site.key["client_secret"]
    pairs = [
        (client, "A" * 64),
        ("svcid_1_1_nobody", secret),
        (other.key["client_id"], secret),
        (client, f"{secret} "),
    ]
    for pair in pairs:
        for response in (
            await http.post(TOKEN, data={**GRANT, "client_id": pair[0], "client_secret": pair[1]}),
            await http.post(TOKEN, data=GRANT, headers=basic_header(":".join(pair))),
        ):
            assert assert_oauth_error(response, 401, "invalid_client") == {}
    for form in ({}, {"client_id": client}, {"client_secret": secret}, {"client_id": client, "client_secret": ""}):
        assert_oauth_error(await http.post(TOKEN, data={**GRANT, **form}), 401, "invalid_client")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{client}"))
    assert_oauth_error(await http.post(TOKEN, data=GRANT, headers=basic(site)), 401, "invalid_client")


async def test_a_client_that_authenticates_twice_is_rejected(http: httpx.AsyncClient, as_service: AsService) -> None:
    site, other = await as_service(), await as_service()
    twice = {**GRANT, **site.credentials}
    assert_oauth_error(await http.post(TOKEN, data=twice, headers=basic(site)), 400, "invalid_request")
    another = {**GRANT, "client_id": other.key["client_id"]}
    assert_oauth_error(await http.post(TOKEN, data=another, headers=basic(site)), 400, "invalid_request")
    headers = [("Authorization", basic(site)["Authorization"])] * 2
    assert_oauth_error(await http.post(TOKEN, data=GRANT, headers=headers), 400, "invalid_request")


async def test_A014_a_deactivated_key_cannot_authenticate(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
    for form in (GRANT, refresh_form(plugin.tokens["refresh_token"])):
        told = assert_oauth_error(await http.post(TOKEN, data=form, headers=basic(plugin)), 401, "invalid_client")
        assert told == {
            "deactivation_reason": "billing_issue",
            "deactivated_at": "2026-01-02T03:04:05.678Z",
            "upgrade_url": "http://profiles.test/dashboard",
        }
    wrong = await http.post(TOKEN, data=GRANT, headers=basic_header(f"{plugin.key['client_id']}:wrong"))
    assert assert_oauth_error(wrong, 401, "invalid_client") == {}


async def test_a_refresh_token_is_issued_on_request(http: httpx.AsyncClient, plugin: Site, clock: FrozenClock) -> None:
    """RFC 6749 §4.4.3: a client credentials response should not include one."""
    body = assert_tokens(await http.post(TOKEN, data=OFFLINE, headers=basic(plugin)))
    assert body["refresh_expires_in"] == 2_592_000
    clock.advance(days=29)
    form = refresh_form(body["refresh_token"])
    successor = assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin)))
    assert successor["scope"] == body["scope"]
    assert successor["refresh_token"] != body["refresh_token"]


async def test_both_token_routes_return_the_same_successor_of_a_refresh_token(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    form = refresh_form(plugin.tokens["refresh_token"])
    first = assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin)))
    again = assert_tokens(await http.post(TOKEN, data={**form, **plugin.credentials}))
    assert again == first  # within the grace (D-10)
    by_json = await http.post(JSON_ROUTE, json=form)
    assert assert_ok(by_json)["refresh_token"] == first["refresh_token"]


async def test_reuse_of_a_refresh_token_ends_its_family(
    http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    form = refresh_form(plugin.tokens["refresh_token"])
    first = assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin)))
    clock.advance(seconds=31)
    assert_oauth_error(await http.post(TOKEN, data=form, headers=basic(plugin)), 400, "invalid_grant")
    headers = {"Authorization": f"Bearer {first['access_token']}"}
    assert_error(await http.get(LOCATIONS, headers=headers), 401, "AUTH_INVALID_TOKEN")


async def test_a_client_that_refreshes_must_authenticate_and_own_the_token(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    site, other = await as_service(), await as_service()
    form = refresh_form(site.tokens["refresh_token"])
    assert_oauth_error(await http.post(TOKEN, data=form), 401, "invalid_client")
    named = {**form, "client_id": site.key["client_id"]}
    assert_oauth_error(await http.post(TOKEN, data=named), 401, "invalid_client")
    wrong = {**named, "client_secret": "wrong"}
    assert_oauth_error(await http.post(TOKEN, data=wrong), 401, "invalid_client")
    assert_oauth_error(await http.post(TOKEN, data=form, headers=basic(other)), 400, "invalid_grant")
    assert_tokens(await http.post(TOKEN, data=form, headers=basic(site)))  # none of that used it up


async def test_strings_that_are_not_refresh_tokens_are_an_invalid_grant(
    http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    for token in ("x", "a.b.c", "x" * 9_000, plugin.tokens["access_token"], "\0", "é"):
        response = await http.post(TOKEN, data=refresh_form(token), headers=basic(plugin))
        assert_oauth_error(response, 400, "invalid_grant")
    missing = await http.post(TOKEN, data={"grant_type": "refresh_token"}, headers=basic(plugin))
    assert_oauth_error(missing, 400, "invalid_request")
    assert missing.json()["error_description"] == "`refresh_token` is required."
    clock.advance(days=30)
    late = await http.post(TOKEN, data=refresh_form(plugin.tokens["refresh_token"]), headers=basic(plugin))
    assert_oauth_error(late, 400, "invalid_grant")
    assert "client credentials" in late.json()["error_description"]


async def test_a_scope_does_not_change_the_permissions_of_a_refresh(http: httpx.AsyncClient, plugin: Site) -> None:
    form = {**refresh_form(plugin.tokens["refresh_token"]), "scope": "business.read"}
    body = assert_tokens(await http.post(TOKEN, data=form, headers=basic(plugin)))
    assert body["scope"] == "business.read business.write offline_access"


async def test_other_grant_types_are_unsupported(http: httpx.AsyncClient, plugin: Site) -> None:
    for grant in ("password", "authorization_code", "CLIENT_CREDENTIALS", "client_credentials ", "\0"):
        response = await http.post(TOKEN, data={"grant_type": grant}, headers=basic(plugin))
        assert_oauth_error(response, 400, "unsupported_grant_type")
    for form in ({}, {"grant_type": ""}):
        response = await http.post(TOKEN, data=form, headers={**FORM, **basic(plugin)})
        assert_oauth_error(response, 400, "invalid_request")


async def test_a_bearer_token_does_not_authenticate_a_client(http: httpx.AsyncClient, plugin: Site) -> None:
    headers = {"Authorization": f"Bearer {plugin.tokens['access_token']}"}
    assert_oauth_error(await http.post(TOKEN, data=GRANT, headers=headers), 401, "invalid_client")


async def test_parameters_in_the_url_do_not_count(http: httpx.AsyncClient, plugin: Site) -> None:
    response = await http.post(TOKEN, params={**GRANT, **plugin.credentials}, headers=FORM)
    assert_oauth_error(response, 400, "invalid_request")
    response = await http.post(TOKEN, data=GRANT, params=plugin.credentials)
    assert_oauth_error(response, 401, "invalid_client")


async def test_A017_the_json_route_refers_a_form_to_the_oauth2_route(http: httpx.AsyncClient, plugin: Site) -> None:
    response = await http.post(JSON_ROUTE, data={**GRANT, **plugin.credentials})
    assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    message = response.json()["error"]["message"]
    assert "application/json" in message
    assert "/oauth2/token" in message
