"""Paths beside the API: is the process alive, is it ready, the OpenAPI document and the page that shows it."""

import contextlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import orjson
from quart import Blueprint, Response, current_app
from quart_schema import QuartSchema

from profilesvc.api.access import services
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.services import census, readiness

blueprint = Blueprint("health", __name__)
STATIC = Path(__file__).parent / "static"
_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "docs.js": "text/javascript"}
_SWAGGER_UI = "swagger_ui"  # the package swagger-ui-py; its own pages and handlers are not used
# The page must not load anything from elsewhere, even if its scripts wanted to.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


@cache
def _file(name: str) -> bytes:
    """Read once: a copy for each reader would let slow ones fill the memory."""
    return (_folder(name) / name).read_bytes()


def _folder(name: str) -> Path:
    """Where a file is: Swagger UI's come from its package, which is found without importing it."""
    if not name.startswith("swagger-ui"):
        return STATIC
    package = find_spec(_SWAGGER_UI)
    assert package is not None and package.origin is not None, "swagger-ui-py is a dependency"  # noqa: PT018
    return Path(package.origin).parent / "static"


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
    return _json(schema.openapi_provider.schema())


@blueprint.get("/docs")
async def docs() -> Response:
    """The document in Swagger UI; every file of it is served here."""
    page = (STATIC / "docs.html").read_text("utf-8")
    return Response(page, content_type="text/html; charset=utf-8", headers={"Content-Security-Policy": _POLICY})


@blueprint.get("/docs/<name>")
async def docs_file(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        raise ServiceError(NOT_FOUND)
    return Response(_file(name), content_type=_FILES[name], headers={"Cache-Control": "max-age=86400"})
