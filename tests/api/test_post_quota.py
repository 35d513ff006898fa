"""The last places of the month while other posts hold them: a place that may become free again is not used up."""

from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from api.interleave import run_before
from profilesvc.domain.time import FrozenClock, month_start
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services import post_quota
from profilesvc.services.context import Services
from profilesvc.storage import post_usage, tables
from support.api import assert_error, assert_ok
from support.posts import PATH
from support.provider.drive import fail

pytestmark = pytest.mark.in_process("runs other requests between the steps of one")
LIMIT = 1_000  # posts a month on the plan `pro`
POST = {"summary": "The last one"}
BEFORE_THE_PROVIDER = RemoteProvider, "create_post"
AFTER_THE_PROVIDER = post_quota, "use"


async def create(alice: httpx.AsyncClient, **headers: str) -> httpx.Response:
    return await alice.post(PATH, params={"locationId": "111"}, json=POST, headers=headers)


async def spend(services: Services, used: int) -> None:
    async with services.storage.write() as session:
        values = {"owner_id": 1, "month": month_start(services.clock.now()), "used": used}
        await session.execute(insert(tables.post_usage).values(values))


async def usage(services: Services) -> tuple[int, int]:
    """The posts that are counted, and those that hold a place."""
    async with services.storage.read() as session:
        found = await post_usage.find(session, 1, month_start(services.clock.now()))
    return found.used, found.held_at(services.clock.now())


def assert_retried(response: httpx.Response) -> None:
    assert_error(response, 429, "RATE_LIMITED")
    assert int(response.headers["retry-after"]) <= 5


@pytest.mark.parametrize("key", [{}, {"X-Idempotency-Key": "last"}], ids=["no key", "a key"])
async def test_place_of_a_post_that_is_rejected_later_is_not_used_up(
    alice: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    key: dict[str, str],
) -> None:
    await spend(services, LIMIT - 1)
    await fail(emulator, method="POST", status=400, times=1)

    async def other() -> None:
        assert_retried(await create(alice, **key))

    run_before(monkeypatch, *BEFORE_THE_PROVIDER, other)
    assert_error(await create(alice), 502, "PROVIDER_API_ERROR")
    assert await usage(services) == (LIMIT - 1, 0)
    assert_ok(await create(alice, **key), 201)
    assert await usage(services) == (LIMIT, 0)
    assert_error(await create(alice), 429, "QUOTA_EXCEEDED")


@pytest.mark.parametrize("step", [BEFORE_THE_PROVIDER, AFTER_THE_PROVIDER], ids=["sending", "sent"])
async def test_place_is_used_up_only_once_the_post_is_stored(
    alice: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str]
) -> None:
    if services.storage.is_sqlite and step is AFTER_THE_PROVIDER:
        pytest.skip("the transaction of the first post has the only writer")
    await spend(services, LIMIT - 1)

    async def other() -> None:
        assert_retried(await create(alice))

    run_before(monkeypatch, *step, other)
    assert_ok(await create(alice), 201)
    assert_error(await create(alice), 429, "QUOTA_EXCEEDED")


async def test_no_place_can_become_free_if_the_quota_is_used_up_without_those_that_are_held(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await spend(services, LIMIT + 1)  # the plan was larger
    held = {"held": 1, "held_until": clock.now() + 60_000}
    async with services.storage.write() as session:
        await session.execute(tables.post_usage.update().values(held))
    assert_error(await create(alice), 429, "QUOTA_EXCEEDED")


async def test_hold_of_a_process_that_was_killed_ends_by_itself(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spend(services, LIMIT - 2)

    class Killed(BaseException):
        pass

    async def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RemoteProvider, "create_post", killed)
        with pytest.raises(Killed):
            await create(alice)
    assert await usage(services) == (LIMIT - 1, 1)
    assert_ok(await create(alice), 201)  # its own place
    assert_retried(await create(alice))
    clock.advance(minutes=5)
    assert_error(await create(alice), 429, "QUOTA_EXCEEDED")
    assert await usage(services) == (LIMIT, 0)


async def test_post_whose_response_is_lost_uses_its_place(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
) -> None:
    await spend(services, LIMIT - 1)
    await fail(emulator, "disconnect", method="POST", times=1)
    assert_error(await create(alice), 502, "PROVIDER_API_ERROR")
    assert await usage(services) == (LIMIT, 0)
    assert_error(await create(alice), 429, "QUOTA_EXCEEDED")


@pytest.mark.parametrize("is_rejected", [False, True], ids=["created", "rejected"])
async def test_warning_counts_only_posts_that_use_their_places(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, is_rejected: bool
) -> None:
    await spend(services, LIMIT * 8 // 10 - 1)
    if is_rejected:
        await fail(emulator, method="POST", status=400, times=1)
    assert (await create(alice)).status_code == (502 if is_rejected else 201)
    async with services.storage.read() as session:
        query = select(tables.events.c.type).where(tables.events.c.type == "quota.warning")
        assert len((await session.execute(query)).all()) == (0 if is_rejected else 1)
