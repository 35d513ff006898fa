"""The provider's limit of edits per minute and profile, counted for all processes together."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from conftest import Postgres, make_settings
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.domain.time import FrozenClock
from profilesvc.limits import redis
from profilesvc.limits.settings import LimitSettings
from profilesvc.provider.port import Provider, ProviderError
from profilesvc.settings import ProviderSettings
from support.provider.rig import START, emulator_at, served

pytestmark = pytest.mark.postgres
ALICE, PIER, OTHER = "accounts/1", "locations/111", "locations/112"
LIMIT = 5


@pytest.fixture(params=["database", "redis"])
async def processes(
    request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Provider, Provider]]:
    """The providers of two processes, each with a database, a client of the provider and counters of its own."""
    await asyncio.to_thread(postgres.restored, "work")
    patient = functools.partial(redis.SharedWindows, timeout=60)  # a busy machine is no fault of the server
    monkeypatch.setattr(redis, "SharedWindows", patient)
    url = "memory://" if request.param == "database" else request.getfixturevalue("redis_server").url
    async with AsyncExitStack() as stack:
        origin = stack.enter_context(served(emulator_at(tmp_path, FrozenClock(START))))
        settings = make_settings(
            tmp_path,
            postgres.url("work"),
            provider=ProviderSettings(url=origin, timeout_seconds=60, edits_per_minute=LIMIT),
            limits=LimitSettings(enabled=False, storage_url=SecretStr(url)),
        )
        one, two = [await stack.enter_async_context(open_services(settings, Runtime())) for _ in range(2)]
        yield one.provider, two.provider


async def edit(provider: Provider, location: str, number: int) -> Any:
    return await provider.create_post(ALICE, location, {"topicType": "STANDARD", "summary": f"Edit {number}"})


async def test_two_processes_share_it(processes: tuple[Provider, Provider]) -> None:
    one, two = processes
    edits = [edit(provider, PIER, number) for number in range(LIMIT) for provider in (one, two)]
    results = await asyncio.gather(*edits, return_exceptions=True)
    rejected = [result for result in results if isinstance(result, ProviderError)]
    assert len(results) - len(rejected) == LIMIT
    for error in rejected:
        assert (error.reason, error.reached) == ("rate_limited", False)
        assert error.retry_after is not None
        assert 0 < error.retry_after <= 60
    for provider in processes:  # the limit is each profile's own
        await edit(provider, OTHER, 1)


@pytest.mark.parametrize("processes", ["database"], indirect=True)
async def test_while_the_database_fails_each_process_counts_its_own(
    processes: tuple[Provider, Provider], postgres: Postgres
) -> None:
    await asyncio.to_thread(postgres.run, "ALTER TABLE leases RENAME TO away", "work")
    try:
        for provider in processes:
            for number in range(LIMIT):
                await edit(provider, PIER, number)
            with pytest.raises(ProviderError, match="limit of 5 edits"):
                await edit(provider, PIER, LIMIT)
    finally:
        await asyncio.to_thread(postgres.run, "ALTER TABLE away RENAME TO leases", "work")
