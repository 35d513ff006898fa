"""Which rows are deleted, and when; the next round does the work of a failed one (D-40, D-55, D-61)."""

from dataclasses import replace
from typing import Any, cast

import asyncpg
import httpx
import pytest
from sqlalchemy import Table, func, insert, select

from profilesvc.contract.audit import AuditQuery
from profilesvc.database.engine import Storage
from profilesvc.domain.time import DAY, HOUR, FrozenClock, month_start
from profilesvc.operations import housekeeping
from profilesvc.services import audit
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.services.jobs import Job, Where, run_once
from profilesvc.storage import tables
from profilesvc.storage.upkeep.housekeeping import PIECE
from support.api import Site, assert_ok
from support.jobs import job_named

CHANNEL = {"target": "https://a.example", "target_digest": "x", "nonce": "x", "created_at": 0}


async def rows_of(services: Services, table: Table) -> int:
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(table))).scalar_one())


def event(at: int) -> dict[str, Any]:
    return {"at": at, "month": month_start(at), "event": "user.login", "owner_id": 1, "actor": "user"}


async def test_housekeeping_deletes_only_expired_rows(plugin: Site, services: Services) -> None:
    now, of_key = services.clock.now(), {"owner_id": 1, "key_id": plugin.key["service_client_id"]}
    await services.part(PendingEvents).write(services)
    await services.part(RequestLog).write(services)

    def old(kept: int) -> list[int]:
        return [now - kept - 1, now - kept + HOUR]

    def old_months(kept: int) -> list[int]:
        return [month_start(now - kept) - 1, month_start(now - kept)]

    async def remaining() -> dict[str, int]:
        return {name: await rows_of(services, table) for name, table in seeded.items()}

    seeded = {name: tables.metadata.tables[name] for name in housekeeping.RETENTION}
    before = await remaining()
    rows: dict[str, list[dict[str, Any]]] = {
        "audit": [event(at) for at in old_months(400 * DAY)],
        "syncs": [
            {"owner_id": 1, "sync_id": str(at), "location_name": "locations/111", "created_at": at}
            | {"status": "success", "direction": "push", "fields_updated": 1}
            for at in old_months(400 * DAY)
        ],
        "idempotency": [
            {"owner_id": 1, "scope": str(at), "fingerprint": "x", "fence": 1, "lease_until": 0, "created_at": at}
            for at in old(2 * DAY)
        ],
        "contacts": [{**of_key, "started_at": at, "ended_at": at + 5} for at in old(62 * DAY)],
        "revocations": [
            {"owner_id": 1, "id": str(at), "kind": "token", "revoked_at": 0, "expires_at": at} for at in old(HOUR)
        ],
        "exchanges": [{"digest": str(at), "expires_at": at} for at in old(HOUR)],
        "secrets": [{**of_key, "digest": str(at), "created_at": 0, "expires_at": at} for at in old(HOUR)],
        "key_domains": [{"domain": "x.example", "until": at, **of_key} for at in old(HOUR)],
        "leases": [{"name": str(at), "slot": 0, "holder": "x", "asked_at": 0, "until": at} for at in old(HOUR)],
        "events": [
            {"owner_id": 1, "id": at, "created_at": at, "type": "key.created", "data": "{}"}
            for at in old_months(30 * DAY)
        ],
        "deliveries": [
            {"owner_id": 1, "channel_id": 1, "created_at": at, "state": "delivered"} for at in old(30 * DAY)
        ],
        "mirrors": [
            {"owner_id": 1, "location_name": "locations/111", "query": str(at), "read_at": at, "document": "{}"}
            for at in old(DAY)
        ],
        "photos": [
            {"owner_id": 1, "id": str(at), "media_type": "image/png", "content": b"", "expires_at": at}
            for at in old(HOUR)
        ],
        "sessions": [
            {"owner_id": 1, "id": str(at), "created_at": 0, "used_at": 0, "expires_at": at, "epoch": 0}
            for at in old(HOUR)
        ],
        "key_usage": [
            {**of_key, "day": at, "requests": 3, "client_errors": 1, "server_errors": 1} for at in old(31 * DAY)
        ],
        "request_log": [
            {**of_key, "at": at, "id": "1", "method": "GET", "route": "/", "status": 200, "duration_ms": 1}
            for at in old(7 * DAY)
        ],
        "notifications": [{"message_id": str(at), "received_at": at} for at in old(8 * DAY)],
        "families": [
            {
                **of_key,
                "id": str(at),
                "generation": 1,
                "rotated_at": 0,
                "expires_at": at,
                "successor": "{}",
            }
            for at in old(HOUR)
        ],
    }
    async with services.storage.write() as session:
        await session.execute(insert(tables.channels), {"id": 1, "owner_id": 1, "kind": "webhook", **CHANNEL})
        for name, table in seeded.items():
            await session.execute(insert(table), rows[name])
    await housekeeping.run_once(services)
    assert await remaining() == {name: count + 1 for name, count in before.items()}


async def test_housekeeping_deletes_more_rows_than_one_piece_has(plugin: Site, services: Services) -> None:
    row = event(services.clock.now() - 450 * DAY)
    async with services.storage.write() as session:
        await session.execute(insert(tables.audit), [row] * (2 * PIECE + 1))
    await housekeeping.run_once(services)
    async with services.storage.read() as session:
        count = select(func.count()).select_from(tables.audit).where(tables.audit.c.event == "user.login")
        assert (await session.execute(count)).scalar_one() == 0


async def test_an_old_secret_is_deleted_after_its_overlap(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    roll = f"/api/v1/developer/credentials/{plugin.key['client_id']}/roll"
    assert_ok(await alice.post(roll, json={"overlap_seconds": 60}))
    await housekeeping.run_once(services)
    assert await rows_of(services, tables.secrets) == 2
    clock.advance(hours=2)
    await housekeeping.run_once(services)
    assert await rows_of(services, tables.secrets) == 1


async def test_housekeeping_continues_after_a_failed_round(services: Services, clock: FrozenClock) -> None:
    row = event(clock.now() - 450 * DAY)
    async with services.storage.write() as session:
        await session.execute(insert(tables.audit), [row])

    class Failing:
        """A database that is a defect."""

        renew, leases, engine = services.storage.renew, services.storage.leases, services.storage.engine
        raising_unavailable, read = services.storage.raising_unavailable, services.storage.read

        def write(self) -> Any:
            raise RuntimeError("broken")

    for storage in (cast(Storage, Failing()), services.storage):
        await run_once(replace(services, storage=storage), job_named("housekeeping"))
    assert (await audit.user_trail(services, None, AuditQuery())).events == []


async def test_a_database_without_response_is_logged_once_a_minute(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(services: Services) -> None:
        with services.storage.raising_unavailable():
            raise asyncpg.LockNotAvailableError("locked")

    for _ in range(40):
        await run_once(services, Job("work", work, 60, 60, Where.EVERY))
    assert [record.getMessage() for record in caplog.records if record.name == "profilesvc"] == [
        "database busy: locked; 0 requests rejected"
    ]
