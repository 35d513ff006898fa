"""The client credentials grant: the permission table, and rows A001 to A022 of the list of bad input."""

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest

from conftest import AsService
from profilesvc.domain.time import SECOND, FrozenClock, parse_iso
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok, fields
from support.tokens import BOTH, LOCATIONS, PATH, assert_bad_credentials, assert_bad_refresh, claims, grant, refresh

JSON = {"Content-Type": "application/json"}


NOT_ALLOWED = {"reason": "permissions_not_allowed"}
REASONS = ("billing_issue", "plan_downgrade", "security_concern", "user_requested")


async def test_a_grant_returns_every_field_of_the_contract(http: httpx.AsyncClient, plugin: Site) -> None:
    response = await http.post(PATH, json=grant(plugin))
    data = assert_ok(response)
    access, refresh_token = data.pop("access_token"), data.pop("refresh_token")
    assert data == {
        "token_type": "Bearer",
        "scope": "service",
        "plan": "pro",
        "expires_in": 7_776_000,
        "permissions": BOTH,
        "refresh_expires_in": 2_592_000,
    }
    assert response.headers["cache-control"] == "no-store"
    for token, alg, typ in [(access, "RS256", "at+jwt"), (refresh_token, "HS256", "rt+jwt")]:
        header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
        assert (header["alg"], header["typ"]) == (alg, typ)


async def test_an_access_token_has_the_claims_of_its_key(http: httpx.AsyncClient, plugin: Site) -> None:
    data = assert_ok(await http.post(PATH, json=grant(plugin)))
    found = claims(data["access_token"])
    client = plugin.key["client_id"]
    assert found | {"jti": "", "fam": ""} == {
        "iss": "http://profiles.test",
        "aud": "http://profiles.test",
        "sub": client,
        "client_id": client,
        "iat": 1_767_323_045,
        "exp": 1_767_323_045 + 7_776_000,
        "scope": "service",
        "permissions": BOTH,
        "location": "locations/111",
        "business_id": 10,
        "epoch": 0,
        "jti": "",
        "fam": "",
        "gen": 0,
        "auth_time": 1_767_323_045,
    }
    assert claims(data["refresh_token"])["aud"] == "http://profiles.test/api/v1/auth/token"
    assert claims(data["refresh_token"])["exp"] == 1_767_323_045 + 2_592_000
    assert len(base64.urlsafe_b64decode(found["jti"] + "==")) == 16


@pytest.mark.parametrize(
    ("allowed", "requested", "granted"),
    [
        (BOTH, ["business.read"], ["business.read"]),
        (BOTH, None, BOTH),
        (BOTH, ["business.write"], ["business.write"]),
        (["business.read"], ["business.write"], None),
    ],
)
async def test_a_grant_has_the_requested_permissions_that_the_key_allows(
    http: httpx.AsyncClient, as_service: AsService, allowed: list[str], requested: Any, granted: Any
) -> None:
    site = await as_service(permissions=allowed)
    body = grant(site) if requested is None else grant(site, permissions=requested)
    response = await http.post(PATH, json=body)
    if granted is None:
        details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details == {**NOT_ALLOWED, "requested": ["business.write"], "allowed": ["business.read"]}
    else:
        data = assert_ok(response)
        assert data["permissions"] == granted
        assert claims(data["access_token"])["permissions"] == granted


