"""What clients and verifiers find under /.well-known: the public keys of our tokens (RFC 7517)."""

import orjson
from quart import Blueprint, Response

from profilesvc.api.access import services

blueprint = Blueprint("wellknown", __name__, url_prefix="/.well-known")
_CACHE = {"Cache-Control": "max-age=300"}


@blueprint.get("/jwks.json")
async def jwks() -> Response:
    """The public parts of every key that a good token can be signed with, also of those to come (D-13)."""
    document = orjson.dumps({"keys": services().signer.keyring.jwks()})
    return Response(document, content_type="application/json", headers=_CACHE)
