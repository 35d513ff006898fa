"""Every status that the OpenAPI document promises is given, for each operation, and fits its schema (T2)."""

import asyncio
import re
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from quart import Quart
from sqlalchemy import update

from conftest import AsService, Change
from drive import fail, heal
from parts import AWAY, NO_ROOM, Broken
from profilesvc.api import body as request_body
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage.tables import post_usage
from support import TOO_MANY_HEADERS, Site, assert_error, unfinished


class Record:
    """Checks each answer against the document, and remembers which statuses were seen."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.seen: set[tuple[str, str]] = set()

    def promised(self) -> set[tuple[str, str]]:
        """Every (operation, status) of the API; those that speak a standard have test_oauth2_document.py."""
        return {
            (operation["operationId"], status)
            for path, methods in self._document["paths"].items()
            if path.startswith("/api/v1/")
            for operation in methods.values()
            for status in operation["responses"]
            if status != "304"  # which test_delivery.py is about
        }

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        operation = self._operation(response.request)
        promised = operation["responses"].get(str(response.status_code))
        assert promised is not None, f"{operation['operationId']} does not promise {response.status_code}"
        schema = {**promised["content"]["application/json"]["schema"], "components": self._document["components"]}
        errors = [
            f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(response.json())
        ]
        assert errors == [], operation["operationId"]
        if response.status_code >= 400:
            code = response.json()["error"]["code"]
            assert code in promised["content"]["application/json"]["examples"], (operation["operationId"], code)
        for header in ("www-authenticate", "retry-after", "location"):
            documented = {name.lower() for name in promised.get("headers", {})}
            assert header in documented or header not in response.headers, (operation["operationId"], header)
        self.seen.add((operation["operationId"], str(response.status_code)))

    def _operation(self, request: httpx.Request) -> dict[str, Any]:
        for path, methods in self._document["paths"].items():
            pattern = re.sub(r"{\w+}", "[^/]+", path)
            if re.fullmatch(pattern, request.url.path) and request.method.lower() in methods:
                found: dict[str, Any] = methods[request.method.lower()]
                return found
        raise AssertionError(f"{request.method} {request.url.path} is not documented")


# A request that succeeds for a key of locations/111 (or for its owner), by operation.
POST_TARGET = {"locationId": "locations/111"}
NEW_KEY = {"name": "Surface", "business_id": 10, "assigned_location_id": "locations/111"}
Request = tuple[str, str, dict[str, Any] | None, dict[str, str]]
REQUESTS: dict[str, Request] = {
    "send_heartbeat": ("POST", "/api/v1/api-keys/heartbeat", {"plugin_version": "1"}, {}),
    "get_connection_status": ("GET", "/api/v1/api-keys/CLIENT/status", None, {"history": "true"}),
    "issue_token": ("POST", "/api/v1/auth/token", {"grant_type": "client_credentials"}, {}),
    "validate_credentials": ("POST", "/api/v1/auth/validate-service-credentials", {}, {}),
    "list_businesses": ("GET", "/api/v1/businesses", None, {}),
    "create_key": ("POST", "/api/v1/developer/credentials", NEW_KEY, {}),
    "list_keys": ("GET", "/api/v1/developer/credentials", None, {"include_revoked": "true"}),
    "list_locations": ("GET", "/api/v1/external-business/locations", None, {}),
    "get_location": ("GET", "/api/v1/external-business/locations/111", None, {}),
    "refresh_verification": ("POST", "/api/v1/external-business/locations/111/refresh-verification", None, {}),
    "switch_sync": ("PATCH", "/api/v1/external-business/locations/111/sync", {"syncEnabled": True}, {}),
    "list_posts": ("GET", "/api/v1/posts", None, POST_TARGET),
    "create_post": ("POST", "/api/v1/posts", {"summary": "Hello"}, POST_TARGET),
    "change_post": ("PATCH", "/api/v1/posts/11101", {"summary": "Changed"}, POST_TARGET),
    "delete_post": ("DELETE", "/api/v1/posts/11102", None, POST_TARGET),
    "list_reviews": ("GET", "/api/v1/reviews", None, POST_TARGET),
    "get_review": ("GET", "/api/v1/reviews/111002", None, POST_TARGET),
    "reply_to_review": ("PUT", "/api/v1/reviews/111002/reply", {"comment": "Thanks"}, POST_TARGET),
    "delete_reply": ("DELETE", "/api/v1/reviews/111002/reply", None, POST_TARGET),
    "compare_profile": ("GET", "/api/v1/sync/comparison/111", None, {}),
    "sync_profile": ("POST", "/api/v1/sync/111", {"title": "T", "x": 1}, {}),
    "list_sync_history": ("GET", "/api/v1/sync/history/111", None, {}),
    "roll_key": ("POST", "/api/v1/developer/credentials/CLIENT/roll", {}, {}),
    "deactivate_key": ("POST", "/api/v1/developer/credentials/CLIENT/deactivate", None, {}),
    "reactivate_key": ("POST", "/api/v1/developer/credentials/CLIENT/reactivate", None, {}),
    "list_key_events": ("GET", "/api/v1/developer/credentials/CLIENT/audit", None, {}),
    "list_events": ("GET", "/api/v1/audit", None, {}),
    "revoke_key": ("DELETE", "/api/v1/developer/credentials/CLIENT", None, {}),
}
BY_KEY = {"send_heartbeat"}
PUBLIC = {"issue_token", "validate_credentials"}
# D-71 promises it for a location that was never read; the import reads every one.
NEVER = {("get_location", "502")}


class Surface:
    """Sends the requests of the table, as it stands or with something wrong."""

    def __init__(self, http: httpx.AsyncClient, record: Record, owner: str, sites: dict[str, Site]) -> None:
        self.http, self.record, self._owner, self._sites = http, record, owner, sites

    def promising(self, status: str) -> list[str]:
        """The operations that promise a status."""
        found = self.record.promised() - NEVER
        return [name for name in REQUESTS if (name, status) in found]

    def client_id(self, site: str) -> str:
        """The client id of a site's key."""
        return str(self._sites[site].key["client_id"])

    async def ask(self, name: str, *, site: str = "good", token: str | None = None, **changes: Any) -> httpx.Response:
        """Send a request; `changes` replace `path`, `body`, `params`, or add `content` and `headers`."""
        method, path, body, params = REQUESTS[name]
        used = self._sites[site]
        if name in PUBLIC:
            body = {**(body or {}), **used.credentials}
        if token is None:
            token = used.tokens["access_token"] if name in BY_KEY or site != "good" else self._owner
        headers = {"Authorization": f"Bearer {token}"} if token and name not in PUBLIC else {}
        options = {"params": changes.pop("params", params), "headers": headers | changes.pop("headers", {})}
        path = changes.pop("path", path).replace("CLIENT", used.key["client_id"])
        if "content" not in changes:
            changes["json"] = changes.pop("body", body)
        return await self.http.request(method, path, **options, **changes)


