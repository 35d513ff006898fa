"""The emulator's database file: units of work that survive a crash, and the first filling from a world."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel import delete
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.domain.world import parse_iso
from profilesvc.provider.emulator.tables import (
    EmulatorAccountRow,
    EmulatorLocationRow,
    EmulatorPostRow,
    EmulatorStateRow,
    EmulatorTable,
)
from profilesvc.provider.emulator.wire import Document


def dump(document: Any) -> str:
    """A document as it is stored."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


class Store:
    """The file; `read()` and `write()` are its units of work, and a write unit is alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine: AsyncEngine | None = None
        self._turn = asyncio.Lock()

    async def open(self, world: Document, now: int) -> None:
        """Create the tables and fill them, unless that was done before."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{self._path}")
        event.listen(self._engine.sync_engine, "connect", _configure)
        event.listen(self._engine.sync_engine, "begin", _begin)
        async with self.write() as session:
            await (await session.connection()).run_sync(EmulatorTable.metadata.create_all)
            if await session.get(EmulatorStateRow, 1) is None:
                fill(session, world, now)

    async def close(self) -> None:
        """Release the file."""
        if self._engine is not None:
            await self._engine.dispose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """For looking: no transaction, each statement sees what is there; a change is an error in the caller."""
        async with AsyncSession(self._bind(write=False), expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A transaction that holds the write lock from its start, so that read-change-write loses nothing.

        Writers of this process queue here: SQLite's own waiting is by sleeping, and unfair.
        """
        bind = self._bind(write=True)
        async with self._turn, AsyncSession(bind, expire_on_commit=False) as session, session.begin():
            yield session

    def _bind(self, *, write: bool) -> AsyncEngine:
        assert self._engine is not None, "the emulator's lifespan has not started"
        return self._engine.execution_options(emulator_write=write)


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours, in _begin
    cursor = connection.cursor()
    for pragma in ("busy_timeout=5000", "journal_mode=WAL", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Begin write units at once; reading needs no transaction, and is a fifth faster without one."""
    if connection.get_execution_options().get("emulator_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


async def clear(session: AsyncSession) -> None:
    """Forget everything but the tokens, which clients still hold."""
    for row in (EmulatorStateRow, EmulatorAccountRow, EmulatorLocationRow, EmulatorPostRow):
        await session.exec(delete(row))


def fill(session: AsyncSession, world: Document, now: int) -> None:
    """The accounts, locations and posts of a world, as the provider has them.

    A PROCESSING post stays so for the world's `seed_review_seconds`, counted from now.
    """
    session.add(EmulatorStateRow(document="{}"))
    for position, account in enumerate(world["accounts"]):
        document = {key: value for key, value in account.items() if key != "user_id"}
        session.add(EmulatorAccountRow(name=account["name"], position=position, document=dump(document)))
    review_ends = now + round(world.get("seed_review_seconds", 0) * 1000)
    for location in world["locations"]:
        session.add(_location_row(location))
        parent = f"{location['account']}/{location['profile']['name']}"
        session.add_all(_post_row(parent, post, review_ends) for post in location["posts"])


def _location_row(location: Document) -> EmulatorLocationRow:
    return EmulatorLocationRow(
        name=location["profile"]["name"],
        account=location["account"],
        document=dump({**location["profile"], **location["provider_profile"]}),
        voice_of_merchant=dump(location["voice_of_merchant"]),
        verifications=dump(location["verifications"]),
    )


def _post_row(parent: str, post: Document, review_ends: int) -> EmulatorPostRow:
    in_review = post["state"] == "PROCESSING"
    return EmulatorPostRow(
        name=post["name"],
        parent=parent,
        document=dump({key: value for key, value in post.items() if key != "state"}),
        created=parse_iso(post["createTime"]),
        review_ends=review_ends if in_review else 0,
        verdict="LIVE" if in_review else post["state"],
    )
