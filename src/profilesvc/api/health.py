"""Paths beside the API: is the process alive, is it ready, the OpenAPI document and the page that shows it."""

import contextlib
from pathlib import Path

import orjson
from quart import Blueprint, Response, current_app
from quart_schema import QuartSchema

from profilesvc.api.access import services
from profilesvc.api.documents import PUBLIC, documents
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.services import census, readiness

blueprint = Blueprint("health", __name__)
STATIC = Path(__file__).parent / "static"
_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "docs.js": "text/javascript"}
# The page must not load anything from elsewhere, even if its scripts wanted to.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


def _json(document: object, status: int = 200) -> Response:
    return Response(orjson.dumps(document), status, content_type="application/json")


@blueprint.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return _json({"status": "ok"})


@blueprint.get("/readyz")
async def readyz() -> Response:
    """Database, migrations and signing key are in order, and no shutdown has begun."""
    try:
        checks = await readiness.checks(services())
    except ServiceError:
        checks = {"database": False}
    checks["accepting"] = not current_app.extensions["profilesvc.draining"].is_set()
    ready = all(checks.values())
    return _json({"status": "ok" if ready else "unavailable", "checks": checks}, 200 if ready else 503)


@blueprint.get("/metrics")
async def metrics() -> Response:
    """Prometheus' text format; what the database alone knows is left out while it does not answer."""
    running = services()
    text = running.metrics.exposition()  # now: the database may be slow because of what is to be seen here
    with contextlib.suppress(ServiceError):
        text += await census.exposition(running)
    return Response(text, content_type="text/plain; version=0.0.4; charset=utf-8")


@blueprint.get("/openapi.json")
async def openapi() -> Response:
    """The OpenAPI 3.1 document."""
    schema: QuartSchema = current_app.extensions["QUART_SCHEMA"]
    return await documents().answer(
        "openapi.json", lambda: orjson.dumps(schema.openapi_provider.schema()), "application/json"
    )


@blueprint.get("/docs")
async def docs() -> Response:
    """The document in Swagger UI, from our own files."""
    headers = {**PUBLIC, "Content-Security-Policy": _POLICY}
    return await documents().answer("docs", (STATIC / "docs.html").read_bytes, "text/html; charset=utf-8", headers)


@blueprint.get("/docs/<name>")
async def docs_file(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        raise ServiceError(NOT_FOUND)
    return await documents().answer(f"docs/{name}", (STATIC / name).read_bytes, _FILES[name])
