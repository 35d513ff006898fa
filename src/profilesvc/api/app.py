"""Build the Quart app: routes, error handlers, the OpenAPI document and the lifespan."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial

from quart import Blueprint, Quart, Response
from quart_schema import QuartSchema

from profilesvc.api import converters, cors, failures, request
from profilesvc.api.brief_cache import BriefCache
from profilesvc.api.documents import Documents
from profilesvc.api.guard import RequestGuard
from profilesvc.api.openapi.document import Document
from profilesvc.api.quart_fast import FastApp
from profilesvc.api.routes import (
    audit,
    events,
    guides,
    health,
    heartbeats,
    keys,
    locations,
    oauth2,
    posts,
    sync,
    tokens,
    wellknown,
)
from profilesvc.domain.entropy import Entropy
from profilesvc.server.scope import App
from profilesvc.services.context import Services

_NOUNS = (keys, audit, events, tokens, heartbeats, posts, locations, sync, oauth2, wellknown)
_BLUEPRINTS = (health.blueprint, guides.blueprint, *(noun.routes.blueprint for noun in _NOUNS))
OpenServices = Callable[[], AbstractAsyncContextManager[Services]]
Around = Callable[[App], App]


class ProfileApp(FastApp):
    """The Quart app, with responses to OPTIONS for a JSON API."""

    async def make_default_options_response(self) -> Response:
        """Return 204 with Allow, and with the CORS headers if the request is a preflight."""
        methods = sorted((await super().make_default_options_response()).headers.get("Allow", "").split(", "))
        empty = Response(status=204, headers={"Allow": ", ".join(methods)})
        del empty.headers["Content-Type"]
        if "Access-Control-Request-Method" in request.quart_request().headers:
            await cors.preflight(request.current_services(), empty, methods)
        return empty


def _configured_app() -> ProfileApp:
    """Return the app without routes and services."""
    app = ProfileApp("profilesvc", static_folder=None)
    app.config.update(
        MAX_CONTENT_LENGTH=1024 * 1024,
        BODY_TIMEOUT=None,
        RESPONSE_TIMEOUT=None,  # the server limits how long a client may take to read a response
        PROPAGATE_EXCEPTIONS=False,
    )
    app.extensions["profilesvc.draining"] = asyncio.Event()
    app.extensions["profilesvc.documents"] = Documents()
    app.extensions["profilesvc.checks"], app.extensions["profilesvc.metrics"] = BriefCache(0.02), BriefCache(0.02)
    converters.install(app.url_map)
    failures.install(app)
    QuartSchema(app, openapi_path=None, openapi_provider_class=Document, conversion_preference="pydantic")
    # Every handler returns a Response, so quart-schema has nothing to convert.
    del app.make_response
    return app


def build(
    open_services: OpenServices, entropy: Entropy, more: Iterable[Blueprint] = (), around: Around = lambda app: app
) -> Quart:
    """Return the app; `open_services` is entered when it starts serving and left when it stops.

    `more` blueprints are those of rooms. `around` wraps everything after the guard, which reads its limits from the
    app's configuration (see `RequestGuard`).
    """
    app = _configured_app()
    for blueprint in (*_BLUEPRINTS, *more):
        app.register_blueprint(blueprint)

    guard = RequestGuard(around(app.asgi_app), entropy, app.config, partial(app.extensions.get, "profilesvc"))
    app.asgi_app = guard  # type: ignore[method-assign, assignment]

    @app.while_serving
    async def lifespan() -> AsyncGenerator[None, None]:
        async with open_services() as services:
            services.sample(lambda: guard.in_flight)
            app.extensions["profilesvc"] = services
            yield

    return app