@pytest.fixture
async def surface(
    http: httpx.AsyncClient, app: Quart, alice: httpx.AsyncClient, as_service: AsService, services: Services
) -> Surface:
    record = Record(app.extensions["QUART_SCHEMA"].openapi_provider.schema())
    sites = {"good": await as_service(), "held": await as_service()}
    await key_service.deactivate(services, sites["held"].key["client_id"], "billing_issue")
    http.event_hooks["response"].append(record)
    return Surface(http, record, alice.headers["Authorization"].removeprefix("Bearer "), sites)


JSON = {"Content-Type": "application/json"}
# What is wrong with a request that has no body: a query or an id.
MALFORMED: dict[str, dict[str, Any]] = {
    "get_connection_status": {"params": {"history": "x"}},
    "list_keys": {"params": {"include_revoked": "x"}},
    "list_locations": {"params": {"page": "0"}},
    "list_key_events": {"params": {"before": "x"}},
    "list_events": {"params": {"limit": "0"}},
    "get_location": {"path": "/api/v1/external-business/locations/a b"},
    "refresh_verification": {"path": "/api/v1/external-business/locations/a b/refresh-verification"},
    "list_posts": {"params": {}},
    "delete_post": {"params": {}},
    "list_reviews": {"params": {}},
    "get_review": {"params": {}},
    "delete_reply": {"params": {}},
    "compare_profile": {"path": "/api/v1/sync/comparison/a b"},
    "list_sync_history": {"params": {"limit": "x"}},
}


