"""A fleet of simulated sites on a moved clock: plugins that beat and refresh, their clones, and thieves."""

import contextlib
import heapq
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND, FrozenClock
from support.api import assert_ok
from support.tokens import PATH, claims

KEYS, HEARTBEAT = "/api/v1/developer/credentials", "/api/v1/api-keys/heartbeat"
REPORT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
LOST_BEATS, LOST_REFRESHES, GRACE, EARLY = 0.05, 0.01, 30 * SECOND, 5 * MINUTE
Process = AsyncIterator[int]  # yields how long it waits, in milliseconds


class Simulation:
    """Processes that wait by the service's clock, which goes from one event to the next."""

    def __init__(self, clock: FrozenClock) -> None:
        self.clock = clock
        self._waiting: list[tuple[int, int, Process]] = []
        self._started = 0

    def start(self, process: Process, after: int = 0) -> None:
        """Start a process some milliseconds from now."""
        self._wait(self.clock.now() + after, process)

    def _wait(self, until: int, process: Process) -> None:
        self._started += 1  # of those that are due at the same time the first to wait comes first
        heapq.heappush(self._waiting, (until, self._started, process))

    async def run(self, duration: int) -> None:
        """Let so many milliseconds pass; what still waits then goes on with the next run."""
        end = self.clock.now() + duration
        while self._waiting and self._waiting[0][0] <= end:
            due, _, process = heapq.heappop(self._waiting)
            self.clock.advance(milliseconds=due - self.clock.now())
            with contextlib.suppress(StopAsyncIteration):
                self._wait(self.clock.now() + await anext(process), process)
        self.clock.advance(milliseconds=end - self.clock.now())


@dataclass
class SimulatedSite:
    """A plugin with a key, its tokens, a clock of its own, and what it had to do beyond the plain way."""

    http: httpx.AsyncClient
    clock: FrozenClock
    chance: random.Random
    key: dict[str, Any]
    host: str
    clock_error: int = 0
    tokens: dict[str, Any] = field(default_factory=dict)
    log: Counter[str] = field(default_factory=Counter)
    away: tuple[int, int] | None = None

    async def live(self) -> Process:
        """A heartbeat an hour, as late as visitors let WP-Cron be; silent while it is away."""
        while True:
            if self.away is None or not self.away[0] <= self.clock.now() < self.away[1]:
                async for pause in self._beat():
                    yield pause
            yield HOUR + self.chance.randrange(10 * MINUTE)

    async def _beat(self) -> Process:
        if self._believes_expired():
            async for pause in self.refresh():
                yield pause
        answer = await self.heartbeat()
        if answer.status_code == 401:
            reason = answer.json()["error"]["details"]["reason"]
            self.log[reason] += 1
            if reason == "expired":
                async for pause in self.refresh():
                    yield pause
            else:
                await self.restart()
            answer = await self.heartbeat()
        assert_ok(answer)
        if self.chance.random() < LOST_BEATS:  # the answer, not the request: the plugin tries again
            self.log["lost beat"] += 1
            yield MINUTE
            answer = await self.heartbeat()
            assert answer.is_success or answer.json()["error"]["details"]["reason"] == "revoked", answer.text

    def _believes_expired(self) -> bool:
        expires = claims(self.tokens["access_token"])["exp"] * SECOND
        return bool(self.clock.now() + self.clock_error >= expires - EARLY)

    async def heartbeat(self, token: str = "") -> httpx.Response:
        """Send one, from where this copy of the site is."""
        headers = {
            "Authorization": f"Bearer {token or self.tokens['access_token']}",
            "User-Agent": f"WordPress/6.8; https://{self.host}",
        }
        return await self.http.post(HEARTBEAT, json=REPORT, headers=headers)

    async def restart(self) -> None:
        """Start again with the client secret."""
        credentials = {name: self.key[name] for name in ("client_id", "client_secret")}
        self.tokens = assert_ok(await self.http.post(PATH, json={"grant_type": "client_credentials", **credentials}))
        self.log["granted"] += 1

    async def refresh(self) -> Process:
        """The next pair; of a hundred answers one is lost, and the plugin asks again within the grace."""
        presented = self.tokens["refresh_token"]
        answer = await exchange(self.http, presented)
        if answer.is_success and self.chance.random() < LOST_REFRESHES:
            self.log["repeated"] += 1
            if self.chance.random() < 0.5:  # a parallel worker got the answer and goes on with it
                assert_ok(await self.heartbeat(assert_ok(answer)["access_token"]))
            yield self.chance.randrange(GRACE + 1)
            first, answer = answer, await exchange(self.http, presented)
            self.log["another pair"] += answer.is_success and _pair(first) != _pair(answer)
        if answer.status_code == 401:
            self.log["refresh refused"] += 1
            await self.restart()
        else:
            self.log["refreshed"] += 1
            self.tokens = assert_ok(answer)

    def copied(self, host: str) -> "SimulatedSite":
        """A clone: the same secret and the same tokens, at another place."""
        return SimulatedSite(self.http, self.clock, self.chance, self.key, host, self.clock_error, self.tokens)


def _pair(answer: httpx.Response) -> tuple[str, str]:
    data = assert_ok(answer)
    return data["access_token"], data["refresh_token"]


async def exchange(http: httpx.AsyncClient, refresh_token: str) -> httpx.Response:
    return await http.post(PATH, json={"grant_type": "refresh_token", "refresh_token": refresh_token})


@dataclass
class Owner:
    """The owner of the sites, who reads them through the API."""

    http: httpx.AsyncClient

    async def status(self, site: SimulatedSite) -> dict[str, Any]:
        """The connection with its history."""
        found = await self.http.get(f"/api/v1/api-keys/{site.key['client_id']}/status", params={"history": "true"})
        status: dict[str, Any] = assert_ok(found)
        return status

    async def events(self, site: SimulatedSite) -> Counter[str]:
        """How often each event of the key occurred, from all pages of its audit trail."""
        counted: Counter[str] = Counter()
        query: dict[str, Any] = {"limit": 100}
        while query.get("before", "first") is not None:
            page = assert_ok(await self.http.get(f"{KEYS}/{site.key['client_id']}/audit", params=query))
            for event in page["events"]:
                counted[event["event"]] += event["details"].get("count", 1)
            query["before"] = page["next_before"]
        return counted


@dataclass
class Clone:
    """A copy of a site at `host`, which may be the original's own, and how soon its owner could know."""

    original: SimulatedSite
    owner: Owner
    host: str
    flagged_after: int | None = None

    async def life(self, simulation: Simulation) -> Process:
        """Run a clone next to the original; for a day the owner reads the status every hour, as the dashboard does."""
        made_at = simulation.clock.now()
        simulation.start(self.original.copied(self.host).live(), self.original.chance.randrange(HOUR))
        while self.flagged_after is None and simulation.clock.now() - made_at < DAY:
            yield HOUR
            warned = "site_mismatch" in (await self.owner.status(self.original)).get("warnings", [])
            if warned or (await self.owner.events(self.original))["token.refresh_reuse"]:
                self.flagged_after = simulation.clock.now() - made_at
