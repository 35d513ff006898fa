"""Values by which a start recognises a secret of the settings that is not the one of this database (D-129)."""

from sqlalchemy import bindparam, func, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.schema import metadata
from profilesvc.database.statements import Executor, Prepared, fetch, has_row, insert_new, upsert
from profilesvc.storage.tables import channels, secrets

check_values = metadata.tables["check_values"]
_VALUE = Prepared(select(check_values.c.value).where(check_values.c.name == bindparam("name")))


async def find(session: Executor, name: str) -> str | None:
    """Return the check value of a secret, or None if there is none yet."""
    rows = await fetch(session, _VALUE, name=name)
    return str(rows[0][0]) if rows else None


async def add(session: AsyncSession, name: str, value: str) -> None:
    """Store the check value unless there is one, which another process may have stored just now."""
    await insert_new(session, check_values, name=name, value=value)


async def replace(session: AsyncSession, name: str, value: str) -> None:
    """Store the check value in place of an earlier one."""
    await upsert(session, check_values, {"value": value}, name=name)


async def depends_on_pepper(session: Executor) -> bool:
    """Return whether something is stored that a new pepper makes useless: a client secret, or a channel's secret."""
    stored = [select(literal(1)).select_from(table).limit(1) for table in (secrets, channels)]
    return any([await has_row(session, query) for query in stored])


async def count_secrets(session: Executor) -> int:
    """Return how many client secrets are stored."""
    return int((await session.execute(select(func.count()).select_from(secrets))).scalar_one())
