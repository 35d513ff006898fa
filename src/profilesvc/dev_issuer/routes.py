"""The issuer's endpoints: discovery, keys, login page and token (OpenID Connect Core §3.1, RFC 7636, RFC 9207)."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import orjson
from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.request import current_services
from profilesvc.contract.json import JsonObject
from profilesvc.dev_issuer import pages
from profilesvc.dev_issuer.provider import ID_TOKEN_SECONDS, PATH, DevIssuer, Login
from profilesvc.domain.request import current_request
from profilesvc.language.choice import LANGUAGES, chosen
from profilesvc.tokens.signer import random_id

_PARAMETERS = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "nonce"),
    *("code_challenge", "code_challenge_method", "prompt", "response_mode", "ui_locales"),
)
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z", re.ASCII)
_PRINTABLE_LIMIT = 512


class _OAuthError(Exception):
    """An OAuth error, for the client, or for the user if the client is not valid."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error, self.description = error, description


def blueprint(issuer_of: Callable[[], DevIssuer]) -> Blueprint:
    """Build the routes of the issuer, which `issuer_of` returns once the service runs."""
    routes = Blueprint("dev_issuer", __name__, url_prefix=PATH)

    @routes.get("/.well-known/openid-configuration")
    async def configuration() -> Response:
        """Return the metadata for OpenID clients."""
        return _json(_metadata(issuer_of()))

    @routes.get("/jwks.json")
    async def jwks() -> Response:
        """Return the public key of the ID tokens."""
        return _json(issuer_of().jwks)

    @routes.route("/authorize", methods=["GET", "POST"])
    async def authorize() -> Response:
        """Show the login page (GET), or continue with the selected user (POST)."""
        values = request.args if request.method == "GET" else await request.form
        current_request().language = chosen(
            *values.get("ui_locales", "").split(), accepted=request.headers.get("Accept-Language", "")
        )
        return await _authorize(issuer_of(), values)

    @routes.post("/token")
    async def token() -> Response:
        """Exchange an authorization code for an ID token."""
        try:
            return _json(await _token(issuer_of(), _single(await request.form)))
        except _OAuthError as error:
            return _json({"error": error.error, "error_description": error.description}, 400)

    return routes


def _metadata(issuer: DevIssuer) -> JsonObject:
    return {
        "issuer": issuer.url,
        "authorization_endpoint": f"{issuer.url}/authorize",
        "token_endpoint": f"{issuer.url}/token",
        "jwks_uri": f"{issuer.url}/jwks.json",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "ui_locales_supported": list(LANGUAGES),
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


def _single(values: "MultiDict[str, str]") -> dict[str, str]:
    """Return the parameters. None may be repeated (RFC 6749 §3.1)."""
    if any(len(repeated) > 1 for _, repeated in values.lists()):
        raise _OAuthError("invalid_request", "a parameter is repeated")
    return values.to_dict()


async def _authorize(issuer: DevIssuer, values: "MultiDict[str, str]") -> Response:
    try:
        parameters = _single(values)
        if parameters.get("client_id") != issuer.client_id:
            raise _OAuthError("unauthorized_client", f"The client_id must be {issuer.client_id}.")
        if not issuer.accepts(parameters.get("redirect_uri", "")):
            raise _OAuthError("invalid_request", "The redirect_uri must be on this machine or at the service itself.")
    except _OAuthError as error:  # without a redirect, because the redirect URI may not be the client's
        page = pages.failure(error.description)
        return Response(page, 400, pages.headers(), content_type="text/html; charset=utf-8")
    redirect_uri = parameters["redirect_uri"]
    try:
        challenge = _check_request(parameters)
        users = await issuer.users(current_services())
        if "subject" not in parameters or request.method == "GET":
            fields = {name: parameters[name] for name in _PARAMETERS if name in parameters}
            page = pages.login(users, fields)
            return Response(page, 200, pages.headers(redirect_uri), content_type="text/html; charset=utf-8")
        if parameters["subject"] not in {user.subject for user in users}:
            raise _OAuthError("access_denied", "the demo user does not exist")
    except _OAuthError as error:
        return _back(issuer, parameters, error=error.error, error_description=error.description)
    login = Login(parameters["subject"], redirect_uri, challenge, parameters.get("nonce"))
    return _back(issuer, parameters, code=issuer.code(current_services(), login))


def _check_request(parameters: dict[str, str]) -> str:
    """Check the request and return its PKCE challenge (RFC 7636 §4.4.1)."""
    if parameters.get("response_type") != "code":
        raise _OAuthError("unsupported_response_type", "response_type must be code")
    if "openid" not in parameters.get("scope", "").split(" "):
        raise _OAuthError("invalid_scope", "scope must contain openid")
    if parameters.get("response_mode", "query") != "query":
        raise _OAuthError("invalid_request", "response_mode must be query")
    challenge = parameters.get("code_challenge", "")
    if parameters.get("code_challenge_method") != "S256" or not _CHALLENGE.match(challenge):
        raise _OAuthError("invalid_request", "PKCE is required: code_challenge with code_challenge_method S256")
    if any(len(parameters.get(name, "")) > _PRINTABLE_LIMIT for name in ("nonce", "state", "redirect_uri")):
        raise _OAuthError(
            "invalid_request", f"nonce, state and redirect_uri must have at most {_PRINTABLE_LIMIT} characters"
        )
    if "none" in parameters.get("prompt", "").split(" "):
        raise _OAuthError("login_required", "the issuer has no sessions, so prompt=none is not possible")
    return challenge


def _back(issuer: DevIssuer, parameters: dict[str, str], **fields: str) -> Response:
    """Redirect to the client, with its state and our issuer (RFC 9207)."""
    state = {"state": parameters["state"]} if "state" in parameters else {}
    uri = parameters["redirect_uri"]
    location = f"{uri}{'&' if '?' in uri else '?'}{urlencode({**fields, **state, 'iss': issuer.url})}"
    return Response(status=303, headers={**pages.headers(), "Location": location})


async def _token(issuer: DevIssuer, form: dict[str, str]) -> JsonObject:
    if form.get("grant_type") != "authorization_code":
        raise _OAuthError("unsupported_grant_type", "grant_type must be authorization_code")
    if form.get("client_id") != issuer.client_id:
        raise _OAuthError("invalid_client", f"client_id must be {issuer.client_id}")
    verifier = form.get("code_verifier", "")
    if not _VERIFIER.match(verifier):
        raise _OAuthError("invalid_request", "code_verifier must have 43 to 128 unreserved characters")
    login = await issuer.redeem(current_services(), form.get("code", ""), form.get("redirect_uri", ""), verifier)
    id_token = None if login is None else await issuer.id_token(current_services(), login.subject, login.nonce)
    if id_token is None:
        raise _OAuthError("invalid_grant", "the code is invalid, expired, already used, or from another request")
    return {
        "access_token": random_id(current_services().entropy),  # required by the standard, but not accepted anywhere
        "token_type": "Bearer",
        "expires_in": ID_TOKEN_SECONDS,
        "scope": "openid email profile",
        "id_token": id_token,
    }
