"""The bundled development issuer: an OpenID provider like any other, for the demo users (D-15)."""

from html import unescape
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import httpx2
import pytest
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwk as joserfc_jwk
from joserfc import jwt as joserfc_jwt
from quart import Quart

from conftest import make_settings
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.dev_issuer.provider import DevIssuer, s256
from profilesvc.domain.time import FrozenClock
from profilesvc.fixtures import fixture_path
from profilesvc.operations import operator
from profilesvc.services.context import Services
from profilesvc.settings import IdentitySettings, Settings
from profilesvc.tokens.keys import rsa_key
from support.api import assert_ok
from support.identity.dev_issuer import CALLBACK, ISSUER, REQUEST, VERIFIER, Form, assert_oauth_error, picked, redeemed
from support.identity.issuer import PATH, assert_refused, body


async def test_a_user_signs_in_on_the_page_and_gets_a_user_token(http: httpx.AsyncClient) -> None:
    back = await picked(http)
    assert (back["state"], back["iss"]) == ("s-1", ISSUER)
    answer = await redeemed(http, back["code"])
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    token = answer.json()["id_token"]
    assert answer.json().keys() == {"access_token", "token_type", "expires_in", "scope", "id_token"}
    granted = assert_ok(await http.post(PATH, json=body(token, nonce="n-1")))
    headers = {"Authorization": f"Bearer {granted['access_token']}"}
    mine = assert_ok(await http.get("/api/v1/businesses", headers=headers))
    assert mine["businesses"][0]["name"] == "Harbour Coffee"
    assert_refused(await http.post(PATH, json=body(token, nonce="n-1")), "revoked")


async def test_the_id_token_matches_the_published_documents(http: httpx.AsyncClient) -> None:
    """Read by another library, by nothing but the published documents."""
    found = (await http.get("/dev/issuer/.well-known/openid-configuration")).json()
    assert found["issuer"] == ISSUER
    assert found["code_challenge_methods_supported"] == ["S256"]
    keys = (await http.get(urlsplit(found["jwks_uri"]).path)).json()
    assert not {"d", "p", "q"} & keys["keys"][0].keys()
    code = (await picked(http, "demo-2"))["code"]
    token = (await redeemed(http, code)).json()["id_token"]
    read = joserfc_jwt.decode(token, joserfc_jwk.KeySet.import_key_set(keys), algorithms=["RS256"])
    assert read.claims["iss"] == ISSUER
    assert read.claims["aud"] == "dashboard"
    assert read.claims["nonce"] == "n-1"
    assert (read.claims["sub"], read.claims["email"]) == ("demo-2", "bob@example.com")
    assert read.claims["exp"] - read.claims["iat"] == 300


async def test_two_logins_in_one_moment_are_two_id_tokens(http: httpx.AsyncClient) -> None:
    for _ in range(2):
        code = (await picked(http))["code"]
        assert_ok(await http.post(PATH, json=body((await redeemed(http, code)).json()["id_token"])))


async def test_users_whom_the_operator_linked_can_sign_in(http: httpx.AsyncClient, services: Services) -> None:
    await operator.add_user(services, "dana@example.com", 'D"ana <b>')
    await operator.link(services, "dana@example.com", 'dana"><script>')
    page = await http.get("/dev/issuer/authorize", params=REQUEST)
    form = Form(page.text)
    assert form.subjects[-1] == 'dana"><script>'
    assert 'D"ana <b>' in unescape(page.text)
    code = (await picked(http, form.subjects[-1]))["code"]
    assert (await redeemed(http, code)).status_code == 200


