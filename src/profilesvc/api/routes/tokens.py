"""The token endpoint; it accepts no bearer token."""

from profilesvc.api.endpoint import Routes
from profilesvc.api.request import KB
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN
from profilesvc.contract.tokens import ClientCredentialsGrant, RefreshGrant, Token, TokenRequest, UserToken
from profilesvc.services import identity, tokens
from profilesvc.services.access import PUBLIC
from profilesvc.services.context import Services

routes = Routes("tokens")


@routes.endpoint(
    "POST /auth/token",
    access=PUBLIC,
    body=TokenRequest,
    data=Token | UserToken,
    max_body=64 * KB,
    no_store=True,
    media_hint="Send the body as JSON with Content-Type: application/json; POST /oauth2/token accepts forms.",
    errors=(AUTH_INVALID_TOKEN, AUTH_INSUFFICIENT_PERMISSIONS),
    handed_over=True,
)
async def issue_token(services: Services, body: TokenRequest, user_agent: str) -> Token | UserToken:
    """Issue a token.

    Exchange client credentials, a refresh token or an ID token for tokens. A refresh token is accepted once: keep
    only the newest.
    """
    if isinstance(body.root, ClientCredentialsGrant):
        return await tokens.client_credentials(services, body.root)
    if isinstance(body.root, RefreshGrant):
        return await tokens.refresh(services, body.root)
    return await identity.exchange(services, body.root, user_agent)
