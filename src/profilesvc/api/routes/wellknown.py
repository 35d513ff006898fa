"""The documents under /.well-known: the paths of the OAuth endpoints, and the public keys of our tokens."""

from profilesvc.api.oauth_endpoint import OAuthRoutes
from profilesvc.api.routes.oauth2 import grant_types
from profilesvc.contract.oauth2 import OFFLINE_ACCESS, JwkSet, ServerMetadata
from profilesvc.domain.permissions import ALL
from profilesvc.services.context import Services

routes = OAuthRoutes("wellknown")
_AUTHENTICATION = ["client_secret_basic", "client_secret_post"]


@routes.endpoint(
    "GET /.well-known/oauth-authorization-server", response=ServerMetadata, headers={"Cache-Control": "max-age=3600"}
)
async def find_server_metadata(services: Services) -> ServerMetadata:
    """Find the OAuth endpoints.

    The addresses of the OAuth endpoints and the parameters that they accept (RFC 8414). Needs no token.

    An addition of this service.
    """
    issuer = services.signer.base_url
    return ServerMetadata(
        issuer=issuer,
        token_endpoint=f"{issuer}/oauth2/token",
        jwks_uri=f"{issuer}/.well-known/jwks.json",
        revocation_endpoint=f"{issuer}/oauth2/revoke",
        introspection_endpoint=f"{issuer}/oauth2/introspect",
        service_documentation=f"{issuer}/docs",
        scopes_supported=[*(str(permission) for permission in ALL), OFFLINE_ACCESS],
        response_types_supported=[],
        grant_types_supported=grant_types(services),
        token_endpoint_auth_methods_supported=_AUTHENTICATION,
        revocation_endpoint_auth_methods_supported=_AUTHENTICATION,
        introspection_endpoint_auth_methods_supported=_AUTHENTICATION,
    )


@routes.endpoint("GET /.well-known/jwks.json", response=JwkSet, headers={"Cache-Control": "max-age=300"})
async def list_public_keys(services: Services) -> JwkSet:
    """List the public keys.

    The keys that verify all valid access tokens, including keys that sign only later. Needs no token.

    An addition of this service.
    """
    return JwkSet.model_validate({"keys": services.signer.keyring.jwks()})
