"""Many threads or tasks that need a token at the same moment make one call for it."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from profilesvc.client import AsyncOptions, AsyncProfileClient, ProfileClient, SyncOptions
from profilesvc.contract.keys import KeyCreated
from support.clients.sdk import TOKEN, Recorded, Service

MANY = 50


def test_threads_make_one_grant(service: Service, site: ProfileClient, recorded: Recorded) -> None:
    site.heartbeat()
    for pause in ({"hours": 1}, {"days": 40}):
        service.clock.advance(**pause)
        start = threading.Barrier(MANY)

        def work(_: int, start: threading.Barrier = start) -> bool:
            start.wait()
            return site.heartbeat().received

        with ThreadPoolExecutor(MANY) as threads:
            assert all(threads.map(work, range(MANY)))
    assert recorded.grants == ["credentials", "refresh", "credentials"]


async def test_tasks_make_one_grant(
    service: Service, key: KeyCreated, recorded: Recorded, async_options: AsyncOptions
) -> None:
    pair = key.client_id, key.client_secret
    async with AsyncProfileClient.service(service.url, *pair, **async_options) as site:
        await site.heartbeat()
        service.clock.advance(hours=1)
        answers = await asyncio.gather(*(site.heartbeat() for _ in range(MANY)))
    assert all(answer.received for answer in answers)
    assert recorded.grants == ["credentials", "refresh"]


def test_threads_replace_a_rejected_token_once(
    service: Service, key: KeyCreated, recorded: Recorded, options: SyncOptions
) -> None:
    stopped: SyncOptions = {**options, "clock": lambda: 0.0}
    with ProfileClient.service(service.url, key.client_id, key.client_secret, **stopped) as site:
        site.heartbeat()
        service.clock.advance(hours=2)
        with ThreadPoolExecutor(MANY) as threads:
            assert all(answer.received for answer in threads.map(lambda _: site.heartbeat(), range(MANY)))
    assert recorded.grants == ["credentials", "credentials"]


async def test_a_task_that_gives_up_leaves_the_others_their_turn() -> None:
    asked = asyncio.Event()
    grants = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal grants
        if request.url.path != "/api/v1/auth/token":
            return httpx.Response(200, json={"status": "ok", "data": {"businesses": []}})
        grants += 1
        if grants == 1:
            asked.set()
            await asyncio.sleep(60)
        return httpx.Response(200, json={"status": "ok", "data": TOKEN})

    transport = httpx.MockTransport(answer)
    async with AsyncProfileClient.service("https://profiles.test", "id", "secret", transport=transport) as site:
        first = asyncio.create_task(site.businesses())
        await asked.wait()
        others = [asyncio.create_task(site.businesses()) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.gather(*others)
    assert grants == 2
