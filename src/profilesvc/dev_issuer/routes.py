"""The issuer's paths: discovery, keys, login page and token route (OpenID Connect Core §3.1, RFC 7636, RFC 9207)."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import orjson
from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.request import services
from profilesvc.dev_issuer import pages
from profilesvc.dev_issuer.provider import ID_TOKEN_SECONDS, PATH, DevIssuer, Login
from profilesvc.tokens.signer import random_id

_ASKED = (
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "response_mode",
)
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z", re.ASCII)
_PRINTABLE_LIMIT = 512


class _Refused(Exception):
    """An OAuth error; it goes back to the client when that may be told, and to the person otherwise."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error, self.description = error, description


def blueprint(running: Callable[[], DevIssuer]) -> Blueprint:
    """The routes of the issuer that `running` gives once the service is open."""
    made = Blueprint("dev_issuer", __name__, url_prefix=PATH)

    @made.get("/.well-known/openid-configuration")
    async def configuration() -> Response:
        """What OpenID clients look up first."""
        return _json(_metadata(running()))

    @made.get("/jwks.json")
    async def jwks() -> Response:
        """The key that the ID tokens are signed with."""
        return _json(running().jwks)

    @made.route("/authorize", methods=["GET", "POST"])
    async def authorize() -> Response:
        """The login page; by POST the choice that was made on it."""
        given = request.args if request.method == "GET" else await request.form
        return await _authorize(running(), given)

    @made.post("/token")
    async def token() -> Response:
        """An authorization code for an ID token."""
        try:
            return _json(await _token(running(), _single(await request.form)))
        except _Refused as refusal:
            return _json({"error": refusal.error, "error_description": refusal.description}, 400)

    return made


def _metadata(issuer: DevIssuer) -> dict[str, Any]:
    return {
        "issuer": issuer.url,
        "authorization_endpoint": f"{issuer.url}/authorize",
        "token_endpoint": f"{issuer.url}/token",
        "jwks_uri": f"{issuer.url}/jwks.json",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "scopes_supported": ["openid", "email", "profile"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "nonce", "email", "email_verified", "name"],
        "authorization_response_iss_parameter_supported": True,
    }


def _json(document: object, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache"}
    return Response(orjson.dumps(document), status, headers, content_type="application/json")


def _single(given: "MultiDict[str, str]") -> dict[str, str]:
    """Each parameter once (RFC 6749 §3.1)."""
    if any(len(values) > 1 for _, values in given.lists()):
        raise _Refused("invalid_request", "a parameter is given twice")
    return given.to_dict()


async def _authorize(issuer: DevIssuer, given: "MultiDict[str, str]") -> Response:
    try:
        asked = _single(given)
        _check_client(issuer, asked)
    except _Refused as refusal:  # nobody may be sent to an address that is not the client's
        page = pages.refusal(refusal.description)
        return Response(page, 400, pages.headers(), content_type="text/html; charset=utf-8")
    redirect_uri = asked["redirect_uri"]
    try:
        challenge = _check_request(asked)
        users = await issuer.users(services())
        if "subject" not in asked or request.method == "GET":
            kept = {name: asked[name] for name in _ASKED if name in asked}
            page = pages.login(users, kept)
            return Response(page, 200, pages.headers(redirect_uri), content_type="text/html; charset=utf-8")
        if asked["subject"] not in {user.subject for user in users}:
            raise _Refused("access_denied", "there is no such demo user")
    except _Refused as refusal:
        return _back(issuer, asked, error=refusal.error, error_description=refusal.description)
    login = Login(asked["subject"], redirect_uri, challenge, asked.get("nonce"))
    return _back(issuer, asked, code=issuer.code(services(), login))


def _check_client(issuer: DevIssuer, asked: dict[str, str]) -> None:
    if asked.get("client_id") != issuer.client_id:
        raise _Refused("unauthorized_client", f"The client_id must be {issuer.client_id}.")
    if not issuer.takes(asked.get("redirect_uri", "")):
        raise _Refused("invalid_request", "The redirect_uri must be on this machine or at the service itself.")


def _check_request(asked: dict[str, str]) -> str:
    """The challenge of a request that can be granted (RFC 7636 §4.4.1)."""
    if asked.get("response_type") != "code":
        raise _Refused("unsupported_response_type", "response_type must be code")
    if "openid" not in asked.get("scope", "").split(" "):
        raise _Refused("invalid_scope", "scope must have openid in it")
    if asked.get("response_mode", "query") != "query":
        raise _Refused("invalid_request", "response_mode must be query")
    challenge = asked.get("code_challenge", "")
    if asked.get("code_challenge_method") != "S256" or not _CHALLENGE.match(challenge):
        raise _Refused("invalid_request", "PKCE is required: code_challenge with code_challenge_method S256")
    if any(len(asked.get(name, "")) > _PRINTABLE_LIMIT for name in ("nonce", "state", "redirect_uri")):
        raise _Refused("invalid_request", f"nonce, state and redirect_uri have at most {_PRINTABLE_LIMIT} characters")
    if "none" in asked.get("prompt", "").split(" "):
        raise _Refused("login_required", "nobody stays signed in here")
    return challenge


def _back(issuer: DevIssuer, asked: dict[str, str], **members: str) -> Response:
    """Back to the client, with its state and our name (RFC 9207)."""
    state = {"state": asked["state"]} if "state" in asked else {}
    uri = asked["redirect_uri"]
    location = f"{uri}{'&' if '?' in uri else '?'}{urlencode({**members, **state, 'iss': issuer.url})}"
    return Response(status=303, headers={**pages.headers(), "Location": location})


async def _token(issuer: DevIssuer, form: dict[str, str]) -> dict[str, Any]:
    if form.get("grant_type") != "authorization_code":
        raise _Refused("unsupported_grant_type", "grant_type must be authorization_code")
    if form.get("client_id") != issuer.client_id:
        raise _Refused("invalid_client", f"client_id must be {issuer.client_id}")
    verifier = form.get("code_verifier", "")
    if not _VERIFIER.match(verifier):
        raise _Refused("invalid_request", "code_verifier must have 43 to 128 unreserved characters")
    login = await issuer.redeem(services(), form.get("code", ""), form.get("redirect_uri", ""), verifier)
    id_token = None if login is None else await issuer.id_token(services(), login.subject, login.nonce)
    if id_token is None:
        raise _Refused("invalid_grant", "the code is wrong, too old, or was used, or does not belong to this request")
    return {
        "access_token": random_id(services().entropy),  # the standard wants one; here it opens nothing
        "token_type": "Bearer",
        "expires_in": ID_TOKEN_SECONDS,
        "scope": "openid email profile",
        "id_token": id_token,
    }
