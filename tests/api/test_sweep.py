"""What time does to a key: the events of the sweep, and no alarm that is a fault of our own."""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from conftest import START, AsService, AsUser
from profilesvc.delivery import operator
from profilesvc.delivery.smtp import Mailer
from profilesvc.domain.time import DAY, HOUR, MINUTE, FrozenClock, iso
from profilesvc.operations import census
from profilesvc.operations.notify import sweep
from profilesvc.services.context import Services
from profilesvc.services.jobs import JobFailed
from profilesvc.services.notify import watching
from profilesvc.settings import MailSettings
from profilesvc.storage import tables
from profilesvc.storage.notify import watches
from support.api import BOB, Site, assert_ok

BEAT, EVENTS = "/api/v1/api-keys/heartbeat", "/api/v1/events"


async def published(services: Services) -> list[Any]:
    """Alice's events, from the table: she has more of them than a page, and her token ends before some of them."""
    query = select(tables.events).where(tables.events.c.owner_id == 1).order_by(tables.events.c.id)
    async with services.storage.read() as session:
        return list((await session.execute(query)).all())


async def types(services: Services) -> list[str]:
    """The states and warnings that the events of connections reported."""
    found = [row.type for row in await published(services)]
    return [name.removeprefix("connection.") for name in found if name.startswith("connection.")]


async def beat(site: Site, host: str | None = None) -> None:
    agent = {"User-Agent": f"WordPress/6.8; https://{host}/"} if host else {}
    assert_ok(await site.http.post(BEAT, json={"plugin_version": "1.0"}, headers=agent))


Passing = Callable[..., Awaitable[None]]


@pytest.fixture
async def passing(services: Services, clock: FrozenClock) -> Passing:
    """Move the clock, with a sweep every ten minutes and at the end; the service runs all the time."""

    async def run(duration: timedelta, step: int = 10 * MINUTE) -> None:
        until = clock.now() + round(duration / timedelta(milliseconds=1))
        while clock.now() < until:
            clock.advance(milliseconds=min(step, until - clock.now()))
            await sweep.catch_up(services)

    await sweep.run_once(services)
    return run


async def test_each_change_has_one_event(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, passing: Passing
) -> None:
    await beat(plugin)
    for _ in range(3):
        await passing(timedelta(minutes=1))
    assert await types(services) == ["online"]
    await passing(timedelta(hours=2, minutes=1))
    assert await types(services) == ["online", "idle"]
    await passing(timedelta(hours=22))
    await passing(timedelta(hours=1))
    assert await types(services) == ["online", "idle", "offline"]
    await beat(plugin)
    await passing(timedelta(minutes=1))
    assert await types(services) == ["online", "idle", "offline", "online"]
    event = assert_ok(await alice.get(EVENTS))["events"][3]
    status = assert_ok(await alice.get(f"/api/v1/api-keys/{plugin.key['client_id']}/status"))
    assert event["type"] == "connection.offline"
    assert event["data"]["client_id"] == plugin.key["client_id"]
    assert event["data"]["location_id"] == "locations/111"
    assert set(event["data"]["connection"]) == {*status, "reason_at"}  # a site that is online has none
    assert event["data"]["connection"]["reason_hint"] == "was_online"


@pytest.mark.slow
async def test_the_states_change_to_the_millisecond(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, passing: Passing
) -> None:
    """The event and the API never disagree."""
    await beat(plugin)
    await passing(timedelta(minutes=1))
    last = clock.now() - MINUTE
    for at, expected in ((2 * HOUR, "online"), (2 * HOUR + 1, "idle"), (DAY - 1, "idle"), (DAY, "offline")):
        while last + at - clock.now() > 4 * MINUTE:
            clock.advance(minutes=4)
            await sweep.run_once(services)
        clock.advance(milliseconds=last + at - clock.now())
        await sweep.run_once(services)
        status = assert_ok(await alice.get(f"/api/v1/api-keys/{plugin.key['client_id']}/status"))
        assert ((await types(services))[-1], status["connection_status"]) == (expected, expected)


async def test_a_key_that_never_connects(services: Services, plugin: Site, passing: Passing) -> None:
    await passing(timedelta(hours=23, minutes=59))
    assert await types(services) == []
    await passing(timedelta(minutes=2))
    await passing(timedelta(hours=3))
    assert await types(services) == ["never_connected"]
    await beat(plugin)
    await passing(timedelta(minutes=1))
    assert await types(services) == ["never_connected", "online"]


