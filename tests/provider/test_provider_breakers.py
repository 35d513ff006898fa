"""Circuit breakers of one party and of everything, against answers that are scripted call by call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from profilesvc.domain.time import FrozenClock
from profilesvc.provider.breaker import COOL_DOWN_MS, FAILURES, PARTIES
from profilesvc.provider.port import ProviderError
from support.provider.rig import _adapter, refused_by

DEAD, ALIVE = "locations/111", "locations/112"
DOWN, UP = httpx.ConnectError("down"), httpx.Response(200, json={"name": "x"})


@dataclass
class OneLogin:
    """A connected login."""

    owner_id: int = 7
    refresh_token: str = field(default="1//own", repr=False)

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        yield

    async def renewed(self) -> None:
        pass

    async def ended(self, reason: str) -> ProviderError:
        raise AssertionError(reason)


class Places:
    """A provider that responds for some locations."""

    def __init__(self, clock: FrozenClock, *dead: str) -> None:
        self.dead, self.asked = set(dead), list[str]()
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._respond), base_url="http://provider")
        self.provider = _adapter(client, clock)

    async def _respond(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 3599})
        name = request.url.path.removeprefix("/v1/")
        self.asked.append(name)
        if name in self.dead:
            raise DOWN
        return UP

    async def fail(self, name: str, times: int = 1, provider: Any = None) -> ProviderError:
        for _ in range(times):
            error = await refused_by((provider or self.provider).location(name))
        return error


async def test_location_without_response_pauses_only_itself(clock: FrozenClock) -> None:
    places = Places(clock, DEAD)
    await places.fail(DEAD, FAILURES)
    places.asked.clear()
    assert "not called" in str(await places.fail(DEAD))
    assert places.asked == []
    for number in range(2 * FAILURES):
        await places.provider.location(f"locations/{200 + number}")
    places.dead.clear()
    clock.advance(milliseconds=COOL_DOWN_MS)
    await places.provider.location(DEAD)


async def test_outage_pauses_everything_after_three_parties(clock: FrozenClock) -> None:
    names = [f"locations/{number}" for number in range(PARTIES)]
    places = Places(clock, *names, ALIVE)
    for number in range(FAILURES):
        await places.fail(names[number % PARTIES])
    places.asked.clear()
    assert "not called" in str(await places.fail(ALIVE))
    assert places.asked == []
    clock.advance(milliseconds=COOL_DOWN_MS)
    places.dead.clear()
    for name in (*names, ALIVE):
        await places.provider.location(name)


async def test_response_to_another_party_is_no_outage(clock: FrozenClock) -> None:
    names = [f"locations/{number}" for number in range(PARTIES)]
    places = Places(clock, *names)
    for number in range(3 * FAILURES):
        await places.fail(names[number % PARTIES])
        await places.provider.location(ALIVE)


async def test_connected_login_is_one_party(clock: FrozenClock) -> None:
    places = Places(clock, "locations/1", "locations/2", "locations/3")
    own = places.provider.signed_in(OneLogin())
    for number in range(FAILURES):
        await places.fail(f"locations/{number % PARTIES + 1}", provider=own)
    places.asked.clear()
    assert "not called" in str(await refused_by(own.location(ALIVE)))
    assert places.asked == []
    await places.provider.location(ALIVE)
    await places.provider.signed_in(OneLogin(8)).location(ALIVE)


class Pages:
    """A provider whose lists never end; each page after the first takes a while."""

    def __init__(self, clock: FrozenClock, seconds: float) -> None:
        self.seconds, self.asked = seconds, 0
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._respond), base_url="http://provider")
        self.provider = _adapter(client, clock, timeout_seconds=0.5)

    async def _respond(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 3599})
        self.asked += 1
        if "pageToken" in request.url.params:
            await asyncio.sleep(self.seconds)
        return httpx.Response(200, json={"nextPageToken": f"{self.asked}"})


@pytest.mark.parametrize(("seconds", "is_paused"), [(0.02, False), (60, True)])
async def test_list_with_too_many_pages_is_no_outage_unless_one_does_not_come(
    clock: FrozenClock, seconds: float, is_paused: bool
) -> None:
    pages = Pages(clock, seconds)
    for _ in range(FAILURES):
        error = await refused_by(pages.provider.posts("accounts/1", ALIVE))
        assert (error.reason, error.retryable) == ("timeout", True)
    pages.asked = 0
    error = await refused_by(pages.provider.posts("accounts/1", ALIVE))
    assert ("not called" in str(error), pages.asked == 0) == (is_paused, is_paused)
