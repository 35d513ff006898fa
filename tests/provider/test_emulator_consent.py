"""The emulator's consent page, codes, refresh tokens and revocation, with Authlib as the client."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import httpx2
import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from profilesvc.domain.time import FrozenClock
from support.provider.rig import Rig, emulator_at, in_process, served

SCOPE = "https://www.googleapis.com/auth/business.manage"
BACK = "https://profiles.example/dashboard/connections/callback"
VERIFIER = "v" * 50
ALICE, BOB = "100001", "100002"


@pytest.fixture
async def rig(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Rig]:
    async with in_process(tmp_path, clock) as made:
        yield made


def client_of(rig: Rig, client_id: str = "service") -> AsyncOAuth2Client:
    return AsyncOAuth2Client(
        client_id,
        "secret",
        scope=f"openid email {SCOPE}",
        redirect_uri=BACK,
        code_challenge_method="S256",
        transport=httpx2.ASGITransport(app=rig.http._transport.app),  # type: ignore[attr-defined]
        base_url=str(rig.http.base_url),
    )


async def consent(rig: Rig, client: AsyncOAuth2Client, subject: str = ALICE, **form: Any) -> dict[str, str]:
    """Return the query of the redirect after the choice on the consent page."""
    base = str(rig.http.base_url).rstrip("/")
    parameters = {"access_type": "offline", "prompt": "consent"}
    url, _ = client.create_authorization_url(f"{base}/o/oauth2/v2/auth", "the-state", VERIFIER, **parameters)
    choices = {"decision": "allow", "subject": subject, "granted": ["openid", "email", SCOPE], **form}
    answer = await rig.http.post(url, data=choices)
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith(f"{BACK}?")
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))


async def connect(rig: Rig, client: AsyncOAuth2Client, subject: str = ALICE, **form: Any) -> dict[str, Any]:
    code = (await consent(rig, client, subject, **form))["code"]
    token: dict[str, Any] = await client.fetch_token("/token", code=code, code_verifier=VERIFIER)
    return token


async def refresh(rig: Rig, token: str) -> httpx.Response:
    form = {"grant_type": "refresh_token", "client_id": "service", "client_secret": "s", "refresh_token": token}
    return await rig.http.post("/token", data=form)


async def test_page_offers_the_logins_and_the_scopes(rig: Rig) -> None:
    async with client_of(rig) as client:
        url, _ = client.create_authorization_url("/o/oauth2/v2/auth", "s", VERIFIER)
        page = await rig.http.get(url)
    assert page.status_code == 200
    for text in ("alice@example.com", "bob@example.com", "carol@example.com", SCOPE):
        assert text in page.text


async def test_login_sees_only_its_own_accounts(rig: Rig) -> None:
    async with client_of(rig) as client:
        token = await connect(rig, client, BOB)
        assert token["refresh_token"].startswith("1//")
        assert token["scope"].split() == ["openid", "email", SCOPE]
        accounts = (await client.get("/v1/accounts")).json()["accounts"]
        assert [account["name"] for account in accounts] == ["accounts/2"]
        mask = {"readMask": "name"}
        names = (await client.get("/v1/accounts/-/locations", params=mask)).json()["locations"]
        assert {each["name"] for each in names} == {"locations/211", "locations/219"}
        for path in ("accounts/1/locations", "locations/111", "locations/111:getGoogleUpdated"):
            assert (await client.get(f"/v1/{path}", params=mask)).status_code == 404
        assert (await client.get("/v4/accounts/1/locations/111/localPosts")).status_code == 404
        assert (await client.get("/v4/accounts/2/locations/211/localPosts")).status_code == 200
        who = (await client.get("/v1/userinfo")).json()
    assert who == {"sub": BOB, "email": "bob@example.com", "email_verified": True}


async def test_own_login_of_the_installation_sees_every_account(emulator: Rig) -> None:
    assert len((await emulator.http.get("/v1/accounts")).json()["accounts"]) == 3


async def test_code_is_exchanged_once(rig: Rig) -> None:
    async with client_of(rig) as client:
        code = (await consent(rig, client))["code"]
        await client.fetch_token("/token", code=code, code_verifier=VERIFIER)
        with pytest.raises(OAuthError, match="invalid_grant"):
            await client.fetch_token("/token", code=code, code_verifier=VERIFIER)


@pytest.mark.parametrize("change", [{"code_verifier": "x" * 50}, {"redirect_uri": f"{BACK}/2"}, {"code": "4/none"}])
async def test_code_needs_its_verifier_and_its_redirect_address(rig: Rig, change: dict[str, str]) -> None:
    async with client_of(rig) as client:
        code = (await consent(rig, client))["code"]
        with pytest.raises(OAuthError):
            await client.fetch_token("/token", **{"code": code, "code_verifier": VERIFIER, **change})
        await client.fetch_token("/token", code=code, code_verifier=VERIFIER)


async def test_code_belongs_to_its_client_and_expires(rig: Rig) -> None:
    async with client_of(rig) as client, client_of(rig, "other") as other:
        code = (await consent(rig, client))["code"]
        with pytest.raises(OAuthError, match="invalid_grant"):
            await other.fetch_token("/token", code=code, code_verifier=VERIFIER)
        rig.clock.advance(seconds=600)
        with pytest.raises(OAuthError, match="invalid_grant"):
            await client.fetch_token("/token", code=code, code_verifier=VERIFIER)


async def test_denied_consent_returns_to_the_client(rig: Rig) -> None:
    async with client_of(rig) as client:
        form: dict[str, Any]
        for form in ({"decision": "deny"}, {"granted": []}):
            assert await consent(rig, client, **form) == {"error": "access_denied", "state": "the-state"}


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": ""},
        {"redirect_uri": "javascript:alert(1)"},
        {"response_type": "token"},
        {"code_challenge_method": "plain"},
        {"scope": ""},
    ],
)
async def test_wrong_request_is_never_redirected(rig: Rig, change: dict[str, str]) -> None:
    async with client_of(rig) as client:
        url, _ = client.create_authorization_url("/o/oauth2/v2/auth", "s", VERIFIER)
    query = {**dict(parse_qsl(urlsplit(url).query)), **change}
    for answer in (
        await rig.http.get("/o/oauth2/v2/auth", params=query),
        await rig.http.post(url.split("?")[0], params=query),
    ):
        assert answer.status_code == 400
        assert "Location" not in answer.headers


async def test_without_offline_access_there_is_no_refresh_token(rig: Rig) -> None:
    async with client_of(rig) as client:
        url, _ = client.create_authorization_url("/o/oauth2/v2/auth", "s", VERIFIER)
        form = {"decision": "allow", "subject": ALICE, "granted": [SCOPE]}
        back = (await rig.http.post(url, data=form)).headers["Location"]
        code = dict(parse_qsl(urlsplit(back).query))["code"]
        token = await client.fetch_token("/token", code=code, code_verifier=VERIFIER)
    assert "refresh_token" not in token


async def test_missing_scope_is_a_403_of_the_apis(rig: Rig) -> None:
    async with client_of(rig) as client:
        token = await connect(rig, client, granted=["openid", "email"])
        assert token["scope"] == "openid email"
        error = (await client.get("/v1/accounts")).json()["error"]
        assert (error["code"], error["details"][0]["reason"]) == (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT")
        assert (await client.get("/v1/userinfo")).status_code == 200


async def test_revocation_ends_every_token_of_the_login(rig: Rig) -> None:
    async with client_of(rig) as client, client_of(rig) as bob:
        first, second = await connect(rig, client), await connect(rig, client)
        other = await connect(rig, bob, BOB)
        answer = await client.revoke_token("/revoke", first["refresh_token"], "refresh_token")
        assert answer.status_code == 200
        for token in (first, second):
            answer = await refresh(rig, token["refresh_token"])
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
            bearer = {"Authorization": f"Bearer {token['access_token']}"}
            assert (await rig.http.get("/v1/accounts", headers=bearer)).status_code == 401
        assert (await refresh(rig, other["refresh_token"])).status_code == 200
        again = await client.revoke_token("/revoke", first["refresh_token"], "refresh_token")
    assert (again.status_code, again.json()["error"]) == (400, "invalid_token")


async def test_refresh_token_ends_by_time_or_when_the_consent_is_withdrawn(rig: Rig) -> None:
    async with client_of(rig) as client:
        lasting = await connect(rig, client)
        await rig.put_state(switches={"refresh_seconds": 60})
        short = await connect(rig, client)
    rig.clock.advance(seconds=59)
    assert (await refresh(rig, short["refresh_token"])).status_code == 200
    rig.clock.advance(seconds=1)
    assert (await refresh(rig, short["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await refresh(rig, lasting["refresh_token"])).status_code == 200
    await rig.put_state(logins={ALICE: {"email": "alice@example.com", "accounts": ["accounts/1"], "revoked": True}})
    assert (await refresh(rig, lasting["refresh_token"])).json()["error"] == "invalid_grant"


async def test_refresh_token_belongs_to_its_client(rig: Rig) -> None:
    async with client_of(rig, "other") as other:
        token = await connect(rig, other)
    assert (await refresh(rig, token["refresh_token"])).json()["error"] == "invalid_grant"


async def test_new_login_sees_new_locations(rig: Rig) -> None:
    await rig.put_state(
        accounts={"accounts/4": {"accountName": "Dana Roy", "type": "PERSONAL"}},
        new_locations={"locations/411": {"account": "accounts/4", "profile": {"title": "Roy Bakery"}}},
        logins={"100004": {"email": "dana@example.com", "accounts": ["accounts/4"]}},
    )
    async with client_of(rig) as client:
        await connect(rig, client, "100004")
        listed = await client.get("/v1/accounts/accounts/4/locations", params={"readMask": "title"})
        assert listed.status_code == 404
        listed = await client.get("/v1/accounts/4/locations", params={"readMask": "title"})
    assert listed.json() == {"locations": [{"title": "Roy Bakery"}]}


async def test_codes_and_tokens_are_not_recorded(rig: Rig) -> None:
    async with client_of(rig) as client:
        token = await connect(rig, client)
    recorded = (await rig.http.get("/__emulator/requests")).text
    for secret in (token["access_token"], token["refresh_token"], VERIFIER, "4/"):
        assert secret not in recorded


def test_consent_over_a_socket(tmp_path: Path, clock: FrozenClock) -> None:
    with (
        served(emulator_at(tmp_path, clock)) as origin,
        httpx.Client(base_url=origin, trust_env=False, timeout=60) as http,
    ):
        query = {
            "client_id": "x",
            "redirect_uri": BACK,
            "response_type": "code",
            "scope": SCOPE,
            "access_type": "offline",
        }
        form = {"decision": "allow", "subject": ALICE, "granted": [SCOPE]}
        back = http.post("/o/oauth2/v2/auth", params=query, data=form).headers["Location"]
        code = dict(parse_qsl(urlsplit(back).query))["code"]
        grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
        answer = http.post("/token", data=grant, auth=("x", "secret"))
    assert answer.json()["refresh_token"].startswith("1//")
