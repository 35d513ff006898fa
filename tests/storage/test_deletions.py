"""The deletion of an account: every table has a rule, pieces, interruptions, and other owners."""

import sqlite3
from typing import Any

import httpx
import pytest
from sqlalchemy import Table, func, insert, select

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, HOUR, MINUTE, FrozenClock
from profilesvc.operations import operator
from profilesvc.services import tokens
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.storage import tables
from profilesvc.storage.accounts import deletions
from support.api import ALICE, BOB, Site, assert_error, assert_ok
from support.database.owner_rows import fill, of_owners
from support.database.statement_counts import sent_by

ZOE = "zoe@example.com"
NOT_FILLED = frozenset({"deletions", "emails"})  # a new user has an address
RULES = deletions.DELETED | set(deletions.DELETED_WITH) | deletions.DELETED_AT_ONCE | set(deletions.RETAINED)


def test_every_directory_with_an_owner_has_a_rule() -> None:
    for table in of_owners():
        assert table.name in RULES, (
            f"The directory {table.name} has an owner_id and no rule in storage/accounts/deletions.py. Add it to "
            "DELETED_WITH or DELETED_AT_ONCE, and delete its rows there."
        )
    assert {table.name for table in of_owners()} >= RULES, "a rule is of no table"


def test_a_table_comes_before_those_that_it_refers_to() -> None:
    done = set[str]()
    for table in deletions.in_order():
        done.add(table.name)
        for key in table.foreign_keys:
            assert key.column.table.name not in done, table.name


async def rows_of(services: Services, owner_id: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of an owner by table, without empty ones."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    async with services.storage.read() as session:
        for table in of_owners():
            query = select(table).where(table.c.owner_id == owner_id).order_by(*table.primary_key)
            found[table.name] = [tuple(row) for row in await session.execute(query)]
    return {name: rows for name, rows in found.items() if rows}


async def count(services: Services, table: Table, owner_id: int) -> int:
    async with services.storage.read() as session:
        query = select(func.count()).select_from(table).where(table.c.owner_id == owner_id)
        return int((await session.execute(query)).scalar_one())


async def finished(services: Services, clock: FrozenClock) -> None:
    """The rounds of two days."""
    for wait in (0, 16 * MINUTE, 2 * DAY):
        clock.advance(seconds=wait // 1000)
        await deletion.run_once(services)


@pytest.fixture
async def zoe(services: Services) -> int:
    """A user with a row in every table."""
    user = await operator.add_user(services, ZOE)
    async with services.storage.write() as session:
        await fill(session, user.id, without=NOT_FILLED)
    return user.id


async def test_only_what_is_named_stays_and_other_owners_keep_all(
    services: Services, zoe: int, clock: FrozenClock
) -> None:
    other = (await operator.add_user(services, "yan@example.com")).id
    async with services.storage.write() as session:
        await fill(session, other, without=NOT_FILLED)
    before, expected = await rows_of(services, zoe), await rows_of(services, other)
    assert set(before) == {table.name for table in of_owners()} - {"deletions"}, "a table was not filled"
    await deletion.request(services, zoe)
    await finished(services, clock)
    assert set(await rows_of(services, zoe)) == set(deletions.RETAINED)
    assert await rows_of(services, other) == expected
    async with services.storage.read() as session:
        done = await deletions.find(session, zoe)
        user = (await session.execute(select(tables.users).where(tables.users.c.id == zoe))).one()
        events = (await session.execute(select(tables.audit).where(tables.audit.c.owner_id == zoe))).all()
    assert done is not None
    assert done.finished_at is not None
    assert "zoe" not in f"{user.email} {user.name}"
    kept = {event.event: event for event in events}
    assert set(kept) == {"key.created", "user.deletion_requested", "user.deleted"}
    old = kept["key.created"]
    assert (old.actor, old.key_id, old.ip_prefix, old.request_id, old.details, old.once) == ("key", *[None] * 5)
    assert ZOE not in str([tuple(event) for event in events])


async def test_an_account_ends_with_the_request(
    services: Services, http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site
) -> None:
    assert_ok(await alice.get("/api/v1/businesses"))
    await deletion.request(services, 1)
    await deletion.request(services, 1)  # repeated, it changes nothing
    assert_error(await alice.get("/api/v1/businesses"), 401, "AUTH_INVALID_TOKEN")
    assert_error(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}), 401, "AUTH_INVALID_TOKEN")
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    assert_error(await http.post("/api/v1/auth/token", json=grant), 401, "AUTH_INVALID_TOKEN")
    refresh = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    assert_error(await http.post("/api/v1/auth/token", json=refresh), 401, "AUTH_INVALID_TOKEN")
    for refused in (operator.resume(services, ALICE), tokens.user_token(services, ALICE)):
        with pytest.raises(ServiceError, match="There is no"):
            await refused
    async with services.storage.read() as session:
        channels = (await session.execute(select(tables.channels).where(tables.channels.c.owner_id == 1))).all()
    assert [channel.kind for channel in channels if channel.disabled_at is None] == ["notice"]
    assert (await operator.add_user(services, ALICE)).id != 1