async def test_authlib_signs_in_with_no_special_case(app: Quart, http: httpx.AsyncClient) -> None:
    transport = httpx2.ASGITransport(app=cast(Any, app))
    found = (await http.get("/dev/issuer/.well-known/openid-configuration")).json()
    async with AsyncOAuth2Client(
        "dashboard",
        transport=transport,
        scope="openid email profile",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        token_endpoint_auth_method=found["token_endpoint_auth_methods_supported"][0],
    ) as client:
        verifier, nonce = generate_token(48), generate_token(20)
        url, state = client.create_authorization_url(
            found["authorization_endpoint"], code_verifier=verifier, nonce=nonce
        )
        form = Form((await http.get(url)).text)
        answer = await http.post("/dev/issuer/authorize", data={**form.hidden, "subject": "demo-1"})
        tokens = await client.fetch_token(
            found["token_endpoint"],
            authorization_response=answer.headers["location"],
            state=state,
            code_verifier=verifier,
        )
    assert_ok(await http.post(PATH, json=body(tokens["id_token"], nonce=nonce)))


async def test_a_code_of_the_issuer_is_valid_once(http: httpx.AsyncClient) -> None:
    code = (await picked(http))["code"]
    assert (await redeemed(http, code)).status_code == 200
    assert_oauth_error(await redeemed(http, code), "invalid_grant")


async def test_a_code_is_valid_for_a_minute(http: httpx.AsyncClient, clock: FrozenClock) -> None:
    code = (await picked(http))["code"]
    clock.advance(seconds=61)
    assert_oauth_error(await redeemed(http, code), "invalid_grant")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": s256(VERIFIER)}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_request"),
        ({"code_verifier": "v" * 42}, "invalid_request"),
        ({"redirect_uri": f"{CALLBACK}/"}, "invalid_grant"),
        ({"redirect_uri": CALLBACK.upper()}, "invalid_grant"),
        ({"redirect_uri": ""}, "invalid_grant"),
        ({"client_id": "other"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"code": ""}, "invalid_grant"),
        ({"code": "a.b.c"}, "invalid_grant"),
    ],
)
async def test_a_code_belongs_to_its_request_and_survives_a_wrong_one(
    http: httpx.AsyncClient, changes: dict[str, str], error: str
) -> None:
    code = (await picked(http))["code"]
    assert_oauth_error(await redeemed(http, code, **changes), error)
    assert (await redeemed(http, code)).status_code == 200


async def test_a_code_is_no_id_token_and_an_id_token_is_no_code(http: httpx.AsyncClient) -> None:
    code = (await picked(http))["code"]
    assert_refused(await http.post(PATH, json=body(code)))
    token = (await redeemed(http, code)).json()["id_token"]
    assert_oauth_error(await redeemed(http, token), "invalid_grant")


async def test_the_issuer_has_its_own_key_and_keeps_it(settings: Settings, world: Runtime, clock: FrozenClock) -> None:
    keys: list[Any] = []
    for _ in range(2):
        app = create_app(settings, Runtime(clock))
        async with app.test_app():
            answer = await app.test_client().get("/dev/issuer/jwks.json")
            keys.append((await answer.get_json())["keys"][0])
            assert keys[-1]["kid"] != rsa_key(fixture_path("signing_key.pem").read_bytes()).kid
    assert keys[0] == keys[1]
    assert (settings.data_dir / "dev_issuer_key.pem").stat().st_mode & 0o777 == 0o600


async def test_the_issuer_is_not_served_if_it_is_switched_off_or_replaced(tmp_path: Path, clock: FrozenClock) -> None:
    configured = {"issuer": "https://a.example", "jwks_url": "https://a.example/k", "client_id": "c"}
    for identity in (IdentitySettings(dev_issuer=False), IdentitySettings.model_validate(configured)):
        app = create_app(make_settings(tmp_path, identity=identity), Runtime(clock))
        async with app.test_app():
            client = app.test_client()
            for path in ("/.well-known/openid-configuration", "/authorize", "/jwks.json"):
                assert (await client.get(f"/dev/issuer{path}")).status_code == 404
            answer = await client.post(PATH, json=body("a.b.c"))
            assert answer.status_code == (400 if identity.dev_issuer is False else 401)


async def test_only_demo_users_are_linked_without_the_operator(services: Services, world: Runtime) -> None:
    await operator.add_user(services, "dana@example.com")
    assert isinstance(world.issuer, DevIssuer)
    assert [user.subject for user in await world.issuer.users(services)] == ["demo-1", "demo-2", "demo-3"]
