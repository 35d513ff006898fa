"""A database URL with several hosts: the one that accepts writes is used."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from conftest import Postgres, make_settings
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations import readiness
from profilesvc.storage.tables import users
from profilesvc.storage.users import list_users
from support.database.login import demote, promote, standby
from support.network.ports import free_port
from support.waiting import until_async

pytestmark = pytest.mark.postgres


@contextlib.contextmanager
def first_host(kind: str, postgres: Postgres) -> Iterator[str]:
    """The first host of the URL, a server that is down or a standby, which only reads."""
    if kind == "down":
        yield f"127.0.0.1:{free_port()}"
        return
    with standby(postgres) as folder:
        yield f"{folder}:5432"


@pytest.mark.parametrize("kind", ["down", "read-only"])
async def test_the_second_host_is_used_if_the_first_cannot_be_written(
    postgres: Postgres, tmp_path: Path, kind: str
) -> None:
    await asyncio.to_thread(postgres.restored, "work")
    with first_host(kind, postgres) as first:
        url = f"postgresql+asyncpg://postgres@/work?host={first}&host={postgres.host}:5432"
        async with open_services(make_settings(tmp_path, url), Runtime()) as services:
            async with services.storage.write() as session:
                await session.execute(update(users).where(users.c.id == 1).values(name=kind))
            async with services.storage.leases.hold("x"), services.storage.read() as session:
                assert (await list_users(session))[0].name == kind
            assert (await readiness.checks(services))["writable"]


async def test_a_standby_alone_is_not_ready(postgres: Postgres, tmp_path: Path) -> None:
    """Promoted to a primary it is, without a restart of the service; demoted again it is not."""
    await asyncio.to_thread(postgres.restored, "work")
    with standby(postgres) as folder:
        settings = make_settings(tmp_path, f"postgresql+asyncpg://postgres@/work?host={folder}")
        async with open_services(settings, Runtime(), provider=False) as services:
            assert not (await readiness.checks(services))["writable"]
            await asyncio.to_thread(promote, postgres, folder)
            assert (await readiness.checks(services))["writable"]
            await asyncio.to_thread(demote, postgres, folder)

            async def is_demoted() -> bool:
                return not (await readiness.checks(services))["writable"]

            await until_async(is_demoted, "the demoted server not to count as writable", every=0.1)