async def test_a_large_account_is_deleted_in_pieces(
    services: Services, zoe: int, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "PIECE", 3)
    rows = [{"owner_id": zoe, "name": f"business {number}", "created_at": 1} for number in range(10)]
    login = {"owner_id": zoe, "month": 1, "event": "user.login", "actor": f"user:{zoe}", "ip_prefix": "192.0.2.0/24"}
    trail = [{**login, "at": at} for at in range(10)]
    names = [f"locations/{number}" for number in range(8_000, 8_010)]
    place = {"owner_id": zoe, "account": "", "title": "", "profile": "{}", "profile_read_at": 1, "is_verified": False}
    async with services.storage.write() as session:
        await session.execute(insert(tables.businesses), rows)
        await session.execute(insert(tables.audit), trail)
        await session.execute(insert(tables.location_owners), [{"owner_id": zoe, "name": name} for name in names])
        located = [{**place, "name": name, "verification_state": "", "sync_enabled": False} for name in names]
        await session.execute(insert(tables.locations), located)
    await deletion.request(services, zoe)
    await finished(services, clock)
    assert set(await rows_of(services, zoe)) == set(deletions.RETAINED)
    async with services.storage.read() as session:
        query = select(tables.audit.c.actor, tables.audit.c.ip_prefix).where(tables.audit.c.event == "user.login")
        own = (await session.execute(query.where(tables.audit.c.owner_id == zoe))).all()
    assert {tuple(row) for row in own} == {("user", None)}
    assert len(own) == 10


async def test_a_deletion_that_was_interrupted_goes_on(
    services: Services, zoe: int, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each of its transactions the process ends; the next round continues."""
    await deletion.request(services, zoe)
    clock.advance(days=2)
    original, left = deletions.delete_piece, 0

    async def dying(*arguments: Any) -> bool:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return await original(*arguments)

    monkeypatch.setattr(deletions, "delete_piece", dying)
    sizes = []
    for allowed in range(0, 30, 3):
        left = allowed
        try:
            await deletion.run_once(services)
        except KeyboardInterrupt:
            sizes.append(sum(len(rows) for rows in (await rows_of(services, zoe)).values()))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 5
    assert set(await rows_of(services, zoe)) == set(deletions.RETAINED)


@pytest.mark.parametrize("database", ["sqlite"])
async def test_a_reader_of_the_log_delays_no_deletion(services: Services, zoe: int, clock: FrozenClock) -> None:
    """Litestream always reads it."""
    await deletion.request(services, zoe)
    reader = sqlite3.connect(services.storage.engine.url.database or "", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM users").fetchall()
    try:
        await finished(services, clock)
        async with services.storage.read() as session:
            query = select(tables.deletions.c.finished_at).where(tables.deletions.c.owner_id == zoe)
            assert (await session.execute(query)).scalar_one() is not None
    finally:
        reader.close()


async def test_a_row_of_a_request_that_had_started_before_is_deleted_too(
    services: Services, zoe: int, clock: FrozenClock
) -> None:
    await deletion.request(services, zoe)
    await deletion.run_once(services)
    assert (await count(services, tables.keys, zoe), await count(services, tables.events, zoe)) == (0, 0)
    async with services.storage.write() as session:
        late = {"owner_id": zoe, "id": 9, "created_at": clock.now(), "type": "key.created", "data": "{}"}
        await session.execute(insert(tables.events).values(late))
    await finished(services, clock)
    assert await count(services, tables.events, zoe) == 0


async def test_the_rest_goes_with_the_audit_trail(services: Services, zoe: int, clock: FrozenClock) -> None:
    await deletion.request(services, zoe)
    await finished(services, clock)
    clock.advance(days=400)
    await deletion.run_once(services)
    assert await count(services, tables.deletions, zoe) == 1
    clock.advance(days=40)
    await deletion.run_once(services)
    assert await rows_of(services, zoe) == {}
    async with services.storage.read() as session:
        assert (await session.execute(select(tables.users).where(tables.users.c.id == zoe))).all() == []


async def test_an_old_sign_in_and_another_address_do_not_delete(services: Services, clock: FrozenClock) -> None:
    bob = await operator.act_for(services, BOB)
    token = await tokens.user_token(services, BOB)
    with pytest.raises(ServiceError, match=BOB) as refusal:
        await deletion.request_own(services, bob, token, ALICE)
    assert refusal.value.kind.code == "VALIDATION_ERROR"
    clock.advance(minutes=11)
    with pytest.raises(ServiceError, match="too old"):
        await deletion.request_own(services, bob, token, BOB)
    assert await count(services, tables.deletions, bob.owner_id) == 0
    clock.advance(seconds=HOUR // 1000)
    await deletion.request_own(services, bob, await tokens.user_token(services, BOB), " Bob@Example.com ")
    assert await count(services, tables.deletions, bob.owner_id) == 1


async def test_request_takes_few_statements(services: Services) -> None:
    """A slow database would otherwise spend the time of the request on counting what is deleted."""
    bob = await operator.act_for(services, BOB)
    token = await tokens.user_token(services, BOB)
    with sent_by(services) as sent:
        await deletion.request_own(services, bob, token, BOB)
    assert len(sent.reads) <= 4, sent.reads
    assert sent.transactions == 1
    with sent_by(services) as sent:
        assert (await deletion.plan(services, bob, token)).rows["keys"] == await count(services, tables.keys, 2)
    assert len(sent.reads) <= 4, sent.reads
