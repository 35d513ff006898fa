"""The OAuth host: the consent page, codes with PKCE, access and refresh tokens, revocation, and who has signed in.

The configured refresh token of an installation is any string: its access tokens see every account. A login of the
consent page sees only its own accounts. Its refresh tokens start with `1//`, end after `refresh_seconds` if that
switch is set, and end together when one of them is revoked.
"""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from quart import Blueprint, Response, ResponseReturnValue, redirect, render_template_string, request
from sqlmodel import col, delete, select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc import look
from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import MINUTE, SECOND
from profilesvc.emulator.errors import ApiError, error_info
from profilesvc.emulator.state import emulator, login, now, switches
from profilesvc.emulator.tables import EmulatorGrantRow, EmulatorLoginRow, EmulatorTokenRow

consent = Blueprint("consent", __name__)
TOKEN_SECONDS = 3599
SCOPE = "https://www.googleapis.com/auth/business.manage"
AUTHORIZE = "/o/oauth2/v2/auth"
_STYLE = look.style()
_CODE_MS = 10 * MINUTE
_REFRESH_PREFIX = "1//"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ problem or "Sign in to the emulator" }}</title>
<style>{{ style | safe }}</style>
</head>
<body>
<main>
{% if problem %}<h1>Access blocked</h1><p>{{ problem }}</p>{% else %}
<h1>Choose an account</h1>
<p>This page is the emulator's. It plays the provider, and signs in anyone.</p>
<form method="post">
<fieldset><legend>Account</legend>
{% for login in logins %}<label><input type="radio" name="subject" value="{{ login.subject }}" required
{% if login.email == hint or loop.first %}checked{% endif %}> {{ login.email }}</label>{% endfor %}
</fieldset>
<fieldset><legend>{{ client }} asks for</legend>
{% for scope in scopes %}<label><input type="checkbox" name="granted" value="{{ scope }}" checked> {{ scope }}
</label>{% endfor %}</fieldset>
<div class="row"><button class="main" name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Cancel</button></div>
</form>{% endif %}
</main>
</body>
</html>
"""


class _Asked(NamedTuple):
    """The parameters of an authorization request."""

    client_id: str
    redirect_uri: str
    scopes: list[str]
    state: str
    challenge: str
    offline: bool


def digest_of(token: str) -> str:
    """Return the digest under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def _asked() -> _Asked | str:
    """Return the request of the query, or why the page shows an error instead of redirecting."""
    query = request.args
    redirect_uri, challenge = query.get("redirect_uri", ""), query.get("code_challenge", "")
    if not query.get("client_id"):
        return "Error 400: invalid_request. Missing required parameter: client_id"
    if urlsplit(redirect_uri).scheme not in ("http", "https") or not urlsplit(redirect_uri).netloc:
        return "Error 400: redirect_uri_mismatch"
    if query.get("response_type") != "code" or not query.get("scope"):
        return "Error 400: invalid_request. response_type must be code, and scope is required"
    if challenge and query.get("code_challenge_method") != "S256":
        return "Error 400: invalid_request. code_challenge_method must be S256"
    scopes, is_offline = query["scope"].split(), query.get("access_type") == "offline"
    return _Asked(query["client_id"], redirect_uri, scopes, query.get("state", ""), challenge, is_offline)


async def _consent_page(status: int = 200, **values: object) -> ResponseReturnValue:
    """Return the page. Its form leads to the client's address, which can be any."""
    headers = {
        "Content-Type": "text/html; charset=UTF-8",
        "Content-Security-Policy": look.policy(_STYLE, "*"),
        "X-Frame-Options": "DENY",
        "Cache-Control": "no-store",
    }
    return Response(await render_template_string(_PAGE, style=_STYLE, **values), status, headers)


@consent.get(AUTHORIZE)
async def choose() -> ResponseReturnValue:
    """Show who may sign in, and what the client asks for."""
    asked = _asked()
    if isinstance(asked, str):
        return await _consent_page(400, problem=asked)
    async with emulator().store.read() as session:
        logins = (await session.exec(select(EmulatorLoginRow).order_by(col(EmulatorLoginRow.email)))).all()
    hint = request.args.get("login_hint", "")
    return await _consent_page(logins=logins, client=asked.client_id, scopes=asked.scopes, hint=hint)


@consent.post(AUTHORIZE)
async def decide() -> ResponseReturnValue:
    """Redirect back with a code, or with `access_denied`."""
    asked, form = _asked(), await request.form
    if isinstance(asked, str):
        return await _consent_page(400, problem=asked)
    granted = [scope for scope in asked.scopes if scope in form.getlist("granted")]
    if form.get("decision") != "allow" or not granted:
        return _back(asked, error="access_denied")
    code = "4/" + emulator().entropy.token_bytes(32).hex()
    async with emulator().store.write() as session:
        if await session.get(EmulatorLoginRow, form.get("subject", "")) is None:
            return await _consent_page(400, problem="Error 400: there is no such account")
        await session.merge(
            EmulatorGrantRow(
                digest=digest_of(code),
                kind="code" if asked.offline else "online",
                subject=form["subject"],
                client_id=asked.client_id,
                scope=" ".join(granted),
                redirect_uri=asked.redirect_uri,
                challenge=asked.challenge,
                expires=now() + _CODE_MS,
            )
        )
    return _back(asked, code=code, scope=" ".join(granted))


def _back(asked: _Asked, **values: str) -> ResponseReturnValue:
    parts = urlsplit(asked.redirect_uri)
    state = {"state": asked.state} if asked.state else {}
    query = urlencode([*parse_qsl(parts.query), *state.items(), *values.items()])
    return redirect(parts._replace(query=query).geturl())


