"""Every kind of fault at the provider in every operation that calls it (A142): the response to the caller."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.provider.breaker import COOL_DOWN_MS
from profilesvc.settings import ProviderSettings, Settings
from support.api import ALICE, assert_error, assert_ok
from support.provider.drive import calls, drift, fail, forget_calls, heal
from support.surface import OVERRIDDEN
from support.waiting import deadline

PIER = {"locationId": "locations/111"}
LOCATION = "/api/v1/external-business/locations/111"
OTHER = "/api/v1/external-business/locations/114"
METADATA = {"headers": {"Location": "http://169.254.169.254/latest/meta-data/"}}
SECONDS = 2.0  # what one request may spend at the provider where that is slow


@dataclass(frozen=True)
class Row:
    """An operation.

    `is_cached`: the cache answers it while the provider is down. `once`: it is never sent twice. `is_preview`: it goes
    on without a provider that cannot be asked.
    """

    method: str
    path: str
    body: dict[str, Any] | None = None
    params: dict[str, str] | None = None
    is_cached: bool = False
    once: bool = False
    is_preview: bool = False


OPERATIONS: dict[str, Row] = {
    "list posts never read": Row("GET", "/api/v1/posts", params={"locationId": "112"}),
    "list posts": Row("GET", "/api/v1/posts", params=PIER, is_cached=True),
    "create post": Row("POST", "/api/v1/posts", {"summary": "Once"}, PIER, once=True),
    "change post": Row("PATCH", "/api/v1/posts/11101", {"summary": "Changed"}, PIER),
    "delete post": Row("DELETE", "/api/v1/posts/11107", params=PIER),
    "get location": Row("GET", LOCATION, is_cached=True),
    "refresh verification": Row("POST", f"{LOCATION}/refresh-verification"),
    "read updates": Row("GET", f"{LOCATION}/google-updated"),
    "accept update": Row("POST", f"{OTHER}/google-updated/accept", {"updateMask": "websiteUri"}),
    "compare": Row("GET", "/api/v1/sync/comparison/111"),
    "preview": Row("POST", "/api/v1/sync/111", {"title": "New"}, {"validateOnly": "true"}, is_preview=True),
    "sync": Row("POST", "/api/v1/sync/111", {"title": "New"}),
    "list reviews": Row("GET", "/api/v1/reviews", params=PIER),
    "get review": Row("GET", "/api/v1/reviews/111002", params=PIER),
    "reply": Row("PUT", "/api/v1/reviews/111002/reply", {"comment": "Thanks"}, PIER),
    "delete reply": Row("DELETE", "/api/v1/reviews/111001/reply", params=PIER),
}

Told = tuple[str, bool]
FAULTS: dict[str, tuple[dict[str, Any], Told]] = {
    "400": ({"status": 400, "message": "no"}, ("rejected", False)),
    "401": ({"status": 401}, ("unavailable", False)),
    "403": ({"status": 403}, ("rejected", False)),
    "429": ({"status": 429}, ("rate_limited", True)),
    "500": ({"status": 500}, ("unavailable", True)),
    "503": ({"status": 503}, ("unavailable", True)),
    "slow": ({"kind": "delay", "seconds": 30}, ("timeout", True)),
    "broken body": ({"kind": "broken_body"}, ("unavailable", True)),
    "truncated body": ({"kind": "truncated"}, ("unavailable", True)),
    "disconnect": ({"kind": "disconnect"}, ("unavailable", True)),
    "oversized body": ({"kind": "huge"}, ("unavailable", False)),
    "redirect": ({"kind": "redirect", **METADATA}, ("unavailable", False)),
}
INTERNAL = (
    "emulator",
    "169.254",
    "httpx",
    "Traceback",
    "/v1/locations",
    "/v4/",
    "accounts/",
    "Error)",
    "refresh_token",
)


@pytest.fixture
def database() -> str:
    """The effect of the provider does not depend on the database."""
    return "sqlite"


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """Little patience for a slow provider."""
    slow = getattr(request.node, "callspec", None) and request.node.callspec.params.get("fault") == "slow"
    return settings.model_copy(update={"provider": ProviderSettings(timeout_seconds=SECONDS)}) if slow else settings


@pytest.fixture
async def client(as_user: AsUser, emulator: httpx.AsyncClient, clock: FrozenClock) -> httpx.AsyncClient:
    """Alice, with a cache of her posts that is a little too old to be taken unasked."""
    alice = await as_user(ALICE)
    assert_ok(await alice.get("/api/v1/posts", params=PIER))
    clock.advance(seconds=75)
    await drift(emulator, google_updated={"locations/114": OVERRIDDEN["locations/111"]})
    return alice


async def ask(client: httpx.AsyncClient, row: Row) -> httpx.Response:
    return await client.request(row.method, row.path, params=row.params, json=row.body)


async def documents(emulator: httpx.AsyncClient) -> dict[str, Any]:
    """The provider's documents. One in review changes by the clock, which is frozen here."""
    state = (await emulator.get("/__emulator/state")).json()
    return {kind: state[kind] for kind in ("locations", "posts", "reviews")}


async def known(client: httpx.AsyncClient, emulator: httpx.AsyncClient) -> dict[str, Any]:
    """The cache, as it is served while the provider is down."""
    await fail(emulator)
    rows = [row for row in OPERATIONS.values() if row.is_cached]
    kept = {row.path: assert_ok(await ask(client, row)) for row in rows}
    await heal(emulator)
    return kept


def check(response: httpx.Response, row: Row, told: Told) -> None:
    """The right code, reason and advice; nothing of our insides; never the provider's 401."""
    if row.is_cached:
        assert_ok(response)
        assert response.headers["x-data-age"] == "75"
        return
    if row.is_preview and told[0] != "rejected":
        data = assert_ok(response)
        assert (data["checked"], data["fieldsUpdated"]) == ("format", ["title"])
        return
    details = assert_error(response, 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"]) == told
    assert set(details) <= {
        "reason",
        "retryable",
        "provider_status",
        "provider_code",
        "provider_reason",
        "provider_message",
        "fields",
    }
    assert "www-authenticate" not in response.headers
    assert [word for word in INTERNAL if word in response.text] == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@ON_ONE_DATABASE
async def test_A142_a_fault_is_reported_in_time_and_has_no_later_effect(
    client: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock, fault: str
) -> None:
    members, told = FAULTS[fault]
    before, kept = await documents(emulator), await known(client, emulator)
    await fail(emulator, **{**members, "times": 1000})
    async with deadline((SECONDS if fault == "slow" else 8) + 2, "the failure of all operations"):
        responses = await asyncio.gather(*(ask(client, row) for row in OPERATIONS.values()))
    for row, response in zip(OPERATIONS.values(), responses, strict=True):
        check(response, row, told)
    await heal(emulator)
    assert await documents(emulator) == before
    assert await known(client, emulator) == kept
    clock.advance(milliseconds=COOL_DOWN_MS)
    for row in OPERATIONS.values():
        response = await ask(client, row)
        assert response.is_success, response.text
        assert "x-data-age" not in response.headers


async def test_A142_short_faults_are_retried_unless_a_post_could_be_created_twice(
    client: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for row in OPERATIONS.values():
        await fail(emulator, "flapping")
        await forget_calls(emulator)
        response = await ask(client, row)
        if row.once:
            check(response, row, ("unavailable", True))
            sent = [call["path"] for call in await calls(emulator, "POST")]
            assert len([path for path in sent if path != "/token"]) == 1  # each process logs in to the provider
        else:
            assert_ok(response)
            assert "x-data-age" not in response.headers
        await heal(emulator)
