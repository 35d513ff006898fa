"""The log of a process: processes add up, it is bounded, and nothing is lost while the database does not respond."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from profilesvc.bootstrap import Runtime, open_services
from profilesvc.contract.requests import KeyRequestsQuery
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.request import Finished, RequestInfo
from profilesvc.domain.time import FrozenClock
from profilesvc.services import key_requests, request_log
from profilesvc.services.context import Caller, Services
from profilesvc.services.request_log import RequestLog
from profilesvc.settings import RequestLogSettings, Settings
from profilesvc.storage import keys
from support.api import Site, assert_ok
from support.request_log import stored

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


async def test_processes_add_up(alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock) -> None:
    before = (await read(alice, plugin))["usage"][0]["requests"]
    each = await finished(services, plugin)
    logs = [RequestLog(100, 1) for _ in range(3)]
    for log in logs:
        for _ in range(5):
            log.note(each(404))
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


class TestBounds:
    async def test_errors_and_successes_of_an_hour(self, plugin: Site, services: Services, clock: FrozenClock) -> None:
        await services.request_log.write(services)
        log, each = RequestLog(30, 1), await finished(services, plugin)
        for hour in range(2):
            for number in range(500):
                ids = f"{hour}-{number:08}"
                log.note(each(404, request_id=ids))
                log.note(each(200, request_id=ids))
            clock.advance(hours=1)
        before = (await stored(services)).count("'POST'")
        await log.write(services)
        rows = await stored(services)
        assert rows.count("'NOT_FOUND'") == 60
        assert rows.count("'POST'") - before == 60 + 2 * request_log.SUCCESSES_PER_HOUR
        owner = Caller(1, services.plans["pro"], frozenset())
        found = await key_requests.read(services, owner, plugin.key["client_id"], KeyRequestsQuery())
        assert [day.requests for day in found.usage if day.requests] == [2001]

    @pytest.mark.parametrize(("interval", "logged"), [(0, 0), (1, 20), (50, 10), (499, 1)])
    async def test_a_share_of_the_successes(self, plugin: Site, services: Services, interval: int, logged: int) -> None:
        await services.request_log.write(services)
        before = (await stored(services)).count("'POST'")
        log, each = RequestLog(0, interval), await finished(services, plugin)
        for number in range(500):
            log.note(each(200, request_id=f"{number:08}"))
            log.note(each(404))
        await log.write(services)
        assert (await stored(services)).count("'POST'") - before == logged

    async def test_the_settings_decide(
        self, plugin: Site, services: Services, settings: Settings, clock: FrozenClock
    ) -> None:
        await services.request_log.write(services)
        before, each = (await stored(services)).count("'POST'"), await finished(services, plugin)
        nothing = {"request_log": RequestLogSettings(errors_per_hour=0, success_interval=0)}
        other = Runtime(clock, SeededEntropy("other"))
        async with open_services(settings.model_copy(update=nothing), other) as silent:
            for log in (silent.request_log, services.request_log):
                log.note(each(404))
                log.note(each(200))
            await silent.request_log.write(silent)
            assert (await stored(services)).count("'POST'") == before
        await services.request_log.write(services)
        assert (await stored(services)).count("'POST'") == before + 2

    async def test_memory(self, plugin: Site, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever arrives while nothing can be written, a process keeps only so much of it."""
        for name in ("MOST_DAYS", "MOST_ROWS", "MOST_KEYS"):
            monkeypatch.setattr(request_log, name, 50)
        log, each = RequestLog(100, 1), await finished(services, plugin)
        for number in range(2_000):
            for failed in (each(404, number), each(500, f"svcid_1_{number}_x"), each(404)):
                log.note(failed)
        held = len(log._days), len(log._rows), len(log._logged)
        assert all(size <= 51 for size in held), held

    async def test_a_key_that_nothing_knows_is_dropped(self, plugin: Site, services: Services) -> None:
        await services.request_log.write(services)
        before, each = await stored(services), await finished(services, plugin)
        services.request_log.note(each(401, "svcid_1_1_gone"))
        await services.request_log.write(services)
        assert await stored(services) == before
