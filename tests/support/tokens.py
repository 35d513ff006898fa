"""Shared parts of the tests of the token route: its bodies, the claims of a token, and its two errors."""

import base64
import json
from typing import Any

import httpx

from support.api import Site, assert_error

PATH = "/api/v1/auth/token"


LOCATIONS = "/api/v1/external-business/locations"


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


def assert_bad_refresh(response: httpx.Response, expired: bool = False) -> None:
    """The one refusal; of a genuine token that is too old it names the way out."""
    assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {}
    hint = " Use the client credentials grant." if expired else ""
    assert response.json()["error"]["message"] == f"Invalid or expired refresh token.{hint}"
