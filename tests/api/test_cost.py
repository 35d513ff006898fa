"""Public requests cost little more than an empty response, so that a flood of them does little harm."""

import itertools
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE
from profilesvc.api import brief_cache
from profilesvc.operations import census
from profilesvc.services.context import Services
from support.work import counted

# An empty response makes 250 calls of functions, in at most 0.1 ms, so this many cost 1 ms.
MOST = 12
# Production has no development issuer. Its page to sign in reads the users from the database.
MOST_IN_DEVELOPMENT = 30
WARM_UP = 60  # uses up what a result that is computed at intervals may cost at once
PKCE = "a" * 43
VALUES = {
    "/docs/<name>": {"name": "swagger-ui.css"},
    "/dashboard/static/<name>": {"name": "icon.svg"},
    "/dashboard/badge/<badge>": {"badge": f"1-{'x' * 22}.svg"},
}
LOGIN = {
    "response_type": "code",
    "client_id": "dashboard",
    "redirect_uri": "http://profiles.test/dashboard/callback",
    "scope": "openid",
    "code_challenge": PKCE,
    "code_challenge_method": "S256",
}
FORM = {"grant_type": "client_credentials", "client_id": "svcid_1_1_x", "client_secret": "x" * 64, "token": "x" * 300}
Request = tuple[str, str, dict[str, Any]]


def requests(app: Quart) -> Iterator[Request]:
    """Every path by every method without a token, and unknown paths."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        if rule.endpoint.startswith("dev_provider."):  # which the emulator's app serves
            continue
        values = VALUES.get(rule.rule, {})
        path = re.sub(r"<(?:[^:>]*:)?([^>]+)>", lambda found: values.get(found[1], "111"), rule.rule)  # noqa: B023
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield method, path, {} if method == "GET" or not path.startswith("/api/") else {"json": FORM}
    for path in ("/oauth2/token", "/oauth2/introspect", "/oauth2/revoke", "/dev/issuer/token"):
        yield "POST", path, {"data": FORM}
    yield "GET", "/dev/issuer/authorize", {"params": LOGIN}
    for path in ("/nothing", "/api/v1/nothing", "/dashboard/nothing", "//twice", "/" + "x" * 4000):
        yield "GET", path, {}
    yield "PUT", "/healthz", {}
    yield "GET", "/api/v1/posts", {"headers": {"Authorization": "Bearer a.b.c"}}
    yield "GET", "/openapi.json", {"headers": {"Accept-Encoding": "gzip"}}
    yield "GET", "/openapi.json", {"headers": {"If-None-Match": 'W/"x"'}}


async def respond(app: Quart, request: httpx.Request) -> None:
    """Send a request without a client, which costs more than most responses."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.content, "more_body": False}

    async def send(_message: object) -> None:
        pass

    await app(scope, receive, send)  # type: ignore[arg-type]  # what uvicorn gives


async def calls(app: Quart, request: httpx.Request) -> int:
    """The calls of functions for a response."""
    with counted() as work:
        await respond(app, request)
    return work.calls


@pytest.mark.slow
@pytest.mark.in_process("counts the calls of functions")
@ON_ONE_DATABASE
async def test_a_request_costs_as_little_as_a_few_empty_responses(
    app: Quart, http: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first requests may make what is kept. No time passes, in which a result at intervals might be due again."""
    costs = itertools.count()
    standing = SimpleNamespace(monotonic=lambda: 0.0, thread_time=lambda: float(next(costs)))
    monkeypatch.setattr(brief_cache, "time", standing)
    await census.count(services)
    http.headers.pop("Accept-Encoding")
    empty, expensive = http.build_request("GET", "/healthz"), {}
    for method, path, options in requests(app):
        request = http.build_request(method, path, **options)
        for _ in range(WARM_UP):
            await respond(app, request)
        asked, nothing = await calls(app, request), await calls(app, empty)
        most = MOST_IN_DEVELOPMENT if path.startswith("/dev/") else MOST
        if asked > most * nothing:
            expensive[f"{method} {path[:80]}"] = round(asked / nothing, 1)
    assert expensive == {}
