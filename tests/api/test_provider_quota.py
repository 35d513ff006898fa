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
LIMIT, UPDATES = 4, 8
REVIEWS = {"locationId": "locations/111"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A small quota, which an emulator has only if it is set."""
    quota = ProviderSettings(requests_per_minute=LIMIT, updates_per_day=UPDATES)
    return settings.model_copy(update={"provider": quota})


async def test_A189_request_over_the_quota_is_refused_with_the_time_to_wait(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    for _ in range(LIMIT):
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


async def test_other_owner_gets_half_after_a_refusal(
    alice: httpx.AsyncClient, as_user: AsUser, clock: FrozenClock
) -> None:
    bob = await as_user(BOB)

    async def read(caller: httpx.AsyncClient, location: str) -> int:
        return (await caller.get("/api/v1/reviews", params={"locationId": location})).status_code

    assert [await read(alice, "locations/111") for _ in range(LIMIT)] == [200] * LIMIT
    assert await read(bob, "locations/211") == 502
    clock.advance(minutes=1)
    assert [await read(alice, "locations/111") for _ in range(LIMIT)] == [200, 200, 502, 502]
    assert [await read(bob, "locations/211") for _ in range(2)] == [200, 200]


@pytest.mark.slow
async def test_A189_owner_who_updates_much_leaves_updates_for_others(
    alice: httpx.AsyncClient, as_user: AsUser, clock: FrozenClock
) -> None:
    """Alice has the whole day until Bob has asked, too. Then each of them stops at what is left."""
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

    assert await granted(alice, "111") == UPDATES
    refused = await sync(bob, "211", 0)
    assert assert_error(refused, 502, "PROVIDER_API_ERROR") == {"reason": "quota", "retryable": True}
    assert "The limit of 8 updates of locations per day is used up" in refused.json()["error"]["message"]
    clock.advance(days=1)
    assert await granted(alice, "111") == UPDATES // 2
    refused = await sync(alice, "111", 99)
    assert "This owner's share of the limit of 8 updates" in refused.json()["error"]["message"]
    assert int(refused.headers["retry-after"]) == 86_400 - 4 * 60
    clock.advance(minutes=1)  # each sync is two requests
    assert await granted(bob, "211") == UPDATES // 4


async def test_metrics_show_the_budget_and_the_refusals(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for _ in range(LIMIT + 1):
        await alice.get("/api/v1/reviews", params=REVIEWS)
    text = (await http.get("/metrics")).text
    assert f'profilesvc_provider_budget{{api="posts"}} {LIMIT}.0' in text
    assert 'profilesvc_provider_waiting{api="posts"} 0.0' in text
    assert 'profilesvc_provider_quota_events_total{api="posts",event="refused"} 1.0' in text
    switches = {"switches": {"requests_per_minute": 1}}
    assert (await emulator.put("/__emulator/state", json=switches)).status_code == 200
    for _ in range(2):
        await alice.get("/api/v1/locations/111/comparison")
        await alice.post("/api/v1/external-business/locations/111/refresh-verification")
    assert 'event="shrunk"' in (await http.get("/metrics")).text


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
    assert len(names) > LIMIT
    assert clock.now() - started >= 60_000
    calls = (await emulator.get("/__emulator/requests")).json()["requests"]
    assert {call["status"] for call in calls} == {200}