@consent.post("/token")
async def issue_token() -> ResponseReturnValue:
    """Exchange a code, or issue an access token for a refresh token. Errors have the OAuth format, not the API's."""
    form, client_id = await request.form, await _client_id()
    kind = form.get("grant_type")
    if kind not in ("refresh_token", "authorization_code"):
        description = "Only refresh_token and authorization_code."
        return {"error": "unsupported_grant_type", "error_description": description}, 400
    async with emulator().store.write() as session:
        await session.exec(delete(EmulatorTokenRow).where(col(EmulatorTokenRow.expires) <= now()))
        if kind == "authorization_code":
            return await _redeem(session, client_id, form)
        token = form.get("refresh_token", "")
        if switches().refuse_refresh or not (client_id and token):
            return _invalid_grant()
        if not token.startswith(_REFRESH_PREFIX):  # the installation's own login
            return await _issue(session, EmulatorGrantRow(digest="", kind="own", subject="", scope=SCOPE))
        grant = await session.get(EmulatorGrantRow, digest_of(token))
        if grant is None or grant.kind != "refresh" or grant.client_id != client_id or _has_ended(grant):
            return _invalid_grant()
        return await _issue(session, grant)


async def _client_id() -> str:
    """Return the client, which authenticates by the form or by HTTP Basic. Any secret that is not empty is accepted."""
    form, basic = await request.form, request.authorization
    if basic is not None and basic.type == "basic":
        return (basic.username or "") if basic.password else ""
    return form.get("client_id", "") if form.get("client_secret") else ""


def _invalid_grant(description: str = "Token has been expired or revoked.") -> ResponseReturnValue:
    return {"error": "invalid_grant", "error_description": description}, 400


def _has_ended(grant: EmulatorGrantRow) -> bool:
    return 0 < grant.expires <= now()


async def _redeem(session: AsyncSession, client_id: str, form: "dict[str, str]") -> ResponseReturnValue:
    """Exchange a code once."""
    grant = await session.get(EmulatorGrantRow, digest_of(form.get("code", "")))
    if grant is None or grant.kind not in ("code", "online") or grant.client_id != client_id or _has_ended(grant):
        return _invalid_grant("Bad Request")
    if form.get("redirect_uri") != grant.redirect_uri:
        return {"error": "redirect_uri_mismatch", "error_description": "Bad Request"}, 400
    verifier = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
    if grant.challenge and not hmac.compare_digest(verifier.rstrip(b"="), grant.challenge.encode()):
        return _invalid_grant("Invalid code verifier.")
    await session.delete(grant)
    if grant.kind == "online":
        return await _issue(session, grant)
    token = _REFRESH_PREFIX + emulator().entropy.token_bytes(32).hex()
    period = round(switches().refresh_seconds * SECOND)
    values = {"subject": grant.subject, "client_id": grant.client_id, "scope": grant.scope}
    refresh = EmulatorGrantRow(
        digest=digest_of(token), kind="refresh", expires=now() + period if period else 0, **values
    )
    await session.merge(refresh)
    return {**await _issue(session, refresh), "refresh_token": token}


async def _issue(session: AsyncSession, grant: EmulatorGrantRow) -> JsonObject:
    token = "ya29." + emulator().entropy.token_bytes(24).hex()
    expires = now() + TOKEN_SECONDS * SECOND
    row = EmulatorTokenRow(digest=digest_of(token), expires=expires, subject=grant.subject, scope=grant.scope)
    await session.merge(row)  # after a restart, seeded entropy repeats its tokens
    return {"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer", "scope": grant.scope}


@consent.post("/revoke")
async def revoke() -> ResponseReturnValue:
    """End every token of the login that this token belongs to, as the provider does."""
    token = (await request.form).get("token") or request.args.get("token", "")
    async with emulator().store.write() as session:
        grant = await session.get(EmulatorGrantRow, digest_of(token))
        access = await session.get(EmulatorTokenRow, digest_of(token))
        subject = (grant.subject if grant else "") or (access.subject if access else "")
        if not subject:
            return {"error": "invalid_token", "error_description": "Token expired or revoked"}, 400
        await end_grants(session, subject)
    return {}


async def end_grants(session: AsyncSession, subject: str) -> None:
    """End every token of a login."""
    await session.exec(delete(EmulatorGrantRow).where(col(EmulatorGrantRow.subject) == subject))
    await session.exec(delete(EmulatorTokenRow).where(col(EmulatorTokenRow.subject) == subject))


@consent.get("/v1/userinfo")
async def userinfo() -> JsonObject:
    """Return the subject and e-mail address of the login (OpenID Connect Core §5.3)."""
    token = re.sub(r"(?i)^bearer ", "", request.headers.get("Authorization", ""))
    async with emulator().store.read() as session:
        row = await session.get(EmulatorTokenRow, digest_of(token))
        known = await session.get(EmulatorLoginRow, row.subject) if row is not None and row.expires > now() else None
    if row is None or known is None or "openid" not in row.scope.split():
        raise ApiError(401, "Request had invalid authentication credentials.")
    address = {"email": known.email, "email_verified": True} if "email" in row.scope.split() else {}
    return {"sub": known.subject, **address}


def require_scope() -> None:
    """Reject a token without the scope of the APIs.

    Raises:
        ApiError: 403.
    """
    if SCOPE not in login().scope.split():
        detail = error_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT")
        raise ApiError(403, "Request had insufficient authentication scopes.", detail)
