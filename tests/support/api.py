"""Shared assertions of the API tests: one per envelope, and the callers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

ALICE, BOB, CAROL = "alice@example.com", "bob@example.com", "carol@example.com"
OWNERS = {"locations/1": ALICE, "locations/2": BOB, "locations/3": CAROL}
BUSINESSES = {
    "locations/111": 10,
    "locations/112": 10,
    "locations/113": 10,
    "locations/114": 11,
    "locations/119": 10,
    "locations/211": 20,
    "locations/219": 20,
    "locations/311": 30,
}


TOO_MANY_HEADERS = {"X-Large": "x" * 17_000}


async def unfinished() -> AsyncIterator[bytes]:
    """A body that starts and never ends."""
    yield b"{"
    await asyncio.sleep(60)


def owner_of(location: str) -> str:
    """The demo user whose location it is."""
    return OWNERS[location[: len("locations/1")]]


def assert_ok(response: httpx.Response, status: int = 200) -> Any:
    """The Success envelope and nothing else; its data."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"status", "data"}
    assert body["status"] == "ok"
    return body["data"]


class Response(Protocol):
    """The attributes of a response that `assert_error` reads: of httpx, or of a client of the tests."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Any: ...

    @property
    def text(self) -> str: ...

    def json(self) -> Any: ...


def assert_error(response: Response, status: int, code: str) -> dict[str, Any]:
    """The Failure envelope and nothing else; its details."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"status", "error"}
    assert body["status"] == "error"
    assert set(body["error"]) <= {"code", "message", "details"}
    assert body["error"]["code"] == code, response.text
    assert body["error"]["message"]
    details: dict[str, Any] = body["error"].get("details", {})
    return details


def fields(details: dict[str, Any]) -> list[str]:
    """The fields that a VALIDATION_ERROR names."""
    return [problem["field"] for problem in details["errors"]]


@dataclass
class Site:
    """A site plugin: its key, its tokens, and a client that sends them."""

    key: dict[str, Any]
    tokens: dict[str, Any]
    http: httpx.AsyncClient

    @property
    def credentials(self) -> dict[str, str]:
        return {"client_id": self.key["client_id"], "client_secret": self.key["client_secret"]}
