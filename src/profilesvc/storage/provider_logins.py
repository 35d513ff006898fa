"""Queries on the logins at the provider by which calls are made."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, columns, fetch, has_row, records
from profilesvc.storage.tables import OWNER, provider_connections

_COLUMNS = provider_connections.c


class ProviderLogin(NamedTuple):
    """A login of an owner at the provider; the refresh token is encrypted."""

    owner_id: int
    id: int
    subject: str | None
    email: str | None
    scopes: str
    refresh_token: str | None
    state: str
    created_at: int
    last_used_at: int | None
    last_error: str | None
    last_error_at: int | None


_EVERY = select(*columns(provider_connections, ProviderLogin._fields))
_LOGIN = Prepared(_EVERY.where(_COLUMNS.owner_id == OWNER, _COLUMNS.id == bindparam("number")))


def is_login(owner_id: int, number: int) -> ColumnElement[bool]:
    """Return the condition that selects one login."""
    return and_(_COLUMNS.owner_id == owner_id, _COLUMNS.id == number)


def rows(*conditions: ColumnElement[bool]) -> "Select[tuple[object, ...]]":
    """Return the query for the logins that meet all conditions."""
    return _EVERY.where(*conditions).order_by(_COLUMNS.owner_id, _COLUMNS.id)


async def find(session: Executor, owner_id: int, number: int) -> ProviderLogin | None:
    """Return a connection of this owner."""
    matches = await fetch(session, _LOGIN, owner_id=owner_id, number=number)
    return ProviderLogin._make(matches[0]) if matches else None


async def with_token_like(session: Executor, start: str) -> list[ProviderLogin]:
    """Return the connections of all owners whose encrypted token starts with this."""
    return await records(session, ProviderLogin, rows(_COLUMNS.refresh_token.startswith(start, autoescape=True)))


async def replace_token(session: AsyncSession, row: ProviderLogin, encrypted: str) -> None:
    """Store the token of this connection in another encryption, unless it has changed."""
    is_same = and_(is_login(row.owner_id, row.id), _COLUMNS.refresh_token == row.refresh_token)
    await session.execute(update(provider_connections).where(is_same).values(refresh_token=encrypted))


async def change(session: AsyncSession, owner_id: int, number: int, **values: object) -> None:
    """Set columns of a connection."""
    await session.execute(update(provider_connections).where(is_login(owner_id, number)).values(**values))


async def end(session: AsyncSession, seen: ProviderLogin, error: str, now: int) -> bool:
    """Mark that a login has ended, unless it was connected again since it was read; return whether that changed it."""
    is_same = _COLUMNS.state == "active", _COLUMNS.refresh_token == seen.refresh_token
    ended = update(provider_connections).where(is_login(seen.owner_id, seen.id), *is_same)
    ended = ended.values(state="reauth_required", last_error=error, last_error_at=now)
    return await has_row(session, ended.returning(_COLUMNS.id))
