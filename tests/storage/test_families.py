"""The exchange of refresh tokens as rows see it: one step is taken once, whatever else is tried (D-10)."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import insert, select

from profilesvc.database.engine import Storage
from profilesvc.settings import Settings
from profilesvc.storage import families
from profilesvc.storage.families import Exchange, Family
from profilesvc.storage.tables import families as rows
from profilesvc.storage.tables import keys

NOW = 1_000
KEY = {
    "id": 1,
    "client_id": "svcid_1_1_site",
    "owner_id": 1,
    "business_id": 10,
    "location_name": "locations/111",
    "name": "Site",
    "permissions": "business.read",
    "allowed_domains": "",
    "created_at": 1,
}


@pytest.fixture
async def storage(settings: Settings) -> AsyncIterator[Storage]:
    opened = Storage(settings.effective_database_url)
    async with opened.write() as session:
        await session.execute(insert(keys).values(KEY))
    yield opened
    await opened.close()


async def advance(storage: Storage, of: int, family: str = "f", now: int = NOW, expires_at: int = 5_000) -> bool:
    exchange = Exchange(1, family, 1, of, f"{family} after {of}", expires_at)
    async with storage.write() as session:
        return await families.advance(session, exchange, now)


async def find(storage: Storage, family: str = "f") -> Family | None:
    async with storage.read() as session:
        return await families.find(session, 1, family)


async def expiry(storage: Storage, family: str = "f") -> int:
    async with storage.write() as session:
        found = await session.execute(select(rows.c.expires_at).where(rows.c.id == family))
        return int(found.scalar_one())


async def test_a_family_has_a_row_from_its_first_exchange(storage: Storage) -> None:
    assert await find(storage) is None
    assert await advance(storage, 0) is True
    assert await find(storage) == Family(1, NOW, "f after 0")
    assert await expiry(storage) == 5_000


async def test_each_generation_is_exchanged_once_and_in_order(storage: Storage) -> None:
    assert await advance(storage, 1) is False  # of an unknown family
    assert await advance(storage, 0)
    assert [await advance(storage, of, now=NOW + 1) for of in (0, 2, 5)] == [False] * 3
    assert await find(storage) == Family(1, NOW, "f after 0")
    assert await advance(storage, 1, now=NOW + 2) is True
    assert [await advance(storage, of, now=NOW + 3) for of in (0, 1, 3)] == [False] * 3
    assert await find(storage) == Family(2, NOW + 2, "f after 1")


async def test_families_are_independent(storage: Storage) -> None:
    assert [await advance(storage, 0, family) for family in ("f", "g")] == [True, True]
    assert await advance(storage, 1, "g")
    assert await find(storage) == Family(1, NOW, "f after 0")
    assert await find(storage, "g") == Family(2, NOW, "g after 1")


async def test_a_family_is_kept_as_long_as_its_longest_token(storage: Storage) -> None:
    """A successor may end before its predecessor, where the key's end or a setting came nearer."""
    await advance(storage, 0)
    await advance(storage, 1, expires_at=4_000)
    assert await expiry(storage) == 5_000
    await advance(storage, 2, expires_at=6_000)
    assert await expiry(storage) == 6_000
