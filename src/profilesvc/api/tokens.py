"""The token route; it takes no bearer token."""

from profilesvc.api.access import PUBLIC, services
from profilesvc.api.endpoint import KB, Routes
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN
from profilesvc.contract.tokens import ClientCredentialsGrant, Token, TokenRequest
from profilesvc.services import tokens

routes = Routes("tokens")


@routes.endpoint(
    "POST /auth/token",
    access=PUBLIC,
    body=TokenRequest,
    data=Token,
    max_body=64 * KB,
    no_store=True,
    errors=(AUTH_INVALID_TOKEN, AUTH_INSUFFICIENT_PERMISSIONS),
)
async def issue_token(body: TokenRequest) -> Token:
    """Exchange client credentials or a refresh token for tokens."""
    if isinstance(body.root, ClientCredentialsGrant):
        return await tokens.client_credentials(services(), body.root)
    return await tokens.refresh(services(), body.root)
