"""The provider's quota as callers and operators see it."""

from dataclasses import dataclass, replace

import httpx
import pytest

from conftest import AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.services.logins import importing
from profilesvc.settings import ProviderSettings, Settings
from support.api import ALICE, BOB, assert_error, assert_ok

pytestmark = pytest.mark.in_process("has the quota of one process")
LIMIT, UPDATES = 8, 8
REVIEWS = {"locationId": "locations/111"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A small quota, which an emulator has only if it is set."""
    quota = ProviderSettings(requests_per_minute=LIMIT, updates_per_day=UPDATES, owner_share_percent=50)
    return settings.model_copy(update={"provider": quota})


async def test_A189_request_over_the_quota_is_refused_with_the_time_to_wait(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    for _ in range(LIMIT // 2):
        assert_ok(await alice.get("/api/v1/reviews", params=REVIEWS))
    await emulator.delete("/__emulator/requests")
    clock.advance(seconds=15)
    response = await alice.get("/api/v1/reviews", params=REVIEWS)
    details = assert_error(response, 502, "PROVIDER_API_ERROR")
    assert details == {"reason": "quota", "retryable": True}
    assert response.headers["retry-after"] == "45"
    calls = (await emulator.get("/__emulator/requests")).json()["requests"]
    assert [call for call in calls if call["path"].startswith("/v4")] == []
    clock.advance(seconds=45)
    assert_ok(await alice.get("/api/v1/reviews", params=REVIEWS))


async def test_A189_owner_who_reads_much_leaves_requests_for_others(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    bob = await as_user(BOB)

    async def read(caller: httpx.AsyncClient, location: str) -> int:
        return (await caller.get("/api/v1/reviews", params={"locationId": location})).status_code

    half = LIMIT // 2
    assert [await read(alice, "locations/111") for _ in range(half + 1)] == [200] * half + [502]
    assert [await read(bob, "locations/211") for _ in range(half + 1)] == [200] * half + [502]


@pytest.mark.slow
async def test_A189_owner_who_updates_much_leaves_updates_for_others(
    alice: httpx.AsyncClient, as_user: AsUser, clock: FrozenClock
) -> None:
    bob = await as_user(BOB)

    async def sync(caller: httpx.AsyncClient, location: str, number: int) -> httpx.Response:
        return await caller.post(
            f"/api/v1/sync/{location}", json={"websiteUri": f"https://{location}.example/{number}"}
        )

    async def granted(caller: httpx.AsyncClient, location: str) -> int:
        found = 0
        while (await sync(caller, location, found)).status_code == 200:
            found += 1
            clock.advance(minutes=1)
        return found

    assert await granted(alice, "111") == UPDATES // 2
    refused = await sync(alice, "111", 99)
    assert assert_error(refused, 502, "PROVIDER_API_ERROR") == {"reason": "quota", "retryable": True}
    assert "This owner's share of the limit of 8 updates of locations per day" in refused.json()["error"]["message"]
    assert int(refused.headers["retry-after"]) == 86_400 - 4 * 60
    assert await granted(bob, "211") == UPDATES // 2


async def test_metrics_show_the_refusals(alice: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    for _ in range(LIMIT // 2 + 1):
        await alice.get("/api/v1/reviews", params=REVIEWS)
    text = (await http.get("/metrics")).text
    assert 'profilesvc_provider_quota_events_total{api="posts",event="refused"} 1.0' in text


@dataclass
class Passing:
    """A clock on which a pause takes its time."""

    clock: FrozenClock

    def now(self) -> int:
        return self.clock.now()

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)


async def test_import_of_more_locations_than_the_quota_waits(
    services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    started = clock.now()
    names = await importing.import_account(replace(services, clock=Passing(clock)), ALICE, "accounts/1")
    assert len(names) > LIMIT // 2  # the share of background work
    assert clock.now() - started >= 60_000
    calls = (await emulator.get("/__emulator/requests")).json()["requests"]
    assert {call["status"] for call in calls} == {200}