async def test_the_grace_of_a_key(alice: httpx.AsyncClient, plugin: Site, services: Services, passing: Passing) -> None:
    await beat(plugin)
    await passing(timedelta(minutes=1))
    async with services.storage.write() as session:
        await session.execute(update(tables.watches).where(tables.watches.c.owner_id == 1).values(grace_seconds=7_200))
    await passing(timedelta(hours=25, minutes=50))
    assert await types(services) == ["online", "idle"]
    await passing(timedelta(minutes=10))
    assert await types(services) == ["online", "idle", "offline"]


async def test_a_revoked_key_has_no_more_events(
    alice: httpx.AsyncClient, services: Services, plugin: Site, passing: Passing
) -> None:
    await beat(plugin)
    await passing(timedelta(minutes=1))
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
    await passing(timedelta(hours=26))
    assert await types(services) == ["online"]


async def test_a_second_site_is_noticed_by_the_sweep(
    services: Services, as_service: AsService, passing: Passing
) -> None:
    site = await as_service(primary_domain="harbour.example")
    await beat(site, "harbour.example")
    await passing(timedelta(minutes=1))
    await beat(site, "staging.example")
    for _ in range(2):
        await passing(timedelta(minutes=1))
    assert await types(services) == ["online", "site_mismatch"]
    await beat(site, "harbour.example")
    await passing(timedelta(hours=23))
    assert (await types(services)).count("site_mismatch") == 1
    await beat(site, "harbour.example")
    await passing(timedelta(hours=2))
    await beat(site, "staging.example")
    await passing(timedelta(minutes=1))
    assert (await types(services)).count("site_mismatch") == 2


async def test_the_www_twin_and_other_names_of_a_site(
    services: Services, as_service: AsService, passing: Passing
) -> None:
    """D-127: two names of one site are no news; an underscore is not any character, and a port is another site."""
    site = await as_service(primary_domain="my-site.example")
    for host in ("my-site.example", "www.my-site.example", "my-site.example:443"):
        await beat(site, host)
        await passing(timedelta(minutes=1))
    assert await types(services) == ["online"]
    await beat(site, "my_site.example")
    await passing(timedelta(minutes=1))
    assert await types(services) == ["online", "site_mismatch"]
    await beat(site, "my-site.example")
    await passing(timedelta(hours=24))
    await beat(site, "my-site.example")
    await passing(timedelta(minutes=1))
    await beat(site, "my-site.example:8443")
    await passing(timedelta(minutes=1))
    assert (await types(services)).count("site_mismatch") == 2


async def test_the_end_of_a_key(
    services: Services, as_service: AsService, clock: FrozenClock, passing: Passing
) -> None:
    """Seven days and one day before; a key that was made for less has only the later one."""
    long, short = iso(clock.now() + 8 * DAY), iso(clock.now() + 3 * DAY)
    keys = [(await as_service(expires_at=end)).key["client_id"] for end in (long, short)]

    async def expiring() -> list[str]:
        found = [row for row in await published(services) if row.type == "key.expiring"]
        return [json.loads(row.data)["key"]["client_id"] for row in found]

    await passing(timedelta(hours=23), HOUR)
    assert await expiring() == []
    await passing(timedelta(hours=2), HOUR)
    assert await expiring() == [keys[0]]
    await passing(timedelta(hours=24), HOUR)
    assert await expiring() == [keys[0], keys[1]]
    await passing(timedelta(hours=24 * 5 + 1), HOUR)
    assert await expiring() == [keys[0], keys[1], keys[0]]
    await passing(timedelta(hours=30), HOUR)
    assert len(await expiring()) == 3


async def test_a_site_has_an_interval_to_report_after_our_own_outage(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, passing: Passing
) -> None:
    await beat(plugin)
    await passing(timedelta(minutes=1))
    clock.advance(hours=30)
    await sweep.run_once(services)
    await passing(timedelta(hours=1))
    assert await types(services) == ["online"]
    await beat(plugin)
    await passing(timedelta(hours=1))
    assert await types(services) == ["online"]


