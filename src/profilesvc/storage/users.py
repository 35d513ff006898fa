"""Queries on users and businesses."""

from typing import NamedTuple

from sqlalchemy import bindparam, func, insert, or_, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.database.statements import Executor, Prefetch, Prepared, Row, columns, fetch_one, records
from profilesvc.storage.revocations import NO_TOKEN, TokenIds, any_of
from profilesvc.storage.tables import OWNER, businesses, emails, sessions, users


class UserState(NamedTuple):
    """The columns that decide whether a request of a user is allowed. They are read for each request."""

    id: int
    email: str
    name: str
    plan: str
    epoch: int
    suspended_at: int | None
    billing_version: int
    unpaid_since: int | None


USER = select(*columns(users, UserState._fields))
_USED_AT = (
    select(sessions.c.used_at).where(sessions.c.owner_id == OWNER, sessions.c.id == bindparam("jti")).scalar_subquery()
)
_TOKEN_USER = Prepared(USER.where(users.c.id == OWNER, ~any_of).add_columns(_USED_AT.label("session_used_at")))


class TokenUser(NamedTuple):
    """A user, or None if the token is revoked; when the session of the token was used; and the prefetched row."""

    user: UserState | None
    session_used_at: int | None = None
    prefetched: Row = ()


async def user(session: Executor, owner_id: int) -> UserState | None:
    return (await token_user(session, owner_id, NO_TOKEN)).user


async def token_user(session: Executor, owner_id: int, ids: TokenIds, prefetch: Prefetch | None = None) -> TokenUser:
    """Return the user of a token with these `ids`, in one statement."""
    row, prefetched = await fetch_one(session, _TOKEN_USER, prefetch, owner_id=owner_id, **ids)
    if row is None:
        return TokenUser(None, None, prefetched)
    *state, used_at = row
    return TokenUser(UserState._make(state), used_at, prefetched)


async def lock_user(session: AsyncSession, owner_id: int) -> UserState:
    """Lock an existing user until the transaction ends, so that plan and limits do not change, and return the user.

    Rows that refer to the user can be added meanwhile, such as audit events: this transaction may wait for a key that
    another one has locked, and that one adds an event.
    """
    (user,) = await records(session, UserState, USER.where(users.c.id == owner_id).with_for_update(key_share=True))
    return user


async def user_by_email(session: Executor, email: str) -> UserState | None:
    """Return a user by e-mail address, in upper or lower case; addresses are stored in lower case."""
    query = select(emails.c.owner_id).where(emails.c.email == email.strip().lower())
    owner_id = (await session.execute(query)).scalar_one_or_none()
    return None if owner_id is None else await user(session, owner_id)


async def list_users(session: Executor) -> list[UserState]:
    """Return all users, oldest first."""
    return await records(session, UserState, USER.order_by(users.c.id))


async def list_demo_users(session: Executor, emails: list[str], domain: str, limit: int) -> list[UserState]:
    """Return at most `limit` users with one of these addresses, in any case, or an address at this domain."""
    email = func.lower(users.c.email)
    is_listed = or_(email.in_([each.lower() for each in emails]), email.like(f"%@{domain.lower()}"))
    return await records(session, UserState, USER.where(is_listed).order_by(users.c.id).limit(limit))


async def add_user(session: AsyncSession, email: str, name: str, plan: str, now: int) -> int | None:
    """Add a user; return the id, or None if the address is taken."""
    values = {"email": email, "name": name, "plan": plan, "created_at": now}
    try:
        async with session.begin_nested():
            user_id = int((await session.execute(insert(users).values(values).returning(users.c.id))).scalar_one())
            await session.execute(insert(emails).values(email=email, owner_id=user_id))
            return user_id
    except IntegrityError:
        return None


async def update_user(session: AsyncSession, owner_id: int, **values: object) -> None:
    """Set columns of a user."""
    await session.execute(update(users).where(users.c.id == owner_id).values(**values))


async def raise_user_epoch(session: AsyncSession, owner_id: int) -> None:
    """End every token that the user holds."""
    await session.execute(update(users).where(users.c.id == owner_id).values(epoch=users.c.epoch + 1))


async def add_business(session: AsyncSession, owner_id: int, name: str, now: int) -> int:
    values = {"owner_id": owner_id, "name": name, "created_at": now}
    return int((await session.execute(insert(businesses).values(values).returning(businesses.c.id))).scalar_one())


async def business_name(session: Executor, business_id: int, owner_id: int) -> str | None:
    """Return the name of a business, or None if it is not the user's."""
    query = select(businesses.c.name).where(businesses.c.id == business_id, businesses.c.owner_id == owner_id)
    return (await session.execute(query)).scalar_one_or_none()


async def business_named(session: Executor, owner_id: int, name: str) -> int | None:
    """Return the user's first business with a name."""
    query = select(businesses.c.id).where(businesses.c.owner_id == owner_id, businesses.c.name == name)
    return (await session.execute(query.order_by(businesses.c.id).limit(1))).scalar_one_or_none()


async def list_businesses(session: Executor, owner_id: int | None = None) -> list[tuple[int, int, str]]:
    """Return (id, user id, name) of a user's businesses, or of all."""
    query = select(businesses.c.id, businesses.c.owner_id, businesses.c.name).order_by(businesses.c.id)
    if owner_id is not None:
        query = query.where(businesses.c.owner_id == owner_id)
    return [(row.id, row.owner_id, row.name) for row in await session.execute(query)]


async def is_empty(session: Executor) -> bool:
    """Return whether there are no users."""
    return (await session.execute(select(users.c.id).limit(1))).first() is None


async def add_with_ids(
    session: AsyncSession, new_users: list[JsonObject], new_businesses: list[JsonObject], now: int
) -> None:
    """Add users and businesses with their ids, and continue the sequences after them."""
    for user_values in new_users:
        await session.execute(insert(users).values(**user_values, created_at=now))
        await session.execute(insert(emails).values(email=user_values["email"], owner_id=user_values["id"]))
    for business in new_businesses:
        values = {"owner_id": business["user_id"], "id": business["id"], "name": business["name"]}
        await session.execute(insert(businesses).values(**values, created_at=now))
    await continue_numbering(session, "users", "businesses")


async def continue_numbering(session: AsyncSession, *tables: str) -> None:
    """Continue PostgreSQL's sequences after rows that were inserted with ids; SQLite needs nothing."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in tables:
        await session.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")  # noqa: S608
        )
