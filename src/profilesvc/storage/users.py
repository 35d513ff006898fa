"""Queries on users and businesses."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, insert, or_, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Executor
from profilesvc.database.prepared import Prefetch, Prepared, fetch_one
from profilesvc.storage import revocations
from profilesvc.storage.tables import businesses, users


class UserState(NamedTuple):
    """What a user token is checked against on each request."""

    id: int
    email: str
    name: str
    plan: str
    epoch: int
    suspended_at: int | None
    billing_version: int
    unpaid_since: int | None


USER = select(*(users.c[name] for name in UserState._fields))
_TOKEN_USER = Prepared(USER.where(users.c.id == bindparam("user_id"), ~revocations.any_of))


async def user(session: Executor, user_id: int) -> UserState | None:
    """A user by id."""
    return (await token_user(session, user_id, ()))[0]


async def token_user(
    session: Executor, user_id: int, ids: Iterable[str], prefetch: Prefetch | None = None
) -> tuple[UserState | None, Sequence[Any]]:
    """A user by id, None when one of the ids that a token of theirs carries is revoked; and the prefetched row."""
    row, prefetched = await fetch_one(session, _TOKEN_USER, prefetch, user_id=user_id, **revocations.ids_of(*ids))
    return (None if row is None else UserState._make(row)), prefetched


async def lock_user(session: AsyncSession, user_id: int) -> UserState:
    """A user that exists; on PostgreSQL nobody else counts against or changes their plan until the transaction ends."""
    return UserState._make((await session.execute(USER.where(users.c.id == user_id).with_for_update())).one())


async def user_by_email(session: Executor, email: str) -> UserState | None:
    """A user by e-mail address, as the operator types it; addresses are kept in lower case."""
    row = (await session.execute(USER.where(users.c.email == email.strip().lower()))).one_or_none()
    return None if row is None else UserState._make(row)


async def list_users(session: Executor) -> list[UserState]:
    """All users, oldest first."""
    return [UserState._make(row) for row in await session.execute(USER.order_by(users.c.id))]


async def list_demo_users(session: Executor, emails: list[str], domain: str, limit: int) -> list[UserState]:
    """Users with one of these addresses, in upper or lower case, or an address at this domain; at most `limit`."""
    email = func.lower(users.c.email)
    theirs = or_(email.in_([each.lower() for each in emails]), email.like(f"%@{domain.lower()}"))
    return [UserState._make(row) for row in await session.execute(USER.where(theirs).order_by(users.c.id).limit(limit))]


async def add_user(session: AsyncSession, email: str, name: str, plan: str, now: int) -> int | None:
    """Add a user and answer the id; None when the address is taken."""
    values = {"email": email, "name": name, "plan": plan, "created_at": now}
    try:
        async with session.begin_nested():
            return int((await session.execute(insert(users).values(values).returning(users.c.id))).scalar_one())
    except IntegrityError:
        return None


async def update_user(session: AsyncSession, user_id: int, **values: object) -> None:
    """Set columns of a user."""
    await session.execute(update(users).where(users.c.id == user_id).values(**values))


async def raise_user_epoch(session: AsyncSession, user_id: int) -> None:
    """End every token that the user holds."""
    await session.execute(update(users).where(users.c.id == user_id).values(epoch=users.c.epoch + 1))


async def add_business(session: AsyncSession, user_id: int, name: str, now: int) -> int:
    """Add a business of a user."""
    values = {"user_id": user_id, "name": name, "created_at": now}
    return int((await session.execute(insert(businesses).values(values).returning(businesses.c.id))).scalar_one())


async def business_name(session: Executor, business_id: int, user_id: int) -> str | None:
    """The name of a business if it is the user's."""
    query = select(businesses.c.name).where(businesses.c.id == business_id, businesses.c.user_id == user_id)
    return (await session.execute(query)).scalar_one_or_none()


async def list_businesses(session: Executor, user_id: int | None = None) -> list[tuple[int, int, str]]:
    """(id, user id, name) of a user's businesses, or of all."""
    query = select(businesses.c.id, businesses.c.user_id, businesses.c.name).order_by(businesses.c.id)
    if user_id is not None:
        query = query.where(businesses.c.user_id == user_id)
    return [(row.id, row.user_id, row.name) for row in await session.execute(query)]


async def is_empty(session: Executor) -> bool:
    """True when nobody was ever added."""
    return (await session.execute(select(users.c.id).limit(1))).first() is None


async def add_with_ids(
    session: AsyncSession, people: list[dict[str, Any]], theirs: list[dict[str, Any]], now: int
) -> None:
    """Add users and businesses that come with ids of their own, and let numbering go on after them."""
    for user_values in people:
        await session.execute(insert(users).values(**user_values, created_at=now))
    for business_values in theirs:
        await session.execute(insert(businesses).values(**business_values, created_at=now))
    await _continue_numbering(session)


async def _continue_numbering(session: AsyncSession) -> None:
    """Let PostgreSQL's sequences go on after rows that came with ids of their own; SQLite does by itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in ("users", "businesses"):
        await session.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")  # noqa: S608
        )
