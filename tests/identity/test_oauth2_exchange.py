"""The token exchange at the standard endpoint (RFC 8693), with and without an identity provider."""

import httpx
import pytest
from sqlalchemy import select

from conftest import Change, Dial
from profilesvc.services.context import Services
from profilesvc.storage.tables import sessions
from support.api import assert_ok
from support.identity.issuer import body, claims, signed
from support.identity.oauth import INTROSPECT, METADATA, TOKEN, assert_oauth_error, assert_private, basic_header
from support.tokens import LOCATIONS

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.mark.usefixtures("linked")
async def test_an_id_token_becomes_a_user_token(dial: Dial, http: httpx.AsyncClient) -> None:
    form = body(signed(claims(nonce="n-1")), nonce="n-1", client_id="profiles-dashboard")
    response = await http.post(TOKEN, data=form)
    granted = response.json()
    assert response.status_code == 200, response.text
    assert_private(response)
    token = granted.pop("access_token")
    assert granted == {
        "token_type": "Bearer",
        "expires_in": 604_800,
        "scope": "business.read business.write",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    async with dial(token) as alice:
        assert_ok(await alice.get(LOCATIONS))
        assert (await alice.post(INTROSPECT, data={"token": token})).json()["active"] is True
    assert_oauth_error(await http.post(TOKEN, data=form), 400, "invalid_request")  # it is valid once


@pytest.mark.parametrize("path", [TOKEN, "/api/v1/auth/token"])
@pytest.mark.usefixtures("linked")
async def test_the_session_has_the_name_of_the_program(http: httpx.AsyncClient, services: Services, path: str) -> None:
    http.headers["User-Agent"] = "reports/1.2 (nightly)"
    sent = body(signed())
    response = await (http.post(path, data=sent) if path == TOKEN else http.post(path, json=sent))
    assert response.status_code == 200, response.text
    async with services.storage.read() as session:
        assert (await session.execute(select(sessions.c.browser))).scalars().all() == ["reports"]


@pytest.mark.usefixtures("linked")
async def test_invalid_exchanges_are_rejected(http: httpx.AsyncClient) -> None:
    good = body(signed())
    for members in ({"subject_token": "x"}, {"subject_token": ""}, {"subject_token_type": "x"}, {"nonce": "other"}):
        response = await http.post(TOKEN, data={**good, **members})
        assert assert_oauth_error(response, 400, "invalid_request") == {}, members
    wrong = await http.post(TOKEN, data=good, headers=basic_header("svcid_1_1_nobody:x"))
    assert_oauth_error(wrong, 401, "invalid_client")
    assert (await http.post(TOKEN, data=good)).status_code == 200  # none of that used it up


async def test_a_login_without_a_linked_user(http: httpx.AsyncClient) -> None:
    assert_oauth_error(await http.post(TOKEN, data=body(signed())), 403, "access_denied")


async def test_the_metadata_names_it_only_if_it_is_supported(change: Change, http: httpx.AsyncClient) -> None:
    always = ["client_credentials", "refresh_token"]
    assert (await http.get(METADATA)).json()["grant_types_supported"] == [*always, EXCHANGE]
    change(identity=None)
    assert (await http.get(METADATA)).json()["grant_types_supported"] == always
    assert_oauth_error(await http.post(TOKEN, data=body(signed())), 400, "unsupported_grant_type")
    change()
