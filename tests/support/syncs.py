"""Syncs over HTTP: the paths, the documented sample request, and the history of a location."""

import json
from typing import Any

import httpx
from sqlalchemy import text

from profilesvc.services.context import Services
from support.api import assert_ok

PIER, BOOKS = "locations/111", "locations/114"
SYNC, HISTORY, COMPARISON = "/api/v1/sync", "/api/v1/sync/history", "/api/v1/sync/comparison"

# The documented sample request: three fields, no regionCode, no additionalPhones.
SAMPLE: dict[str, Any] = {
    "title": "Harbour Coffee, Pier 2",
    "storefrontAddress": {
        "addressLines": ["海岸通2丁目1"],
        "locality": "横浜市",
        "administrativeArea": "神奈川県",
        "postalCode": "231-0003",
    },
    "phoneNumbers": {"primaryPhone": "+81 45-555-0177"},
}


async def history(client: httpx.AsyncClient, location: str = "111", **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assert_ok(await client.get(f"{HISTORY}/{location}", params=query))["history"]
    return found


async def store_source(services: Services, location: str, source: dict[str, Any]) -> None:
    """Store what an owner has asked for as an earlier version could: no rule is applied."""
    async with services.storage.write() as session:
        change = text("UPDATE locations SET source = :source WHERE name = :name")
        await session.execute(change, {"source": json.dumps(source), "name": location})