async def refusals_of_the_caller(surface: Surface) -> None:
    for name in surface.promising("401"):
        wrong = {"body": {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}}
        await surface.ask(name, token="", **(wrong if name in PUBLIC else {}))
    for name in surface.promising("403"):
        await surface.ask(name, site="held")


async def refusals_of_the_request(surface: Surface) -> None:
    for name in surface.promising("400"):
        await surface.ask(name, **MALFORMED.get(name, {"content": b"{", "headers": JSON}))
    for name in surface.promising("413"):
        await surface.ask(name, content=b"x" * 300_000, headers=JSON)
    for name in surface.promising("415"):
        await surface.ask(name, content=b"{}", headers={"Content-Type": "text/plain"})
    for name in surface.promising("404"):
        path = REQUESTS[name][1].replace("/111", "/999").replace("CLIENT", "svcid_1_1_nobody")
        params = {**REQUESTS[name][3], **({"locationId": "999"} if {"posts", "reviews"} & set(path.split("/")) else {})}
        await surface.ask(
            name,
            path=path,
            params=params,
            **({"body": {**NEW_KEY, "business_id": 999}} if name == "create_key" else {}),
        )


async def refusals_of_what_arrives(surface: Surface) -> None:
    for name in surface.promising("431"):
        await surface.ask(name, headers=TOO_MANY_HEADERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_body, "GRACE_SECONDS", 0.05)
        for name in surface.promising("408"):
            await surface.ask(name, content=unfinished(), headers=JSON)


async def refusals_of_the_state(surface: Surface, emulator: httpx.AsyncClient, services: Services) -> None:
    await surface.ask("create_key", body={**NEW_KEY, "assigned_location_id": "114"})
    held = REQUESTS["roll_key"][1].replace("CLIENT", surface.client_id("held"))
    await surface.ask("roll_key", path=held)
    await surface.ask("switch_sync", path="/api/v1/external-business/locations/113/sync")
    await surface.ask("sync_profile", path="/api/v1/sync/112")
    for name in surface.promising("422"):
        for body in (
            REQUESTS[name][2],
            {"title": "Other", "summary": "Other"} if name == "sync_profile" else {"summary": "Other"},
        ):
            await surface.ask(name, body=body, headers={"X-Idempotency-Key": "used"})
    await fail(emulator, "delay", method="POST", seconds=0.3, times=1)
    running = {"headers": {"X-Idempotency-Key": "running"}}
    await asyncio.gather(*(surface.ask("create_post", **running) for _ in range(2)))
    for used in (1_000, 0):  # the month's posts, and free ones again
        async with services.storage.write() as session:
            await session.execute(update(post_usage).values(used=used))
        await surface.ask("create_post")


async def failures_behind(surface: Surface, emulator: httpx.AsyncClient) -> None:
    """The provider in trouble; the posts of 112 were never read, so that no mirror answers for them."""
    await fail(emulator)
    for name in surface.promising("502"):
        await surface.ask(name, **({"params": {"locationId": "112"}} if name == "list_posts" else {}))
        await heal(emulator)
        await fail(emulator)
    await heal(emulator)


async def failures_within(surface: Surface, change: Change) -> None:
    parts: dict[str, dict[str, Any]] = {"503": {"database": AWAY}, "500": {"storage": Broken()}}
    for status, part in parts.items():
        change(**part)
        for name in surface.promising(status):
            await surface.ask(name)
    change()


async def too_many(surface: Surface, change: Change) -> None:
    change(limits=NO_ROOM)
    for name in surface.promising("429"):
        assert_error(await surface.ask(name), 429, "RATE_LIMITED")
    change()


async def test_every_promised_status_is_given_and_fits_its_schema(
    surface: Surface,
    emulator: httpx.AsyncClient,
    change: Change,
    services: Services,
) -> None:
    await refusals_of_the_caller(surface)
    await refusals_of_the_request(surface)
    await refusals_of_what_arrives(surface)
    await refusals_of_the_state(surface, emulator, services)
    await failures_behind(surface, emulator)
    await failures_within(surface, change)
    await too_many(surface, change)
    for name in REQUESTS:  # last, as the owner's requests use things up
        assert (await surface.ask(name)).is_success, name
    promised = surface.record.promised() - NEVER
    assert {name for name, _ in promised} == set(REQUESTS), "an operation without a request"
    assert promised - surface.record.seen == set()
    assert surface.record.seen - promised == set()