async def test_a_site_that_does_not_report_after_our_own_outage_is_offline(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, passing: Passing
) -> None:
    await beat(plugin)
    await passing(timedelta(minutes=1))
    clock.advance(hours=30)
    await sweep.run_once(services)
    await passing(timedelta(hours=1, minutes=6))
    assert await types(services) == ["online", "offline"]


async def test_a_sweep_that_takes_long_is_no_outage(
    as_service: AsService, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When many keys have an event at once, the next sweep starts more than five minutes after this one."""
    update_of = watching.update

    async def slow(*arguments: Any, may_alarm: bool) -> None:
        clock.advance(minutes=3)
        await update_of(*arguments, may_alarm=may_alarm)

    for _ in range(3):
        await beat(await as_service())
    monkeypatch.setattr(sweep, "_TRANSACTION", 1)
    monkeypatch.setattr(watching, "update", slow)
    while clock.now() < START + 3 * HOUR:
        clock.advance(minutes=1)
        await sweep.run_once(services)
    assert await types(services) == ["online"] * 3 + ["idle"] * 3


@pytest.mark.parametrize("step", ["count", "stale"])
async def test_a_machine_that_pauses_in_a_sweep_alarms_no_owner(
    alice: httpx.AsyncClient,
    as_service: AsService,
    services: Services,
    clock: FrozenClock,
    passing: Passing,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """It is suspended for 30 hours while the sweep reads, or before it publishes the event of another key."""
    await beat(site := await as_service())
    await passing(timedelta(minutes=1))
    await beat(await as_service())
    clock.advance(minutes=1)
    read = getattr(watches, step)

    async def pause(*arguments: Any, **more: Any) -> Any:
        clock.advance(hours=30)
        return await read(*arguments, **more)

    monkeypatch.setattr(watches, step, pause)
    await sweep.run_once(services)
    monkeypatch.undo()
    for _ in range(10):
        clock.advance(minutes=1)
        await sweep.run_once(services)
    assert await types(services) == ["online"] * 2
    await beat(site)
    for _ in range(60):
        clock.advance(minutes=1)
        await sweep.run_once(services)
    assert await types(services) == ["online"] * 2 + ["offline"]


async def test_a_defect_for_one_owner_does_not_stop_the_sweep_for_others(
    as_user: AsUser,
    as_service: AsService,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The sweep ends, so that the next one does not take it for an outage."""
    update_of = watching.update

    async def update(
        services: Services, session: AsyncSession, key: watches.Stale, now: int, *, may_alarm: bool
    ) -> None:
        if key.owner_id == 1:
            raise RuntimeError("a defect")
        await update_of(services, session, key, now, may_alarm=may_alarm)

    monkeypatch.setattr(watching, "update", update)
    await beat(await as_service())
    bob = await as_user(BOB)
    await beat(await as_service("locations/211"))
    await sweep.run_once(services)
    found = assert_ok(await bob.get(EVENTS))["events"]
    assert "connection.online" in [event["type"] for event in found]
    assert await types(services) == []
    assert "a defect" in caplog.text
    async with services.storage.read() as session:
        assert "ended" in await watches.marks(session)


ANOTHER = 1_025


async def report(services: Services, numbers: list[int]) -> None:
    async with services.storage.write() as session:
        for number in numbers:
            of_key = {"owner_id": 1, "key_id": number, "last_heartbeat_at": services.clock.now()}
            await session.execute(tables.connections.delete().where(tables.connections.c.key_id == number))
            await session.execute(insert(tables.connections).values(of_key))


@pytest.fixture
async def sites(services: Services, plugin: Site, clock: FrozenClock) -> list[int]:
    """Twenty-five keys of one owner that report at the same time; ANOTHER has not reported yet."""
    numbers = list(range(1_000, 1_025))
    async with services.storage.write() as session:
        for number in (*numbers, ANOTHER):
            key = {"owner_id": 1, "id": number, "client_id": f"svcid_1_{number}_x", "business_id": 10}
            more = {"location_name": "locations/111", "name": "x", "permissions": "", "allowed_domains": "[]"}
            await session.execute(insert(tables.keys).values(**key, **more, created_at=clock.now()))
    await report(services, numbers)
    return numbers


class TestManySites:
    """They fall silent together; another site reports on."""

    @pytest.fixture
    async def passing(self, services: Services, clock: FrozenClock) -> Passing:
        async def run(duration: timedelta) -> None:
            until = clock.now() + round(duration / timedelta(milliseconds=1))
            while clock.now() < until:
                clock.advance(milliseconds=min(10 * MINUTE, until - clock.now()))
                await report(services, [ANOTHER])
                await sweep.catch_up(services)

        await sweep.run_once(services)
        return run

    async def test_owners_of_many_silent_sites_wait_and_the_operator_is_warned_once(
        self,
        alice: httpx.AsyncClient,
        services: Services,
        sites: list[int],
        passing: Passing,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        await passing(timedelta(minutes=1))
        with caplog.at_level(logging.ERROR, "profilesvc"):
            await passing(timedelta(hours=6))
        assert len([record for record in caplog.records if "fell silent" in record.message]) == 1
        assert await sweep.held_since(services) is not None
        assert "idle" not in await types(services)
        await report(services, sites)
        await passing(timedelta(minutes=2))
        assert await sweep.held_since(services) is None
        assert "idle" not in await types(services)

    async def test_the_operator_gets_one_message_about_many_silent_sites(
        self, alice: httpx.AsyncClient, services: Services, sites: list[int], passing: Passing
    ) -> None:
        """It is repeated until the mail server accepts it."""
        settings = services.settings.model_copy(update={"mail": MailSettings(operator="operator@p.example")})
        mailer, broken = Mailer(settings), Mailer(settings.model_copy(update={"environment": "production"}))
        services = replace(services, settings=settings)
        await operator.write(services, mailer)
        await passing(timedelta(hours=3))
        await census.count(services)
        assert b'profilesvc_alarms{state="held"} 1.0' in await census.exposition(services)
        folder = settings.data_dir / "mail"
        with pytest.raises(JobFailed):
            await operator.write(services, broken)
        for _ in range(2):
            await operator.write(services, mailer)
        (file,) = folder.glob("*.eml")
        assert b"To: operator@p.example" in file.read_bytes()
        await report(services, sites)
        await passing(timedelta(minutes=2))
        await census.count(services)
        assert b'profilesvc_alarms{state="held"} 0.0' in await census.exposition(services)
        await passing(timedelta(hours=3))
        await operator.write(services, mailer)
        assert len(list(folder.glob("*.eml"))) == 2

    async def test_a_release_by_the_operator_reports_many_silent_sites(
        self, alice: httpx.AsyncClient, services: Services, sites: list[int], passing: Passing
    ) -> None:
        await passing(timedelta(hours=3))
        await sweep.release(services)
        await passing(timedelta(minutes=2))
        assert (await types(services)).count("idle") == 25
        assert await sweep.held_since(services) is None

    async def test_a_release_during_a_sweep_counts(
        self, services: Services, sites: list[int], passing: Passing, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await sweep.release(services)  # the earlier one, which the sweep reads
        await passing(timedelta(hours=3))
        count = watches.count

        async def released(*arguments: Any) -> watches.Counted:
            await sweep.release(services)
            return await count(*arguments)

        monkeypatch.setattr(watches, "count", released)
        await sweep.run_once(services)
        monkeypatch.undo()
        assert len(sites) == 25
        assert await sweep.held_since(services) is not None
        await passing(timedelta(minutes=1))
        assert await sweep.held_since(services) is None

    @pytest.mark.slow
    async def test_owners_of_many_silent_sites_wait_at_most_a_day(
        self, alice: httpx.AsyncClient, services: Services, sites: list[int], passing: Passing
    ) -> None:
        await passing(timedelta(hours=26))
        assert "offline" not in await types(services)
        await passing(timedelta(hours=1))
        assert len(sites) == 25
        assert (await types(services)).count("offline") == 25

    async def test_a_few_silent_sites_are_reported_as_usual(
        self, alice: httpx.AsyncClient, services: Services, sites: list[int], passing: Passing
    ) -> None:
        for _ in range(3):
            await passing(timedelta(hours=1))
            await report(services, sites[5:])
        await passing(timedelta(minutes=2))
        assert (await types(services)).count("idle") == 5


class TestNoSiteReports:
    """The network between all sites and the service is down, while the service runs."""

    @staticmethod
    async def hour(services: Services, clock: FrozenClock, sites: list[int]) -> None:
        """All sites report, evenly over an hour."""
        for start in range(6):
            clock.advance(minutes=10)
            await report(services, sites[start::6])
            await sweep.catch_up(services)

    @pytest.mark.slow
    async def test_owners_wait_although_all_sites_fall_silent_evenly(
        self,
        services: Services,
        sites: list[int],
        clock: FrozenClock,
        passing: Passing,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        await self.hour(services, clock, sites)
        await passing(timedelta(hours=1))
        assert await sweep.held_since(services) is None
        await passing(timedelta(hours=22, minutes=58))
        assert await sweep.held_since(services) is not None
        assert [record.message for record in caplog.records if "no site has reported since" in record.message]
        for _ in range(2):
            await self.hour(services, clock, sites)
        assert await sweep.held_since(services) is None
        assert not {"idle", "offline"}.intersection(await types(services))

    async def test_a_site_that_does_not_come_back_with_the_others_is_reported(
        self, services: Services, sites: list[int], clock: FrozenClock, passing: Passing
    ) -> None:
        await self.hour(services, clock, sites)
        await passing(timedelta(hours=5))
        for _ in range(3):
            await self.hour(services, clock, sites[1:])
        assert (await types(services)).count("idle") == 1

    async def test_a_release_reports_an_outage_of_all_sites_to_their_owners(
        self, services: Services, sites: list[int], clock: FrozenClock, passing: Passing
    ) -> None:
        await self.hour(services, clock, sites)
        await passing(timedelta(hours=3))
        assert "idle" not in await types(services)
        await sweep.release(services)
        await passing(timedelta(minutes=1))
        assert (await types(services)).count("idle") == 25
        await passing(timedelta(hours=24))
        assert await sweep.held_since(services) is None
        assert (await types(services)).count("offline") == 25

    @pytest.mark.slow
    async def test_owners_wait_at_most_a_day_when_no_site_reports(
        self, services: Services, sites: list[int], clock: FrozenClock, passing: Passing
    ) -> None:
        await self.hour(services, clock, sites)
        await passing(timedelta(hours=25))
        assert "offline" not in await types(services)
        await passing(timedelta(minutes=20))
        assert (await types(services)).count("offline") == 25

    async def test_sites_that_all_report_at_the_same_minute_are_no_outage(
        self, services: Services, sites: list[int], passing: Passing
    ) -> None:
        for _ in range(3):
            await passing(timedelta(hours=1))
            assert await sweep.held_since(services) is None
            await report(services, sites[5:])
        await passing(timedelta(minutes=2))
        assert (await types(services)).count("idle") == 5


async def test_the_first_sweep_adopts_the_states_of_older_keys(services: Services, sites: list[int]) -> None:
    """A key that has been idle, offline or without a heartbeat since before the upgrade is no news."""
    async with services.storage.write() as session:
        is_old = tables.keys.c.id != ANOTHER
        await session.execute(update(tables.keys).where(is_old).values(created_at=START - 90 * DAY))
        for number, silent in ((1_000, 3 * HOUR), (1_001, 60 * DAY)):
            await session.execute(
                update(tables.connections)
                .where(tables.connections.c.key_id == number)
                .values(last_heartbeat_at=START - silent)
            )
        await session.execute(
            insert(tables.watches).values(owner_id=1, key_id=1_001, changed_at=START, grace_seconds=9)
        )
    await report(services, [ANOTHER])
    await sweep.run_once(services)
    assert await types(services) == ["online"]
    await report(services, [1_001])
    await sweep.run_once(services)
    assert await types(services) == ["online"] * 2


async def test_a_longer_grace_does_not_make_an_offline_site_idle(
    alice: httpx.AsyncClient, plugin: Site, services: Services, passing: Passing
) -> None:
    await beat(plugin)
    await passing(timedelta(hours=25))
    grace = {"grace_seconds": 10 * 3_600}
    async with services.storage.write() as session:
        await session.execute(update(tables.watches).where(tables.watches.c.owner_id == 1).values(grace))
    await passing(timedelta(hours=12))
    assert await types(services) == ["online", "idle", "offline"]


async def test_pages_have_every_key(
    alice: httpx.AsyncClient,
    as_service: AsService,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    passing: Passing,
) -> None:
    monkeypatch.setattr(sweep, "PAGE", 2)
    for _ in range(5):
        await beat(await as_service())
    await passing(timedelta(minutes=1))
    assert (await types(services)).count("online") == 5
