"""Queries on the signing keys. There are few rows, so all of them are read at once."""

from typing import NamedTuple

from sqlalchemy import String, cast, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, columns, fetch, joined
from profilesvc.domain.signing_keys import KeyDates
from profilesvc.storage.tables import signing_keys


class StoredKey(NamedTuple):
    """A row: the PEM is encrypted if a passphrase is set, and None once the key is removed. `stamp` is the table's."""

    dates: KeyDates
    private_pem: str | None
    stamp: str | None


_DATES = columns(signing_keys, KeyDates._fields)
# It changes with the keys in use, so a process that has seen this stamp does not need to read the keys again.
STAMP = joined(
    select(signing_keys.c.kid + ":" + cast(signing_keys.c.active_from, String))
    .where(signing_keys.c.removed_at.is_(None))
    .order_by(signing_keys.c.kid),
    " ",
)
_EVERY = Prepared(
    select(STAMP, signing_keys.c.private_pem, *_DATES).order_by(signing_keys.c.created_at, signing_keys.c.kid)
)


async def lock(session: AsyncSession) -> None:
    """Lock the table on PostgreSQL, so that one transaction at a time decides about the keys, as SQLite does anyway."""
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(text("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"))


async def every(session: Executor) -> list[StoredKey]:
    """Return all keys, also the removed ones, oldest first."""
    return [StoredKey(KeyDates(*dates), pem, stamp) for stamp, pem, *dates in await fetch(session, _EVERY)]


async def add(session: AsyncSession, dates: KeyDates, private_pem: str) -> None:
    await session.execute(insert(signing_keys).values(**dates._asdict(), private_pem=private_pem))


async def change(session: AsyncSession, kid: str, **values: int | str | None) -> None:
    """Set columns of a key that is not removed."""
    is_kept = (signing_keys.c.kid == kid) & signing_keys.c.removed_at.is_(None)
    await session.execute(update(signing_keys).where(is_kept).values(**values))


async def remove(session: AsyncSession, kid: str, now: int) -> None:
    """Delete the private part of a key. Its name stays, so that it is never added again."""
    await change(session, kid, removed_at=now, private_pem=None)
