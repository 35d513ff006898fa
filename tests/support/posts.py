"""Shared parts of the tests of posts."""

from typing import Any

import httpx

from support.api import assert_ok

PATH = "/api/v1/posts"
PIER = {"locationId": "locations/111"}
BIKES = {"locationId": "locations/211"}


async def fail(emulator: httpx.AsyncClient, times: int = 100, **fault: Any) -> None:
    """The next calls about posts go wrong."""
    body = {"match": {"path": "/v4"}, "times": times, "kind": "status", **fault}
    assert (await emulator.post("/__emulator/faults", json=body)).is_success


async def calls(emulator: httpx.AsyncClient, method: str = "GET") -> list[dict[str, Any]]:
    """The calls about posts that the provider saw."""
    seen = (await emulator.get("/__emulator/requests")).json()["requests"]
    return [call for call in seen if call["method"] == method and call["path"].startswith("/v4")]


async def names(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """The ids of the posts of the first page."""
    page = assert_ok(await client.get(PATH, params={**PIER, **query}))
    return [post["name"].rpartition("/")[2] for post in page["localPosts"]]
