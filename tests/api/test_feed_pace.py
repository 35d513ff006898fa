"""How many calls the change feed makes, also for a location with many reviews."""

import json

import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.domain.time import FrozenClock
from profilesvc.operations.feed import feed as rounds
from profilesvc.services.context import Services
from profilesvc.services.feed import feed
from profilesvc.services.reviews import reviews
from profilesvc.settings import Settings
from support.provider.feed import FEED, message

pytestmark = [pytest.mark.in_process("runs the rounds itself"), ON_ONE_DATABASE]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"notifications": FEED.model_copy(update={"reads_per_minute": 60})})


@pytest.mark.slow
@pytest.mark.parametrize("pages", [50, 200])
async def test_reading_more_pages_than_a_minute_allows_is_paid_for(
    services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    calls = 0

    async def read(*_: object) -> int:
        nonlocal calls
        calls += pages
        return pages

    monkeypatch.setattr(reviews, "read", read)
    for number in range(240):  # 20 minutes
        await feed.receive(services, json.dumps(message(f"m{number}", "NEW_REVIEW")).encode())
        clock.advance(seconds=5)
        await rounds.run_once(services)
    assert 1_000 <= calls <= 1_200 + pages
