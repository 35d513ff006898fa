"""Idempotency keys as rows see them: one holder at a time, and none that was overtaken changes anything (D-40)."""

from collections.abc import AsyncIterator

import pytest

from profilesvc.database.engine import Storage
from profilesvc.settings import Settings
from profilesvc.storage import idempotency
from profilesvc.storage.idempotency import ANY_FINGERPRINT, StoredClaim

FIRST = StoredClaim("print", 1, 60, 10, None, None)


@pytest.fixture
async def storage(settings: Settings) -> AsyncIterator[Storage]:
    opened = Storage(settings.effective_database_url)
    yield opened
    await opened.close()


async def insert(storage: Storage, scope: str = "s", now: int = 10) -> bool:
    async with storage.write() as session:
        return await idempotency.insert_first(session, 1, "locations/111", scope, "print", now, now + 50)


async def find(storage: Storage, scope: str = "s") -> StoredClaim | None:
    async with storage.read() as session:
        return await idempotency.find(session, 1, scope)


SECOND = StoredClaim("other", 2, 120, 10, None, None)


async def take_over(storage: Storage) -> bool:
    async with storage.write() as session:
        return await idempotency.take_over(session, 1, "s", FIRST.fence, SECOND)


async def finish(storage: Storage, fence: int, scope: str = "s") -> bool:
    async with storage.write() as session:
        return await idempotency.finish(session, 1, scope, fence, 200, "{}")


async def end_claim(storage: Storage, fence: int, can_be_corrected: bool | None = None) -> None:
    async with storage.write() as session:
        given = {} if can_be_corrected is None else {"can_be_corrected": can_be_corrected}
        await idempotency.end_claim(session, 1, "s", fence, 20, **given)


async def remove(storage: Storage, fence: int) -> None:
    async with storage.write() as session:
        await idempotency.remove(session, 1, "s", fence)


async def test_only_one_insert_succeeds(storage: Storage) -> None:
    assert await find(storage) is None
    assert await insert(storage) is True
    assert await insert(storage, now=11) is False
    assert await find(storage) == FIRST
    assert await insert(storage, "t", now=12) is True
    assert await find(storage) == FIRST


@pytest.mark.parametrize("answered", [False, True])
async def test_only_one_takes_over(storage: Storage, answered: bool) -> None:
    await insert(storage)
    await insert(storage, "t")
    assert not answered or await finish(storage, 1)
    assert await take_over(storage) is True
    assert await find(storage) == SECOND
    assert await find(storage, "t") == FIRST
    assert await take_over(storage) is False  # somebody else has seen the same
    assert await find(storage) == SECOND


async def test_the_first_response_stays(storage: Storage) -> None:
    await insert(storage)
    await insert(storage, "t")
    assert await finish(storage, 2) is False
    assert await finish(storage, 1) is True
    answered = FIRST._replace(status=200, answer="{}")
    assert await find(storage) == answered
    assert await finish(storage, 1) is False
    await end_claim(storage, 1, can_be_corrected=True)
    await remove(storage, 1)
    assert await find(storage) == answered
    assert await find(storage, "t") == FIRST


async def test_an_attempt_stays_after_its_lease(storage: Storage) -> None:
    await insert(storage)
    await insert(storage, "t")
    await end_claim(storage, 2)
    assert await find(storage) == FIRST
    await end_claim(storage, 1)
    assert await find(storage) == FIRST._replace(lease_until=20)
    await end_claim(storage, 1, can_be_corrected=True)
    assert await find(storage) == FIRST._replace(lease_until=20, fingerprint=ANY_FINGERPRINT)
    assert await find(storage, "t") == FIRST


async def test_a_removed_attempt_is_gone(storage: Storage) -> None:
    await insert(storage)
    await insert(storage, "t")
    await remove(storage, 2)
    assert await find(storage) == FIRST
    await remove(storage, 1)
    assert await find(storage) is None
    assert await find(storage, "t") == FIRST
