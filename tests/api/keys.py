"""Keys over HTTP: their paths, a key as its owner sees it, and how a use case refuses."""

from typing import Any

import httpx
import pytest

from profilesvc.domain.errors import ServiceError
from support.api import Site, assert_ok

KEYS = "/api/v1/developer/credentials"
WEEK = 604_800


def path(site: Site, what: str = "") -> str:
    return f"{KEYS}/{site.key['client_id']}{what}"


async def listed(owner: httpx.AsyncClient, site: Site) -> dict[str, Any]:
    found = assert_ok(await owner.get(KEYS, params={"include_revoked": "true"}))["credentials"]
    return next(entry for entry in found if entry["client_id"] == site.key["client_id"])


async def refusal(work: Any) -> tuple[str, str]:
    with pytest.raises(ServiceError) as caught:
        await work
    return caught.value.kind.code, caught.value.message
