"""Every window of time ends with the very second it should, on odd days as on others."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from profilesvc.domain.time import SECOND, FrozenClock, iso, parse_iso
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage.tables import post_usage
from support.api import ALICE, assert_error, assert_ok

KEYS = "/api/v1/developer/credentials"
TOKEN = "/api/v1/auth/token"
LOCATIONS = "/api/v1/external-business/locations"
POSTS = "/api/v1/posts?locationId=111"
HOUR, DAY = 3_600, 86_400


@dataclass
class Rig:
    """A service whose clock is set to an instant."""

    http: httpx.AsyncClient
    services: Services
    clock: FrozenClock

    def set(self, instant: int) -> None:
        self.clock.advance(milliseconds=instant - self.clock.now())

    async def user(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {await tokens.user_token(self.services, ALICE)}"}

    async def site(self, **members: Any) -> dict[str, Any]:
        """A new key with its first tokens."""
        body = {"name": "Edge", "business_id": 10, "assigned_location_id": "111", **members}
        key = assert_ok(await self.http.post(KEYS, json=body, headers=await self.user()), 201)
        return {**key, **assert_ok(await self.grant(key))}

    async def grant(self, key: dict[str, Any]) -> httpx.Response:
        credentials = {name: key[name] for name in ("client_id", "client_secret")}
        return await self.http.post(TOKEN, json={"grant_type": "client_credentials", **credentials})

    async def refresh(self, token: str) -> httpx.Response:
        return await self.http.post(TOKEN, json={"grant_type": "refresh_token", "refresh_token": token})


def bearer(site: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {site['access_token']}"}


Probe = Callable[[], Awaitable[Any]]


async def connection(rig: Rig) -> Probe:
    site = await rig.site()
    assert_ok(await rig.http.post("/api/v1/api-keys/heartbeat", json={}, headers=bearer(site)))
    path = f"/api/v1/api-keys/{site['client_id']}/status"

    async def probe() -> Any:
        return assert_ok(await rig.http.get(path, headers=await rig.user()))["connection_status"]

    return probe


async def access_token(rig: Rig) -> Probe:
    site = await rig.site()

    async def probe() -> Any:
        return (await rig.http.get(LOCATIONS, headers=bearer(site))).status_code

    return probe


async def user_token(rig: Rig) -> Probe:
    headers = await rig.user()

    async def probe() -> Any:
        return (await rig.http.get(LOCATIONS, headers=headers)).status_code

    return probe


async def refresh_token(rig: Rig) -> Probe:
    site = await rig.site()

    async def probe() -> Any:
        return (await rig.refresh(site["refresh_token"])).status_code

    return probe


async def grace(rig: Rig) -> Probe:
    """The repeat of an exchange."""
    site = await rig.site()
    first = await rig.refresh(site["refresh_token"])

    async def probe() -> Any:
        again = await rig.refresh(site["refresh_token"])
        return "the same pair" if again.content == first.content else again.status_code

    return probe


async def idempotency(rig: Rig) -> Probe:
    site = await rig.site()

    async def send() -> httpx.Response:
        headers = {**bearer(site), "X-Idempotency-Key": site["client_id"]}
        return await rig.http.post("/api/v1/sync/111", json={"title": "Edge"}, headers=headers)

    first = await send()

    async def probe() -> Any:
        again = await send()
        assert ("idempotency-replayed" in again.headers) == (again.content == first.content)
        return "replayed" if again.content == first.content else again.status_code

    return probe


async def expiring_key(rig: Rig) -> Probe:
    end = rig.clock.now() + DAY * SECOND
    site = await rig.site(expires_at=iso(end))

    async def probe() -> Any:
        return (await rig.grant(site)).status_code

    return probe


async def rolled_secret(rig: Rig) -> Probe:
    site = await rig.site()
    path, body = f"{KEYS}/{site['client_id']}/roll", {"overlap_seconds": HOUR}
    assert_ok(await rig.http.post(path, json=body, headers=await rig.user()))

    async def probe() -> Any:
        return (await rig.grant(site)).status_code

    return probe


# (what, seconds after its beginning, what holds a second before, what holds from then on)
EDGES: list[tuple[Callable[[Rig], Awaitable[Probe]], int, Any, Any]] = [
    (connection, 2 * HOUR + 1, "online", "idle"),
    (connection, 24 * HOUR, "idle", "offline"),
    (access_token, 90 * DAY, 200, 401),
    (user_token, 7 * DAY, 200, 401),
    (refresh_token, 30 * DAY, 200, 401),
    (grace, 31, "the same pair", 401),
    (idempotency, 24 * HOUR, "replayed", 200),
    (expiring_key, DAY, 200, 401),
    (rolled_secret, HOUR, 200, 401),
]
INSTANTS = {
    "ordinary": "2026-01-02T03:04:05Z",
    "clocks go forward": "2026-03-29T00:59:59Z",
    "clocks go back": "2026-11-01T05:59:59Z",
    "end of a year": "2026-12-31T23:59:59Z",
    "a leap second may come": "2027-06-30T23:59:59Z",
    "leap day": "2028-02-28T23:59:59Z",
    "end of a leap February": "2028-02-29T23:59:59Z",
    "end of 32 bits": "2038-01-19T03:14:07Z",
}
# Both databases store numbers; only the largest one could be too much for a column.
ON_DATABASES = [
    *(("sqlite", instant) for instant in INSTANTS),
    pytest.param("postgres", "end of 32 bits", marks=pytest.mark.postgres),
]
LAST_SECONDS = {
    "2026-01-31T23:59:59Z": "2026-02-01T00:00:00.000Z",
    "2026-02-28T23:59:59Z": "2026-03-01T00:00:00.000Z",
    "2026-04-30T23:59:59Z": "2026-05-01T00:00:00.000Z",
    "2026-12-31T23:59:59Z": "2027-01-01T00:00:00.000Z",
    "2028-02-28T23:59:59Z": "2028-03-01T00:00:00.000Z",
    "2028-02-29T23:59:59Z": "2028-03-01T00:00:00.000Z",
}


@pytest.fixture
def rig(http: httpx.AsyncClient, services: Services, clock: FrozenClock) -> Rig:
    return Rig(http, services, clock)


def test_there_are_sixty_edges() -> None:
    assert len(EDGES) * len(INSTANTS) + len(LAST_SECONDS) >= 60


@pytest.mark.slow
@pytest.mark.parametrize(("database", "instant"), ON_DATABASES)
async def test_windows_end_with_their_second(rig: Rig, instant: str) -> None:
    begin, seen = parse_iso(INSTANTS[instant]), []
    for what, after, _, _ in EDGES:
        for offset in (after - 1, after):
            rig.set(begin)
            probe = await what(rig)
            rig.set(begin + offset * SECOND)
            seen.append((what.__name__, offset, await probe()))
    expected = [
        (what.__name__, after - 1 + late, value) for what, after, *values in EDGES for late, value in enumerate(values)
    ]
    assert seen == expected


@pytest.mark.parametrize("last", LAST_SECONDS)
async def test_a_month_ends_with_its_last_second(rig: Rig, last: str) -> None:
    instant, resets = parse_iso(last), LAST_SECONDS[last]
    rig.set(instant)
    site = await rig.site()
    assert_ok(await rig.http.post(POSTS, json={"summary": "First"}, headers=bearer(site)), 201)
    async with rig.services.storage.write() as session:
        await session.execute(post_usage.update().values(used=1_000))
    refused = await rig.http.post(POSTS, json={"summary": "Late"}, headers=bearer(site))
    details = assert_error(refused, 429, "QUOTA_EXCEEDED")
    until = (parse_iso(resets) - instant) // SECOND
    assert (details["resets_at"], refused.headers["retry-after"]) == (resets, str(until))
    rig.set(parse_iso(resets) - SECOND)
    assert (await rig.http.post(POSTS, json={"summary": "Late"}, headers=bearer(site))).status_code == 429
    rig.set(parse_iso(resets))
    assert_ok(await rig.http.post(POSTS, json={"summary": "Early"}, headers=bearer(site)), 201)


@pytest.mark.parametrize(("step", "status"), [(-60, 200), (-61, 401), (-HOUR, 401), (HOUR, 200)])
async def test_A152_tokens_follow_a_clock_that_steps(rig: Rig, step: int, status: int) -> None:
    """A token from the future is refused beyond a minute, and good again when its time has come."""
    begin = parse_iso(INSTANTS["ordinary"])
    rig.set(begin)
    site = await rig.site()
    assert_ok(await rig.http.post("/api/v1/api-keys/heartbeat", json={}, headers=bearer(site)))
    rig.set(begin + step * SECOND)
    for method, path in [("GET", LOCATIONS), ("POST", "/api/v1/api-keys/heartbeat")]:
        body: dict[str, Any] = {"json": {}} if method == "POST" else {}
        assert (await rig.http.request(method, path, headers=bearer(site), **body)).status_code == status
    again = {**site, **assert_ok(await rig.grant(site))}
    assert_ok(await rig.http.post("/api/v1/api-keys/heartbeat", json={}, headers=bearer(again)))
    path = f"/api/v1/api-keys/{site['client_id']}/status"
    seen = assert_ok(await rig.http.get(path, headers=await rig.user()))
    assert parse_iso(seen["last_heartbeat_at"]) == begin + max(step, 0) * SECOND  # never backwards
    rig.set(begin)
    assert_ok(await rig.http.get(LOCATIONS, headers=bearer(site)))
