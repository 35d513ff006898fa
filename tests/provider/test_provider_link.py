"""The service and a provider behind a real socket that goes wrong, in short: right code, in time, one effect."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import client_of
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.provider.breaker import COOL_DOWN_MS
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.settings import ProviderSettings, Settings
from support.api import ALICE, assert_error, assert_ok
from support.provider.rig import emulator_at, served
from support.provider.toxic import Toxic, ToxicLink
from support.waiting import deadline

SECONDS = {"latency": 1.5}  # what one request may spend at the provider: little where all of it is spent
PIER = {"locationId": "locations/111"}
KEY = {"X-Idempotency-Key": "toxic"}
READS = {
    "/api/v1/posts": {"locationId": "locations/112"},
    "/api/v1/reviews": PIER,
    "/api/v1/sync/comparison/111": {},
}
TOLD: dict[Toxic, tuple[str, bool]] = {
    "latency": ("timeout", True),
    "down": ("unavailable", True),
    "reset_peer": ("unavailable", True),
    "limit_data": ("unavailable", True),
}


@pytest.fixture
def database() -> str:
    """The effect of the connection does not depend on the database."""
    return "sqlite"


@dataclass
class Linked:
    """A caller of the service, the link behind it, and the provider at its other end."""

    alice: httpx.AsyncClient
    link: ToxicLink
    emulator: httpx.AsyncClient
    clock: FrozenClock

    async def create(self) -> httpx.Response:
        return await self.alice.post("/api/v1/posts", params=PIER, json={"summary": "Once"}, headers=KEY)

    async def made(self) -> int:
        """How many of the posts there are at the provider."""
        posts: dict[str, Any] = (await self.emulator.get("/__emulator/state")).json()["posts"]
        return sum(post["summary"] == "Once" for post in posts.values())


@pytest.fixture
async def linked(
    settings: Settings, tmp_path: Path, clock: FrozenClock, request: pytest.FixtureRequest
) -> AsyncIterator[Linked]:
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    seconds = SECONDS.get(parameters.get("toxic", ""), 8)
    (tmp_path / "provider").mkdir()
    with served(emulator_at(tmp_path / "provider", clock)) as origin:
        async with (
            ToxicLink(httpx.URL(origin).port or 0) as link,
            httpx.AsyncClient(base_url=origin, timeout=60) as emulator,
        ):
            provider = ProviderSettings(url=link.origin, timeout_seconds=seconds, edits_per_minute=0)
            app = create_app(settings.model_copy(update={"provider": provider}), Runtime(clock, SeededEntropy("link")))
            async with app.test_app():
                services: Services = app.extensions["profilesvc"]
                async with client_of(app, await tokens.user_token(services, ALICE)) as alice:
                    yield Linked(alice, link, emulator, clock)


@pytest.mark.parametrize("toxic", TOLD)
async def test_A142_a_failing_connection_is_reported_in_time_and_a_retry_has_one_effect(
    linked: Linked, toxic: Toxic
) -> None:
    await linked.link.go_wrong(toxic)
    for path, query in READS.items():
        async with deadline(SECONDS.get(toxic, 8) + 1, f"the failure of {path}"):
            details = assert_error(await linked.alice.get(path, params=query), 502, "PROVIDER_API_ERROR")
        assert (details["reason"], details["retryable"]) == TOLD[toxic]
    refused = assert_error(await linked.create(), 502, "PROVIDER_API_ERROR")
    assert (refused["reason"], refused["retryable"]) == TOLD[toxic]
    await linked.link.go_wrong("")
    linked.clock.advance(milliseconds=COOL_DOWN_MS)
    assert_ok(await linked.create(), 201)
    assert await linked.made() == 1
    for path, query in READS.items():
        assert_ok(await linked.alice.get(path, params=query))


async def test_a_response_in_small_pieces_is_read(linked: Linked) -> None:
    await linked.link.go_wrong("slicer")
    for path, query in READS.items():
        assert_ok(await linked.alice.get(path, params=query))
    assert_ok(await linked.create(), 201)
    assert await linked.made() == 1
