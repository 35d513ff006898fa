"""The token route: both grants, the permission table, and rows A001 to A022 of the list of bad input."""

import asyncio
import base64
import json
import logging
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import AsService, AsUser
from profilesvc.domain.world import DAY, SECOND, FrozenClock, parse_iso
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage.tables import keys
from support import ALICE, Site, assert_error, assert_ok, fields

PATH = "/api/v1/auth/token"
LOCATIONS = "/api/v1/external-business/locations"
JSON = {"Content-Type": "application/json"}
REASONS = ("billing_issue", "plan_downgrade", "security_concern", "user_requested")
BOTH = ["business.read", "business.write"]


def grant(site: Site, **members: Any) -> dict[str, Any]:
    return {"grant_type": "client_credentials", **site.credentials, **members}


def refresh(site: Site, **members: Any) -> dict[str, Any]:
    return {"grant_type": "refresh_token", "refresh_token": site.tokens["refresh_token"], **members}


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


def assert_bad_credentials(response: httpx.Response) -> None:
    details = assert_error(response, 401, "AUTH_INVALID_TOKEN")
    assert "invalid client credentials" in response.json()["error"]["message"].lower()
    assert details == {}
    assert response.headers["cache-control"] == "no-store"
    assert "www-authenticate" not in response.headers  # no bearer token was asked for


def assert_bad_refresh(response: httpx.Response) -> None:
    assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {}
    assert "invalid or expired refresh token" in response.json()["error"]["message"].lower()


