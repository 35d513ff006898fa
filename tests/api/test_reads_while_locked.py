"""Reads while another process holds the database's write lock: they answer with what the provider returned."""

import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import select

from conftest import Postgres
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.storage.tables import events, locations
from support.api import assert_ok
from support.database.outage import locked_sqlite
from support.provider.drive import drift
from support.syncs import COMPARISON, PIER

pytestmark = pytest.mark.in_process("locks the database of this process")
LOCATION = "/api/v1/external-business/locations/111"
READS = {
    "location": (LOCATION, "title"),
    "comparison": (f"{COMPARISON}/111", "provider.title"),
    "google-updated": (f"{LOCATION}/google-updated", "location.title"),
}
NEW = "Renamed at the provider"


@contextlib.asynccontextmanager
async def locked(services: Services, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Another process writes and does not come to an end; on PostgreSQL it holds the rows of the locations."""
    if services.storage.is_sqlite:
        with locked_sqlite(services.settings):
            yield
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    other = await postgres.connect(str(services.storage.engine.url.database))
    try:
        async with other.transaction():
            await other.execute("SELECT * FROM locations FOR UPDATE")
            yield
    finally:
        await other.close()


@pytest.mark.parametrize(("path", "field"), READS.values(), ids=READS)
async def test_answer_at_once_and_store_later(
    alice: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    request: pytest.FixtureRequest,
    path: str,
    field: str,
) -> None:
    clock.advance(hours=1)
    await drift(emulator, locations={PIER: {"title": NEW}})
    async with locked(services, request):
        found = assert_ok(await alice.get(path))  # a unit of the database may wait for a minute here
    for name in field.split("."):
        found = found[name]
    assert found == NEW
    if path.endswith("google-updated"):
        return  # it is never stored
    await services.background.drain()
    async with services.storage.read() as session:
        stored = (await session.execute(select(locations.c.title).where(locations.c.name == PIER))).scalar_one()
        drifted = await session.execute(select(events.c.data).where(events.c.type == "profile.drifted"))
        assert stored == NEW
        assert len(drifted.all()) == 1
