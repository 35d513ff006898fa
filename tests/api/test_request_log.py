"""The log of a process: processes add up, it is bounded, and nothing is lost while the database does not respond."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from api.request_log import stored
from profilesvc.contract.requests import KeyRequestsQuery
from profilesvc.domain.request import Finished, RequestInfo
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Caller, Services
from profilesvc.services.insight import key_requests, request_log
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.settings import RequestLogSettings
from profilesvc.storage import keys
from profilesvc.storage.tables import insight as log_tables
from support.api import Site, assert_ok

KEYS, HEARTBEAT = "/api/v1/developer/credentials", "/api/v1/api-keys/heartbeat"
pytestmark = pytest.mark.in_process("reads what the process has not written yet")


async def read(owner: httpx.AsyncClient, site: Site, **query: str) -> Any:
    return assert_ok(await owner.get(f"{KEYS}/{site.key['client_id']}/requests", params=query))


async def finished(services: Services, site: Site) -> Callable[..., Finished]:
    """Make requests of a key with a status, and optionally another key's number."""
    async with services.storage.read() as session:
        key = await keys.state(session, site.key["client_id"])
    assert key is not None

    def make(status: int, number: int | str = key.id, request_id: str = "a" * 16) -> Finished:
        request = RequestInfo("192.0.2.1", request_id, route=HEARTBEAT, outcome="ok" if status < 400 else "NOT_FOUND")
        return Finished((key.owner_id, number), request, "POST", status, services.clock.now(), 2)

    return make


async def test_counts_of_several_processes_add_up(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    before = (await read(alice, plugin))["usage"][0]["requests"]
    each = await finished(services, plugin)
    logs = [RequestLog() for _ in range(3)]
    for log in logs:
        log.finished += [each(404)] * 5
    for log in logs:
        await log.write(services)
    assert (await read(alice, plugin))["usage"][0] == {
        "day": "2026-01-02",
        "requests": before + 15,
        "client_errors": 15,
        "server_errors": 0,
    }
    found = (await read(alice, plugin, errors_only="true", limit="100"))["requests"]
    assert len(found) == 5  # the same request ids in the same millisecond, of three processes


def with_settings(services: Services, **values: int) -> Services:
    return replace(
        services, settings=services.settings.model_copy(update={"request_log": RequestLogSettings(**values)})
    )


async def test_the_log_has_a_limit_for_the_errors_and_successes_of_an_hour(
    plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await services.part(RequestLog).write(services)
    limited, log, each = with_settings(services, errors_per_hour=30), RequestLog(), await finished(services, plugin)
    for hour in range(2):
        for number in range(500):
            ids = f"{hour}-{number:08}"
            log.finished += [each(404, request_id=ids), each(200, request_id=ids)]
            log.collect(limited)
        clock.advance(hours=1)
    before = (await stored(services)).count("'POST'")
    await log.write(limited)
    rows = await stored(services)
    assert rows.count("'NOT_FOUND'") == 60
    assert rows.count("'POST'") - before == 60 + 2 * request_log.SUCCESSES_PER_HOUR
    owner = Caller(1, services.plans["pro"], frozenset())
    found = await key_requests.read(services, owner, plugin.key["client_id"], KeyRequestsQuery())
    assert [day.requests for day in found.usage if day.requests] == [2001]


@pytest.mark.parametrize(("interval", "logged"), [(0, 0), (1, 20), (50, 10), (499, 1)])
async def test_the_log_has_the_configured_share_of_the_successes(
    plugin: Site, services: Services, interval: int, logged: int
) -> None:
    await services.part(RequestLog).write(services)
    before = (await stored(services)).count("'POST'")
    sampled, log = with_settings(services, success_interval=interval, errors_per_hour=0), RequestLog()
    each = await finished(services, plugin)
    for number in range(500):
        log.finished += [each(200, request_id=f"{number:08}"), each(404)]
    await log.write(sampled)
    assert (await stored(services)).count("'POST'") - before == logged


async def test_the_memory_of_the_log_is_bounded(
    plugin: Site, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever arrives while nothing can be written, a process keeps only so much of it."""
    for name in ("MOST_DAYS", "MOST_ROWS", "MOST_KEYS"):
        monkeypatch.setattr(request_log, name, 50)
    log, each = RequestLog(), await finished(services, plugin)
    for number in range(2_000):
        log.finished += [each(404, number), each(500, f"svcid_1_{number}_x"), each(404)]
        log.collect(services)
    held = len(log._days), len(log._rows), len(log._logged), len(log.finished)
    assert all(size <= 51 for size in held), held


async def test_many_requests_are_counted_without_a_timer(plugin: Site, services: Services) -> None:
    await services.part(RequestLog).write(services)
    for _ in range(request_log.MOST_FINISHED + 10):
        await plugin.http.get("/api/v1/businesses")
    assert len(services.part(RequestLog).finished) <= request_log.MOST_FINISHED
    await services.part(RequestLog).write(services)
    async with services.storage.read() as session:
        counted = (await session.execute(select(log_tables.key_usage.c.client_errors))).scalar_one()
    assert counted == request_log.MOST_FINISHED + 10


async def test_a_request_of_an_unknown_key_is_not_logged(plugin: Site, services: Services) -> None:
    await services.part(RequestLog).write(services)
    before, each = await stored(services), await finished(services, plugin)
    services.part(RequestLog).finished.append(each(401, "svcid_1_1_gone"))
    await services.part(RequestLog).write(services)
    assert await stored(services) == before