class TestClientCredentials:
    async def test_answers_every_member_of_the_contract(self, http: httpx.AsyncClient, plugin: Site) -> None:
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
        for token, typ in [(access, "at+jwt"), (refresh_token, "rt+jwt")]:
            header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
            assert (header["alg"], header["typ"]) == ("RS256", typ)

    async def test_writes_the_claims_of_the_key(self, http: httpx.AsyncClient, plugin: Site) -> None:
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
    async def test_grants_the_intersection(
        self, http: httpx.AsyncClient, as_service: AsService, allowed: list[str], requested: Any, granted: Any
    ) -> None:
        site = await as_service(permissions=allowed)
        body = grant(site) if requested is None else grant(site, permissions=requested)
        response = await http.post(PATH, json=body)
        if granted is None:
            details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
            assert details == {"requested": ["business.write"], "allowed": ["business.read"]}
        else:
            data = assert_ok(response)
            assert data["permissions"] == granted
            assert claims(data["access_token"])["permissions"] == granted

    async def test_lasts_ninety_days_to_the_second(self, plugin: Site, clock: FrozenClock) -> None:
        end = claims(plugin.tokens["access_token"])["exp"] * SECOND
        clock.advance(milliseconds=end - 1 - clock.now())
        assert_ok(await plugin.http.get(LOCATIONS))
        clock.advance(milliseconds=1)
        details = assert_error(await plugin.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN")
        assert details == {"reason": "expired"}

    async def test_each_time_other_tokens(self, http: httpx.AsyncClient, plugin: Site) -> None:
        """A026 in small: grants at once are separate families."""
        answers = await asyncio.gather(*(http.post(PATH, json=grant(plugin)) for _ in range(10)))
        found = [claims(assert_ok(answer)["access_token"]) for answer in answers]
        assert len({claim["jti"] for claim in found}) == len({claim["fam"] for claim in found}) == 10

    async def test_a001_a_body_that_is_no_object(self, http: httpx.AsyncClient) -> None:
        for raw in (b"", b" \n", b"{", b"[]", b"null", b'"x"', b"5", b"true", b"{}{}", b"'{}'"):
            assert_error(await http.post(PATH, content=raw, headers=JSON), 400, "VALIDATION_ERROR")

    async def test_a002_grant_type(self, http: httpx.AsyncClient, plugin: Site) -> None:
        wrong: tuple[Any, ...] = ("password", "CLIENT_CREDENTIALS", ["client_credentials"], "", 5, None, {}, True)
        for value in wrong:
            response = await http.post(PATH, json={**plugin.credentials, "grant_type": value})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["grant_type"], value
        response = await http.post(PATH, json=plugin.credentials)
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["grant_type"]

    async def test_a003_credentials_missing_or_of_another_type(self, http: httpx.AsyncClient, plugin: Site) -> None:
        for name in ("client_id", "client_secret"):
            for value in (None, 5, {}, [], True):
                response = await http.post(PATH, json=grant(plugin, **{name: value}))
                assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name], value
            body = {key: value for key, value in grant(plugin).items() if key != name}
            assert fields(assert_error(await http.post(PATH, json=body), 400, "VALIDATION_ERROR")) == [name]

    async def test_a004_a005_unknown_id_and_wrong_secret_answer_alike(
        self, http: httpx.AsyncClient, plugin: Site
    ) -> None:
        unknown = await http.post(PATH, json=grant(plugin, client_id="svcid_1_1_nobody"))
        wrong = await http.post(PATH, json=grant(plugin, client_secret="A" * 64))
        assert_bad_credentials(unknown)
        assert_bad_credentials(wrong)
        assert unknown.json() == wrong.json()

    async def test_a006_a_secret_that_is_nearly_right(self, http: httpx.AsyncClient, plugin: Site) -> None:
        secret = plugin.key["client_secret"]
        near = [f"{secret}\n", f"{secret} ", f" {secret}", f"{secret}=", secret.lower(), secret[:63], "", secret * 2]
        near.append(secret.replace("+", "-").replace("/", "_") if set("+/") & set(secret) else f"-{secret[1:]}")
        for value in near:
            assert value != secret
            assert_bad_credentials(await http.post(PATH, json=grant(plugin, client_secret=value)))
        assert_ok(await http.post(PATH, json=grant(plugin)))

    async def test_a007_the_secret_of_another_key(self, http: httpx.AsyncClient, as_service: AsService) -> None:
        one, two = await as_service(), await as_service()
        body = grant(one, client_secret=two.key["client_secret"])
        assert_bad_credentials(await http.post(PATH, json=body))

    async def test_a008_an_id_that_is_nearly_right(self, http: httpx.AsyncClient, plugin: Site) -> None:
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

    async def test_a009_too_large(self, http: httpx.AsyncClient, plugin: Site) -> None:
        big = await http.post(PATH, json=grant(plugin, client_secret="x" * 2**20))
        assert_error(big, 413, "PAYLOAD_TOO_LARGE")
        body = json.dumps(grant(plugin)).encode()
        edge = await http.post(PATH, content=body + b" " * (65_536 - len(body)), headers=JSON)
        assert_ok(edge)
        beyond = await http.post(PATH, content=body + b" " * (65_537 - len(body)), headers=JSON)
        assert_error(beyond, 413, "PAYLOAD_TOO_LARGE")

    async def test_a010_permissions_of_another_shape(self, http: httpx.AsyncClient, plugin: Site) -> None:
        for value in ("business.read", [1], {}, [None], [["business.read"]], ["business.read"] * 33, 5, True):
            response = await http.post(PATH, json=grant(plugin, permissions=value))
            named = fields(assert_error(response, 400, "VALIDATION_ERROR"))
            assert all(name.split(".")[0] == "permissions" for name in named), value

    async def test_a011_permissions_that_nothing_is_left_of(
        self, http: httpx.AsyncClient, as_service: AsService
    ) -> None:
        reader = await as_service(permissions=["business.read"])
        for requested in (["business.admin"], ["business.write"], ["BUSINESS.READ"], [""], [" business.read"]):
            response = await http.post(PATH, json=grant(reader, permissions=requested))
            details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
            assert details == {"requested": requested, "allowed": ["business.read"]}

    async def test_a012_no_permissions_are_all(self, http: httpx.AsyncClient, plugin: Site) -> None:
        for members in ({}, {"permissions": None}, {"permissions": []}):
            assert assert_ok(await http.post(PATH, json=grant(plugin, **members)))["permissions"] == BOTH

    async def test_a013_known_permissions_once(self, http: httpx.AsyncClient, plugin: Site) -> None:
        for requested in (["business.read", "business.read"], ["business.admin", "business.read"]):
            data = assert_ok(await http.post(PATH, json=grant(plugin, permissions=requested)))
            assert data["permissions"] == ["business.read"]
        requested = ["business.write", "business.read"]
        assert assert_ok(await http.post(PATH, json=grant(plugin, permissions=requested)))["permissions"] == BOTH

    async def test_a014_a015_deactivated(
        self, http: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
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

    async def test_a016_revoked_or_expired(
        self, http: httpx.AsyncClient, alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
    ) -> None:
        gone, short = await as_service(), await as_service(expires_at="2026-01-03T00:00:00Z")
        assert_ok(await alice.delete(f"/api/v1/developer/credentials/{gone.key['client_id']}"))
        assert_bad_credentials(await http.post(PATH, json=grant(gone)))
        clock.advance(milliseconds=parse_iso("2026-01-03T00:00:00Z") - 1 - clock.now())
        assert_ok(await http.post(PATH, json=grant(short)))
        clock.advance(milliseconds=1)
        assert_bad_credentials(await http.post(PATH, json=grant(short)))
        assert assert_error(await short.http.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
        assert_bad_refresh(await http.post(PATH, json=refresh(short)))

    async def test_a017_a018_media_types_that_are_not_json(self, http: httpx.AsyncClient, plugin: Site) -> None:
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

    async def test_a019_media_types_that_are_json(self, http: httpx.AsyncClient, plugin: Site) -> None:
        body = json.dumps(grant(plugin)).encode()
        for media in (
            "application/json; charset=utf-8",
            "application/vnd.x+json",
            "APPLICATION/JSON",
            "application/json;",
        ):
            assert_ok(await http.post(PATH, content=body, headers={"Content-Type": media}))

    async def test_a020_methods(self, http: httpx.AsyncClient) -> None:
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            response = await http.request(method, PATH)
            assert_error(response, 405, "METHOD_NOT_ALLOWED")
            assert response.headers["allow"] == "OPTIONS, POST"

    async def test_a021_credentials_in_the_query(
        self, http: httpx.AsyncClient, plugin: Site, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="profilesvc")
        for options in ({"json": {}}, {}):
            response = await http.post(PATH, params=grant(plugin), **options)
            assert_error(response, 400, "VALIDATION_ERROR")
            assert plugin.key["client_secret"] not in response.text
        ours = [record for record in caplog.records if record.name.startswith("profilesvc")]
        assert plugin.key["client_secret"] not in "".join(record.getMessage() for record in ours)

    async def test_a022_an_authorization_header_is_ignored(self, http: httpx.AsyncClient, plugin: Site) -> None:
        access = plugin.tokens["access_token"]
        for value in (f"Bearer {access}", "Bearer garbage", "garbage", "Basic eDp5", ""):
            assert_ok(await http.post(PATH, json=grant(plugin), headers={"Authorization": value}))
            bad = await http.post(PATH, json=grant(plugin, client_secret="x"), headers={"Authorization": value})
            assert_bad_credentials(bad)

    async def test_ignores_members_that_it_does_not_know(self, http: httpx.AsyncClient, plugin: Site) -> None:
        data = assert_ok(await http.post(PATH, json=grant(plugin, plan="agency", scope="user", user_id=2)))
        assert (data["plan"], data["scope"]) == ("pro", "service")

    async def test_no_answer_of_this_route_is_stored(
        self, http: httpx.AsyncClient, as_service: AsService, services: Services
    ) -> None:
        site = await as_service()
        await key_service.deactivate(services, site.key["client_id"], "billing_issue")
        for body, status in [(grant(site), 403), ({}, 400), (grant(site, client_secret="x"), 401)]:
            response = await http.post(PATH, json=body)
            assert (response.status_code, response.headers["cache-control"]) == (status, "no-store")


class TestRefresh:
    async def test_answers_the_same_shape(self, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock) -> None:
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

    async def test_lasts_thirty_days_and_then_names_the_way_out(
        self, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
    ) -> None:
        clock.advance(milliseconds=claims(plugin.tokens["refresh_token"])["exp"] * SECOND - clock.now())
        response = await http.post(PATH, json=refresh(plugin))
        assert_bad_refresh(response)
        assert "client credentials" in response.json()["error"]["message"]
        assert_ok(await plugin.http.get(LOCATIONS))  # the access token outlives it (D-11)

    async def test_a044_a045_tokens_of_another_kind(
        self, http: httpx.AsyncClient, as_user: AsUser, plugin: Site
    ) -> None:
        user = (await as_user(ALICE)).headers["Authorization"].removeprefix("Bearer ")
        for token in (plugin.tokens["access_token"], user):
            assert_bad_refresh(await http.post(PATH, json=refresh(plugin, refresh_token=token)))
        headers = {"Authorization": f"Bearer {plugin.tokens['refresh_token']}"}
        details = assert_error(await http.get(LOCATIONS, headers=headers), 401, "AUTH_INVALID_TOKEN")
        assert details == {"reason": "invalid"}

    async def test_a046_credentials_beside_the_token_must_match(
        self, http: httpx.AsyncClient, as_service: AsService
    ) -> None:
        site, other = await as_service(), await as_service()
        for wrong in ({"client_id": other.key["client_id"]}, other.credentials, {"client_secret": "x"}):
            assert_bad_refresh(await http.post(PATH, json=refresh(site, **wrong)))
        assert_ok(await http.post(PATH, json=refresh(site, **site.credentials)))

    async def test_a047_after_the_key_was_revoked(
        self, http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site
    ) -> None:
        assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
        assert_bad_refresh(await http.post(PATH, json=refresh(plugin)))

    async def test_a048_while_deactivated_and_afterwards(
        self, http: httpx.AsyncClient, plugin: Site, services: Services
    ) -> None:
        await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
        details = assert_error(await http.post(PATH, json=refresh(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details["deactivation_reason"] == "billing_issue"
        await key_service.reactivate(services, plugin.key["client_id"])
        assert_ok(await http.post(PATH, json=refresh(plugin)))

    async def test_a049_a050_carries_what_the_key_still_allows(
        self, http: httpx.AsyncClient, as_service: AsService, services: Services
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

    async def test_a051_what_is_no_token(self, http: httpx.AsyncClient, plugin: Site) -> None:
        token = plugin.tokens["refresh_token"]
        for value in (None, 5, {}, [token], True):
            response = await http.post(PATH, json=refresh(plugin, refresh_token=value))
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["refresh_token"], value
        missing = await http.post(PATH, json={"grant_type": "refresh_token"})
        assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["refresh_token"]
        for value in ("", "eyJ", "x" * 60_000, f"{token}=", f"{token}\n", f"{token}\0", token[:-1], "..", "é"):
            assert_bad_refresh(await http.post(PATH, json=refresh(plugin, refresh_token=value)))
        assert_ok(await http.post(PATH, json=refresh(plugin)))


class TestUserToken:
    async def test_lasts_seven_days_and_may_everything(self, alice: httpx.AsyncClient, clock: FrozenClock) -> None:
        found = claims(alice.headers["Authorization"])
        assert (found["scope"], found["sub"]) == ("user", "1")
        assert found["exp"] - found["iat"] == 7 * DAY // SECOND
        names = [entry["name"] for entry in assert_ok(await alice.get(LOCATIONS))["locations"]]
        assert sorted(names) == [f"locations/{ident}" for ident in (111, 112, 113, 114, 119)]
        clock.advance(milliseconds=found["exp"] * SECOND - 1 - clock.now())
        assert_ok(await alice.get(LOCATIONS))
        clock.advance(milliseconds=1)
        assert assert_error(await alice.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "expired"}