async def test_an_access_token_lasts_ninety_days_to_the_second(plugin: Site, clock: FrozenClock) -> None:
    end = claims(plugin.tokens["access_token"])["exp"] * SECOND
    clock.advance(milliseconds=end - 1 - clock.now())
    assert_ok(await plugin.http.get(LOCATIONS))
    clock.advance(milliseconds=1)
    details = assert_error(await plugin.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN")
    assert details == {"reason": "expired"}


async def test_A026_simultaneous_grants_are_separate_families(http: httpx.AsyncClient, plugin: Site) -> None:
    answers = await asyncio.gather(*(http.post(PATH, json=grant(plugin)) for _ in range(50)))
    found = [claims(assert_ok(answer)["access_token"]) for answer in answers]
    assert len({claim["jti"] for claim in found}) == len({claim["fam"] for claim in found}) == 50


async def test_A001_a_body_that_is_not_an_object_is_rejected(http: httpx.AsyncClient) -> None:
    for raw in (b"", b" \n", b"{", b"[]", b"null", b'"x"', b"5", b"true", b"{}{}", b"'{}'"):
        assert_error(await http.post(PATH, content=raw, headers=JSON), 400, "VALIDATION_ERROR")


async def test_A002_an_invalid_grant_type_is_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    wrong: tuple[Any, ...] = ("password", "CLIENT_CREDENTIALS", ["client_credentials"], "", 5, None, {}, True)
    for value in wrong:
        response = await http.post(PATH, json={**plugin.credentials, "grant_type": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["grant_type"], value
    response = await http.post(PATH, json=plugin.credentials)
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["grant_type"]


async def test_A003_credentials_that_are_missing_or_no_strings_are_rejected(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    for name in ("client_id", "client_secret"):
        value: Any
        for value in (None, 5, {}, [], True):
            response = await http.post(PATH, json=grant(plugin, **{name: value}))
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name], value
        body = {key: value for key, value in grant(plugin).items() if key != name}
        assert fields(assert_error(await http.post(PATH, json=body), 400, "VALIDATION_ERROR")) == [name]


async def test_A004_A005_an_unknown_id_and_a_wrong_secret_get_the_same_response(
    http: httpx.AsyncClient, plugin: Site
) -> None:
    unknown = await http.post(PATH, json=grant(plugin, client_id="svcid_1_1_nobody"))
    wrong = await http.post(PATH, json=grant(plugin, client_secret="A" * 64))
    assert_bad_credentials(unknown)
    assert_bad_credentials(wrong)
    assert unknown.json() == wrong.json()


async def test_A006_a_secret_that_is_nearly_right_is_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    secret = plugin.key["client_secret"]
    near = [f"{secret}\n", f"{secret} ", f" {secret}", f"{secret}=", secret.lower(), secret[:63], "", secret * 2]
    near.append(secret.replace("+", "-").replace("/", "_") if set("+/") & set(secret) else f"-{secret[1:]}")
    for value in near:
        assert value != secret
        assert_bad_credentials(await http.post(PATH, json=grant(plugin, client_secret=value)))
    assert_ok(await http.post(PATH, json=grant(plugin)))


async def test_A007_the_secret_of_another_key_is_rejected(http: httpx.AsyncClient, as_service: AsService) -> None:
    one, two = await as_service(), await as_service()
    body = grant(one, client_secret=two.key["client_secret"])
    assert_bad_credentials(await http.post(PATH, json=body))


async def test_A008_an_id_that_is_nearly_right_is_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    client = plugin.key["client_id"]
    near = [client.upper(), f" {client}", f"{client} ", f"{client}\n", f"{client}\0", f"{client[:-1]}%"]
    near += [
        f"{client[:-1]}_",
        "%",
        "svcid_%",
        "svcid_1_1_a' OR '1'='1",
        "",
        "\0",
        "x" * 10_000,
        "svcid_1_1_\uff41",
    ]
    for value in near:
        assert_bad_credentials(await http.post(PATH, json=grant(plugin, client_id=value)))


async def test_A009_a_body_of_more_than_64_kib_is_too_large(http: httpx.AsyncClient, plugin: Site) -> None:
    big = await http.post(PATH, json=grant(plugin, client_secret="x" * 2**20))
    assert_error(big, 413, "PAYLOAD_TOO_LARGE")
    body = json.dumps(grant(plugin)).encode()
    edge = await http.post(PATH, content=body + b" " * (65_536 - len(body)), headers=JSON)
    assert_ok(edge)
    beyond = await http.post(PATH, content=body + b" " * (65_537 - len(body)), headers=JSON)
    assert_error(beyond, 413, "PAYLOAD_TOO_LARGE")


async def test_A010_permissions_of_another_shape_are_rejected(http: httpx.AsyncClient, plugin: Site) -> None:
    value: Any
    for value in ("business.read", [1], {}, [None], [["business.read"]], ["business.read"] * 33, 5, True):
        response = await http.post(PATH, json=grant(plugin, permissions=value))
        named = fields(assert_error(response, 400, "VALIDATION_ERROR"))
        assert all(name.split(".")[0] == "permissions" for name in named), value


async def test_A011_a_grant_that_leaves_no_permission_is_rejected(
    http: httpx.AsyncClient, as_service: AsService
) -> None:
    reader = await as_service(permissions=["business.read"])
    for requested in (["business.admin"], ["business.write"], ["BUSINESS.READ"], [""], [" business.read"]):
        response = await http.post(PATH, json=grant(reader, permissions=requested))
        details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details == {**NOT_ALLOWED, "requested": requested, "allowed": ["business.read"]}


async def test_A012_a_grant_without_permissions_has_all_of_the_key(http: httpx.AsyncClient, plugin: Site) -> None:
    members: dict[str, Any]
    for members in ({}, {"permissions": None}, {"permissions": []}):
        assert assert_ok(await http.post(PATH, json=grant(plugin, **members)))["permissions"] == BOTH


async def test_A013_a_grant_has_each_known_permission_once(http: httpx.AsyncClient, plugin: Site) -> None:
    for requested in (["business.read", "business.read"], ["business.admin", "business.read"]):
        data = assert_ok(await http.post(PATH, json=grant(plugin, permissions=requested)))
        assert data["permissions"] == ["business.read"]
    requested = ["business.write", "business.read"]
    assert assert_ok(await http.post(PATH, json=grant(plugin, permissions=requested)))["permissions"] == BOTH


async def test_A014_A015_a_deactivated_key_gets_the_reason_and_no_token(
    http: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
) -> None:
    for reason in REASONS:
        site = await as_service()
        await key_service.deactivate(services, site.key["client_id"], reason)
        clock.advance(seconds=1)
        details = assert_error(await http.post(PATH, json=grant(site)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        since = details.pop("deactivated_at")
        assert details == {"deactivation_reason": reason, "upgrade_url": "http://profiles.test/dashboard"}
        assert parse_iso(since) == clock.now() - SECOND
        assert_bad_credentials(await http.post(PATH, json=grant(site, client_secret="A" * 64)))
        clock.advance(seconds=1)


async def test_A016_a_revoked_or_expired_key_gets_no_token(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    gone, short = await as_service(), await as_service(expires_at="2026-01-03T00:00:00Z")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{gone.key['client_id']}"))
    assert_bad_credentials(await http.post(PATH, json=grant(gone)))
    clock.advance(milliseconds=parse_iso("2026-01-03T00:00:00Z") - 1 - clock.now())
    assert_ok(await http.post(PATH, json=grant(short)))
    clock.advance(milliseconds=1)
    assert_bad_credentials(await http.post(PATH, json=grant(short)))
    assert assert_error(await short.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "expired"}
    assert_bad_refresh(await http.post(PATH, json=refresh(short)), expired=True)
