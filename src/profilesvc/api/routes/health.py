"""Paths next to the API: the start, liveness, readiness, version, metrics, the OpenAPI document and its page."""

import contextlib
import hmac
import platform
from importlib.util import find_spec
from pathlib import Path

import orjson
from quart import Blueprint, Response, current_app, redirect, request
from quart_schema import QuartSchema

from profilesvc import __version__
from profilesvc.api.documents import PUBLIC, documents
from profilesvc.api.endpoint import PREFIX
from profilesvc.api.guard import METRICS
from profilesvc.api.openapi.texts import BASE_URL
from profilesvc.api.request import bearer_token, current_services
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.operations import census, readiness
from profilesvc.services.access import invalid_token

blueprint = Blueprint("health", __name__)
STATIC = Path(__file__).parents[1] / "static"
_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "docs.js": "text/javascript"}
_SWAGGER_UI = "swagger_ui"  # the package swagger-ui-py; its own pages and handlers are not used
_START = {"dashboard": "/dashboard", "api_page": "/docs", "openapi": "/openapi.json", "guides": "/guides/"}
# The page must not load anything from other origins.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


def _folder(name: str) -> Path:
    """Return the folder of a file. Swagger UI's files are in its package, which is located without an import."""
    if not name.startswith("swagger-ui"):
        return STATIC
    package = find_spec(_SWAGGER_UI)
    assert package is not None and package.origin is not None, "swagger-ui-py is a dependency"  # noqa: PT018
    return Path(package.origin).parent / "static"


def _json(document: object, status: int = 200) -> Response:
    return Response(orjson.dumps(document), status, content_type="application/json")


@blueprint.get("/")
async def start() -> Response:
    """Redirect a browser to the dashboard, and return other clients the paths to start with."""
    if "text/html" in request.accept_mimetypes.values():
        response: Response = redirect(_START["dashboard"], 303)  # type: ignore[assignment]
    else:
        response = _json({"name": "profilesvc", "version": __version__, **_START})
    response.headers["Cache-Control"] = "no-store"  # it depends on Accept
    return response


@blueprint.get("/healthz")
async def healthz() -> Response:
    """Respond, which shows that the process is alive."""
    return _json({"status": "ok"})


@blueprint.get("/version")
async def version() -> Response:
    """Return the name and version of the service."""
    python = platform.python_version()
    return _json({"name": "profilesvc", "version": __version__, "python": python, "api": PREFIX.rpartition("/")[2]})


@blueprint.get("/readyz")
async def readyz() -> Response:
    """Check the database, migrations and signing key, and that no shutdown has started.

    The service is degraded, and still ready, while a node of a distributed database, all synchronous standbys or a
    replica are down.
    """
    accepting = not current_app.extensions["profilesvc.draining"].is_set()
    checks = {**await current_app.extensions["profilesvc.checks"].get(_checks), "accepting": accepting}
    failed = {name for name, passes in checks.items() if not passes}
    ready = failed <= readiness.DEGRADING
    status = ("degraded" if failed else "ok") if ready else "unavailable"
    lag = readiness.replica_lag(current_services())
    response = _json({"status": status, "checks": checks, **lag}, 200 if ready else 503)
    if not ready:
        response.headers["Retry-After"] = "1"
    return response


async def _checks() -> dict[str, bool]:
    try:
        return await readiness.checks(current_services())
    except ServiceError:
        return {"database": False}


@blueprint.get(METRICS)
async def metrics() -> Response:
    """Return the metrics in Prometheus' text format; without those of the database while it does not respond."""
    services = current_services()
    if token := services.settings.metrics.token.get_secret_value():
        bearer = bearer_token(request.headers.getlist("Authorization"))
        if not hmac.compare_digest(bearer.encode(), token.encode()):
            raise invalid_token("invalid")
    text = await current_app.extensions["profilesvc.metrics"].get(_exposition, services.metrics.stamp())
    with contextlib.suppress(ServiceError):
        text += await census.exposition(services)
    return Response(text, content_type="text/plain; version=0.0.4; charset=utf-8")


async def _exposition() -> bytes:
    return current_services().metrics.exposition()


@blueprint.get("/openapi.json")
async def openapi() -> Response:
    """Return the OpenAPI 3.1 document."""
    schema: QuartSchema = current_app.extensions["QUART_SCHEMA"]
    settings = current_services().settings

    def make() -> bytes:
        document = schema.openapi_provider.schema()
        for part in (document, *document["tags"]):
            guide = part.pop("externalDocs")
            if settings.effective_guides_folder is not None:
                part["externalDocs"] = {**guide, "url": guide["url"].replace(BASE_URL, settings.base_url)}
        return orjson.dumps(document)

    return await documents().respond("openapi.json", make, "application/json")


@blueprint.get("/docs")
async def docs() -> Response:
    """Return the document in Swagger UI; all its files are served by this app."""
    headers = {**PUBLIC, "Content-Security-Policy": _POLICY}
    return await documents().respond("docs", (STATIC / "docs.html").read_bytes, "text/html; charset=utf-8", headers)


@blueprint.get("/docs/<name>")
async def docs_file(name: str) -> Response:
    """Return a file of the page."""
    if name not in _FILES:
        raise ServiceError(NOT_FOUND)
    return await documents().respond(f"docs/{name}", (_folder(name) / name).read_bytes, _FILES[name])
