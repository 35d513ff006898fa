"""The standard OAuth endpoints: tokens, introspection, revocation (RFC 6749, 7662, 7009)."""

from collections.abc import Awaitable, Callable

from profilesvc.api import parsing
from profilesvc.api.forms import Credentials
from profilesvc.api.oauth_endpoint import OAuthRoutes, as_oauth_errors, client, required
from profilesvc.contract.oauth2 import (
    INVALID_CLIENT,
    INVALID_GRANT,
    INVALID_REQUEST,
    INVALID_SCOPE,
    OFFLINE_ACCESS,
    SCOPE_TOKEN,
    UNSUPPORTED_GRANT_TYPE,
    Done,
    Introspection,
    OAuthToken,
    TokenForm,
    TokenHandle,
)
from profilesvc.contract.tokens import (
    AccessToken,
    ClientCredentialsGrant,
    RefreshGrant,
    Token,
    TokenExchangeGrant,
    UserToken,
)
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.services import identity, oauth2, tokens
from profilesvc.services.context import Caller, Services

routes = OAuthRoutes("oauth2")
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_MAX_SCOPES = 32


@routes.endpoint(
    "POST /oauth2/token",
    form=TokenForm,
    response=OAuthToken,
    errors=(INVALID_GRANT, INVALID_SCOPE, UNSUPPORTED_GRANT_TYPE),
)
async def issue_oauth_token(
    services: Services, form: TokenForm, credentials: Credentials | None, user_agent: str
) -> OAuthToken:
    """Issue an OAuth token.

    Exchange client credentials, a refresh token or an ID token for tokens, as RFC 6749 and RFC 8693 define it.
    Client credentials yield a refresh token only if `scope` names `offline_access` (RFC 6749 §4.4.3). The tokens
    are the same as those of `POST /api/v1/auth/token`.

    An addition of this service.
    """
    accepted = grant_types(services)
    if form.grant_type not in accepted:
        raise ServiceError(UNSUPPORTED_GRANT_TYPE, f"grant_type must be one of {', '.join(accepted)}.")
    token = await _GRANTS[form.grant_type](services, form, credentials, user_agent)
    fields = token.model_dump(include=set(OAuthToken.model_fields) - {"scope"})
    scope = [*token.permissions, *([OFFLINE_ACCESS] if "refresh_token" in fields else [])]
    return OAuthToken(**fields, scope=" ".join(scope))


async def _client_credentials(
    services: Services, form: TokenForm, credentials: Credentials | None, _user_agent: str
) -> AccessToken:
    """Grant no refresh token unless the client requests it.

    Libraries prefer a refresh token when they renew, and with the default lifetimes it expires before they need it.
    """
    pair, scopes = required(credentials), _scopes(form)
    issue = tokens.client_credentials if OFFLINE_ACCESS in scopes else tokens.access_token
    body = ClientCredentialsGrant(
        grant_type="client_credentials",
        client_id=pair.client_id,
        client_secret=pair.client_secret,
        permissions=[name for name in scopes if name != OFFLINE_ACCESS],
    )
    with as_oauth_errors(INVALID_CLIENT):
        return await issue(services, body)


async def _refresh(services: Services, form: TokenForm, credentials: Credentials | None, _user_agent: str) -> Token:
    """Authenticate the client (RFC 6749 §6); on the JSON endpoint that is optional."""
    caller = await client(services, credentials)
    assert caller.key is not None, "a client is a key"
    if form.refresh_token is None:
        raise invalid("form", "refresh_token", "is required")
    body = RefreshGrant(grant_type="refresh_token", refresh_token=form.refresh_token, client_id=caller.key.client_id)
    with as_oauth_errors(INVALID_GRANT):
        return await tokens.refresh(services, body)


async def _exchange(services: Services, form: TokenForm, credentials: Credentials | None, user_agent: str) -> UserToken:
    """Exchange an ID token. The client need not authenticate, but if it does, it must be valid (RFC 8693 §2.1)."""
    if credentials is not None:
        await client(services, credentials)
    body = parsing.checked(TokenExchangeGrant, form.model_dump(exclude_none=True), "form")
    with as_oauth_errors(INVALID_REQUEST):
        return await identity.exchange(services, body, user_agent)


_GRANTS: dict[str, Callable[[Services, TokenForm, Credentials | None, str], Awaitable[AccessToken]]] = {
    "client_credentials": _client_credentials,
    "refresh_token": _refresh,
    EXCHANGE: _exchange,
}


def grant_types(services: Services) -> list[str]:
    """Return the supported grant types: the exchange only if an identity provider is configured."""
    return [name for name in _GRANTS if name != EXCHANGE or services.identity is not None]


def _scopes(form: TokenForm) -> list[str]:
    """Return the words of a scope (RFC 6749 §3.3)."""
    names = [name for name in (form.scope or "").split(" ") if name]
    if len(names) > _MAX_SCOPES:
        raise ServiceError(INVALID_SCOPE, f"scope must have at most {_MAX_SCOPES} words, separated by spaces.")
    if not all(SCOPE_TOKEN.match(name) for name in names):
        raise ServiceError(INVALID_SCOPE, "scope must not contain quotes, backslashes or other than printable ASCII.")
    return names


@routes.endpoint("POST /oauth2/introspect", form=TokenHandle, response=Introspection)
async def introspect_token(services: Services, caller: Caller, form: TokenHandle) -> Introspection:
    """Introspect a token.

    Return the state of a token, as RFC 7662 defines it. A key can inspect its own tokens, a user those of their
    keys and their own. For any other token the response is `{"active": false}`.

    An addition of this service.
    """
    return await oauth2.introspect(services, caller, form.token)


@routes.endpoint("POST /oauth2/revoke", form=TokenHandle, response=Done)
async def revoke_token(services: Services, caller: Caller, form: TokenHandle) -> Done:
    """Revoke a token.

    RFC 7009 defines it. A refresh token ends its whole family. User tokens are accepted too. The response is the
    same for an unknown token and for one of another caller.

    An addition of this service.
    """
    await oauth2.revoke(services, caller, form.token)
    return Done()
