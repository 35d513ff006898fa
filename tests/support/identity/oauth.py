"""Shared parts of the tests of the OAuth endpoints: forms, Basic, and the assertion for errors."""

import base64
import re
from typing import Any

import httpx

from support.api import Site

TOKEN, INTROSPECT, REVOKE = "/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"
METADATA, JWKS = "/.well-known/oauth-authorization-server", "/.well-known/jwks.json"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GRANT = {"grant_type": "client_credentials"}
OFFLINE = {**GRANT, "scope": "offline_access"}  # with a refresh token
INACTIVE = {"active": False}
_DESCRIPTION = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]+\Z")


def basic_header(pair: str | bytes) -> dict[str, str]:
    raw = pair.encode() if isinstance(pair, str) else pair
    return {"Authorization": f"Basic {base64.b64encode(raw).decode()}"}


def basic(site: Site) -> dict[str, str]:
    """HTTP Basic as most libraries write it, without percent-encoding."""
    return basic_header(f"{site.key['client_id']}:{site.key['client_secret']}")


def assert_private(response: httpx.Response) -> None:
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["pragma"] == "no-cache"
    assert response.headers["content-type"] == "application/json"


def assert_oauth_error(response: httpx.Response, status: int, word: str) -> dict[str, Any]:
    """Check the form of RFC 6749 §5.2 without our envelope. Return the additional fields."""
    body = response.json()
    assert (response.status_code, body.get("error")) == (status, word), response.text
    assert_private(response)
    assert _DESCRIPTION.match(body["error_description"])
    if word == "invalid_client":
        challenge = 'Basic realm="profilesvc"' if "authorization" in response.request.headers else None
        assert response.headers.get("www-authenticate") == challenge
    elif word == "invalid_token":
        assert response.headers["www-authenticate"].startswith("Bearer")
    return {name: value for name, value in body.items() if name not in ("error", "error_description")}


def assert_tokens(response: httpx.Response, refreshable: bool = True) -> dict[str, Any]:
    """A token response of RFC 6749 §5.1; its scope says whether there is a refresh token."""
    assert response.status_code == 200, response.text
    assert_private(response)
    body: dict[str, Any] = response.json()
    refresh = {"refresh_token", "refresh_expires_in"} if refreshable else set()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"} | refresh
    assert ("offline_access" in body["scope"].split()) is refreshable
    assert body["token_type"] == "Bearer"
    return body


async def introspected(http: httpx.AsyncClient, site: Site, token: str, **form: str) -> Any:
    """The introspection of a token by a key."""
    response = await http.post(INTROSPECT, data={"token": token, **form}, headers=basic(site))
    assert response.status_code == 200, response.text
    assert_private(response)
    return response.json()
