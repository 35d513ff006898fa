"""E-mail alerts: who receives what and when, and the addresses."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from conftest import ON_ONE_DATABASE, ON_POSTGRES, START, AsService, AsUser
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.delivery.mail import MailSender
from profilesvc.delivery.senders import Attempt, Due, Failed, Outcome, Retry
from profilesvc.delivery.smtp import Mailer, Unsent
from profilesvc.delivery.worker import Worker
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, MINUTE, FrozenClock, iso
from profilesvc.operations import housekeeping
from profilesvc.operations.notify import sweep
from profilesvc.services.context import Services
from profilesvc.services.notify import alerts
from profilesvc.storage import holds, tables
from profilesvc.storage.notify import alerts as stored_alerts
from profilesvc.storage.notify import channels, deliveries
from profilesvc.storage.tables import locations, partitions
from support.api import ALICE, BOB, Site, assert_error, assert_ok, fields
from support.effort import effort

pytestmark = pytest.mark.in_process("runs the worker itself and reads the files of the messages")
ALERTS, KEYS, BEAT = "/api/v1/alerts", "/api/v1/developer/credentials", "/api/v1/api-keys/heartbeat"
TEAM = "team@harbour.example.com"
DAYS = effort(40, 80)  # more than the 30 for which events and deliveries are stored, less than a token is valid
Passing = Callable[..., Awaitable[None]]
Days = Callable[[int], Awaitable[None]]


class Box:
    """The messages that were written to files, oldest first."""

    def __init__(self, services: Services) -> None:
        mail = MailSender(Mailer(services.settings))
        self._services, self._worker = services, Worker(services, {"email": mail, "notice": mail})

    async def deliver(self) -> None:
        await self._worker.run_round()
        await self._worker.settle()

    @property
    def files(self) -> list[bytes]:
        found = sorted((self._services.settings.data_dir / "mail").glob("*.eml"))
        return [file.read_bytes() for file in found]

    @property
    def messages(self) -> list[EmailMessage]:
        return [message_from_bytes(file, policy=policy.default) for file in self.files]

    @property
    def subjects(self) -> list[str]:
        return [message["Subject"].replace("The site of “Harbour Coffee, Pier”", "It") for message in self.messages]


@pytest.fixture
def box(services: Services) -> Box:
    return Box(services)


@pytest.fixture
async def passing(services: Services, clock: FrozenClock, box: Box) -> Passing:
    """Move the clock, with a sweep and a round of the worker every half hour and at the end."""

    async def run(**duration: float) -> None:
        until = clock.now() + round(timedelta(**duration) / timedelta(milliseconds=1))
        while clock.now() < until:
            clock.advance(milliseconds=min(30 * MINUTE, until - clock.now()))
            await sweep.catch_up(services)
            await box.deliver()

    await sweep.run_once(services)
    return run


@pytest.fixture
async def days(services: Services, clock: FrozenClock, box: Box) -> AsyncIterator[Days]:
    """Move the clock by days, with a sweep, a round of the worker and housekeeping on each."""

    async def run(count: int) -> None:
        for _ in range(count):
            clock.advance(days=1)
            await sweep.catch_up(services)
            await box.deliver()
            await housekeeping.run_once(services)

    yield run
    assert await partitions.renew(services.storage.engine, START) == [], "other tests need the months that were dropped"


async def add(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = assert_ok(await client.post(ALERTS, json=body), 201)
    return made


def confirmation_of(box: Box) -> str:
    """Return the link of the newest message."""
    link = re.search(r"http://\S+/confirm/\S+", text_of(box.messages[-1]))
    assert link is not None
    return link[0]


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


async def beat(site: Site) -> None:
    assert_ok(await site.http.post(BEAT, json={}))


async def test_the_owner_receives_one_alert_of_an_offline_site_and_one_when_it_is_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice)
    await beat(plugin)
    await passing(hours=23)
    assert box.subjects == []
    await passing(hours=30)
    (offline,) = box.messages
    assert offline["Subject"] == (
        "The site of “Harbour Coffee, Pier” is offline: no heartbeat since 2026-01-02 03:04 UTC"
    )
    assert (offline["To"], offline["Auto-Submitted"]) == (ALICE, "auto-generated")
    assert "is the plugin active" in text_of(offline)
    await beat(plugin)
    await passing(hours=3)
    assert box.subjects[1:] == ["It is connected again"]
    assert box.messages[1]["References"] == offline["References"]
    assert box.messages[1]["Message-ID"] != offline["Message-ID"]


async def test_a_title_that_changes_the_direction_of_text_does_not_turn_the_alert_over(
    alice: httpx.AsyncClient, plugin: Site, services: Services, box: Box, passing: Passing
) -> None:
    async with services.storage.write() as session:
        await session.execute(update(locations).values(title="Harbour \u202egnp.exe \u2067x"))
    await add(alice)
    await beat(plugin)
    await passing(hours=53)
    (offline,) = box.messages
    html = offline.get_body(("html",))
    assert html is not None
    for text in (offline["Subject"], text_of(offline), str(html.get_content())):
        assert "Harbour gnp.exe x" in text
        assert not {"\u202e", "\u2067"} & set(text)


async def test_a_site_that_was_never_reported_as_offline_is_not_reported_as_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice)
    await beat(plugin)
    await passing(hours=4)
    await beat(plugin)
    await passing(hours=1)
    assert box.subjects == []


async def test_an_alert_can_be_repeated_daily_until_the_site_is_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice, reminders=True)
    await beat(plugin)
    await passing(hours=24 + 24 + 24 + 2)
    assert [subject.startswith("Still: ") for subject in box.subjects] == [False, True, True]
    await beat(plugin)
    await passing(hours=26)
    assert len(box.subjects) == 3 + 2  # back, and offline again


async def test_an_alert_is_not_repeated_after_reminders_are_switched_off(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    made = await add(alice, reminders=True)
    await beat(plugin)
    await passing(hours=26)
    assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"reminders": False}))
    await passing(hours=49)
    assert len(box.subjects) == 1


@pytest.mark.parametrize(("until", "alerts"), [(None, 1), ("2026-01-04T05:00:00Z", 1), ("2026-02-01T00:00:00Z", 0)])
@pytest.mark.slow
async def test_an_offline_site_is_reported_when_its_snooze_is_ended(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing, until: str | None, alerts: int
) -> None:
    """Or made shorter; not when it is made longer."""
    await add(alice)
    await beat(plugin)
    path = f"{KEYS}/{plugin.key['client_id']}/alerts"
    assert_ok(await alice.patch(path, json={"snoozed_until": "2026-01-10T00:00:00Z"}))
    await passing(hours=48)
    assert box.subjects == []
    assert_ok(await alice.patch(path, json={"snoozed_until": until}))
    await passing(hours=2)
    assert len(box.subjects) == alerts
    await passing(days=9)
    assert len(box.subjects) == alerts


async def test_an_alert_is_sent_if_its_snooze_is_ended_while_a_worker_postpones_it(
    alice: httpx.AsyncClient, plugin: Site, box: Box, services: Services, clock: FrozenClock
) -> None:
    """The worker postpones the alert, sends the next one, and then records both."""
    of_key = f"{KEYS}/{plugin.key['client_id']}"

    class Ending(Mailer):
        async def send(self, message: EmailMessage, address: str, name: str) -> None:
            await super().send(message, address, name)
            assert_ok(await alice.patch(f"{of_key}/alerts", json={"snoozed_until": None}))

    await add(alice, immediate=["connection.offline", "key.rolled"])
    await beat(plugin)
    await sweep.run_once(services)
    assert_ok(await alice.patch(f"{of_key}/alerts", json={"snoozed_until": "2026-01-10T00:00:00Z"}))
    clock.advance(hours=25)
    await sweep.catch_up(services)
    assert_ok(await alice.post(f"{of_key}/roll", json={"overlap_seconds": 0}))
    worker = Worker(services, {"email": MailSender(Ending(services.settings))})
    await worker.run_round()
    await worker.settle()
    assert len(box.subjects) == 1
    clock.advance(seconds=1)
    await box.deliver()
    assert box.subjects[1].startswith("It is offline")


@pytest.mark.slow
@pytest.mark.parametrize("is_back", [False, True], ids=["offline", "back"])
@ON_ONE_DATABASE
async def test_a_site_that_is_offline_when_a_snooze_of_months_ends_is_reported(
    alice: httpx.AsyncClient,
    plugin: Site,
    box: Box,
    clock: FrozenClock,
    passing: Passing,
    days: Days,
    is_back: bool,
) -> None:
    await add(alice)
    await beat(plugin)
    path = f"{KEYS}/{plugin.key['client_id']}/alerts"
    assert_ok(await alice.patch(path, json={"snoozed_until": iso(clock.now() + (DAYS + 1) * DAY)}))
    await days(DAYS)
    assert box.subjects == []
    clock.advance(hours=1)
    if is_back:
        await beat(plugin)
    await passing(hours=23)
    assert len(box.subjects) == (0 if is_back else 1)
    if not is_back:
        await days(2)
        await beat(plugin)
        await passing(hours=1)
        assert box.subjects[1:] == ["It is connected again"]


@pytest.mark.slow
async def test_a_site_that_is_back_after_months_is_reported_as_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, clock: FrozenClock, passing: Passing, days: Days
) -> None:
    """Longer than twice the time for which events and deliveries are stored."""
    await add(alice)
    await beat(plugin)
    await days(65)
    assert len(box.subjects) == 1
    clock.advance(hours=1)
    await beat(plugin)
    await passing(hours=1)
    assert box.subjects[1:] == ["It is connected again"]


@pytest.mark.slow
@ON_ONE_DATABASE
async def test_an_alert_is_repeated_daily_for_months(
    alice: httpx.AsyncClient, plugin: Site, box: Box, services: Services, days: Days
) -> None:
    """A webhook does not receive the event again, and old deliveries are deleted."""
    await add(alice, reminders=True)
    assert_ok(await alice.post("/api/v1/webhooks", json={"url": "https://hooks.example.com/x"}), 201)
    await beat(plugin)
    await days(DAYS)
    assert [subject.startswith("Still: ") for subject in box.subjects] == [False, *[True] * (DAYS - 1)]
    kinds = select(tables.channels.c.kind).join(
        tables.deliveries, tables.deliveries.c.channel_id == tables.channels.c.id
    )
    async with services.storage.read() as session:
        stored = list((await session.execute(kinds)).scalars())
    assert set(stored) == {"email"}, "the others are older than 30 days"
    assert len(stored) <= 32


@pytest.mark.slow
@ON_ONE_DATABASE
async def test_an_alert_is_repeated_although_its_event_is_written_again_meanwhile(
    alice: httpx.AsyncClient, plugin: Site, box: Box, services: Services, clock: FrozenClock
) -> None:
    class Tidying(Mailer):
        async def send(self, message: EmailMessage, address: str, name: str) -> None:
            await super().send(message, address, name)
            await housekeeping.run_once(services)

    await add(alice, reminders=True)
    await beat(plugin)
    worker = Worker(services, {"email": MailSender(Tidying(services.settings))})
    for _ in range(DAYS):
        clock.advance(days=1)
        await sweep.catch_up(services)
        await worker.run_round()
        await worker.settle()
    assert [subject.startswith("Still: ") for subject in box.subjects] == [False, *[True] * (DAYS - 1)]


@pytest.mark.parametrize("change", ["revoked", "deactivated", "expired"])
async def test_an_alert_is_not_repeated_for_a_key_that_does_not_work(
    alice: httpx.AsyncClient, plugin: Site, box: Box, services: Services, passing: Passing, change: str
) -> None:
    await add(alice, reminders=True)
    await beat(plugin)
    await passing(hours=26)
    async with services.storage.write() as session:
        if change == "deactivated":
            await holds.put(session, 1, holds.every_key(), "user_requested", START)
        else:
            column = {"revoked": "revoked_at", "expired": "expires_at"}[change]
            await session.execute(update(tables.keys).values({column: START + DAY}))
    await passing(hours=50)
    assert len(box.subjects) == 1


async def test_an_alert_waits_while_its_site_is_snoozed(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, box: Box, passing: Passing
) -> None:
    await add(alice)
    await beat(plugin)
    await passing(hours=1)
    async with services.storage.write() as session:
        until = clock.now() + 2 * DAY
        await session.execute(update(tables.watches).values(snoozed_until=until))
    await passing(hours=47)
    assert box.subjects == []
    await passing(hours=2)
    (subject,) = box.subjects
    assert not subject.startswith("Still")


async def test_an_alert_names_the_domain_of_the_site_or_the_title_of_its_location(
    alice: httpx.AsyncClient, as_service: AsService, box: Box, passing: Passing
) -> None:
    """A link leads to its page."""
    await add(alice, immediate=["connection.offline", "key.rolled"])
    with_domain = await as_service(primary_domain="harbour.example")
    for site in (with_domain, await as_service("locations/112")):
        await beat(site)
    await passing(hours=1)
    assert_ok(await alice.post(f"{KEYS}/{with_domain.key['client_id']}/roll", json={"overlap_seconds": 0}))
    await passing(hours=24)
    rolled, first, second = box.messages
    assert first["Subject"].startswith("harbour.example is offline: no heartbeat since 2026-01-02 03:04 UTC")
    assert second["Subject"].startswith("The site of “Harbour Coffee, Station” is offline")
    assert "/dashboard/sites/111\n" in text_of(first)
    assert "/dashboard/sites/112\n" in text_of(second)
    assert f"/dashboard/keys/{with_domain.key['client_id']}\n" in text_of(rolled)


async def test_a_site_of_a_muted_location_causes_no_alert(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice, muted_locations=["locations/111"])
    await passing(hours=26)
    assert box.subjects == []


async def test_a_quiet_time_postpones_an_alert(
    alice: httpx.AsyncClient, plugin: Site, box: Box, clock: FrozenClock, passing: Passing
) -> None:
    """The site is offline at 03:04 UTC, which is 04:04 in Berlin."""
    await add(alice, quiet_time={"from": "22:00", "to": "07:00"}, time_zone="Europe/Berlin")
    await beat(plugin)
    await passing(hours=26)
    assert box.subjects == []
    await passing(hours=1)
    assert len(box.subjects) == 1


async def test_no_alert_is_sent_if_the_site_is_back_before_it_is_due(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice, quiet_time={"from": "02:00", "to": "12:00"})
    await beat(plugin)
    await passing(hours=25)
    await beat(plugin)
    await passing(hours=12)
    assert box.subjects == []


async def test_a_quiet_time_postpones_the_message_that_a_site_is_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice, quiet_time={"from": "04:00", "to": "12:00"})
    await beat(plugin)
    await passing(hours=25)
    assert len(box.subjects) == 1
    await beat(plugin)
    await passing(hours=7, minutes=30)
    assert len(box.subjects) == 1
    await passing(hours=1)
    assert box.subjects[1:] == ["It is connected again"]


@pytest.mark.parametrize(
    ("first", "changed", "hours"),
    [
        ({"daily": ["key.rolled"], "digest_at": "20:00"}, {"digest_at": "06:00"}, 3),
        ({"daily": ["key.rolled"], "digest_at": "20:00"}, {"time_zone": "Asia/Tokyo"}, 8),
        ({"daily": ["key.rolled"], "digest_at": "20:00"}, {"immediate": ["key.rolled"], "daily": []}, 0),
        ({"immediate": ["key.rolled"], "quiet_time": {"from": "02:00", "to": "12:00"}}, {"quiet_time": None}, 0),
    ],
    ids=["digest", "time zone", "at once", "quiet time"],
)
@ON_ONE_DATABASE
async def test_a_change_of_the_settings_applies_to_events_that_wait(
    alice: httpx.AsyncClient,
    plugin: Site,
    box: Box,
    passing: Passing,
    first: dict[str, Any],
    changed: dict[str, Any],
    hours: int,
) -> None:
    """It is 03:04 UTC, and the new time is within the next hours."""
    made = await add(alice, **{"immediate": [], "daily": []} | first)
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={}))
    await box.deliver()
    assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json=changed))
    await box.deliver()
    assert len(box.subjects) == (0 if hours else 1)
    await passing(hours=hours)
    assert len(box.subjects) == 1


@ON_ONE_DATABASE
async def test_a_waiting_event_is_sent_although_the_address_was_switched_off_meanwhile(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    made = await add(alice, immediate=[], daily=["key.rolled"], digest_at="06:00")
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={}))
    await box.deliver()
    for enabled in (False, True):
        assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"enabled": enabled}))
        await box.deliver()
    await passing(hours=3)
    assert box.subjects == ["Daily digest: 1 event"]


@ON_ONE_DATABASE
async def test_an_alert_is_sent_once_although_its_reminder_cannot_be_stored(
    alice: httpx.AsyncClient,
    plugin: Site,
    box: Box,
    passing: Passing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: Any) -> None:
        raise ServiceError(SERVICE_UNAVAILABLE)

    monkeypatch.setattr(stored_alerts, "add_reminder", fail)
    await add(alice, immediate=["connection.offline"], daily=[], reminders=True)
    await beat(plugin)
    await passing(hours=30)
    assert len(box.subjects) == 1


async def test_a_digest_in_the_quiet_time_is_sent_at_its_end(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    quiet = {"from": "05:00", "to": "07:00"}
    await add(alice, immediate=[], daily=["key.rolled"], digest_at="06:00", quiet_time=quiet)
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={}))
    await passing(hours=3, minutes=30)
    assert box.subjects == []
    await passing(minutes=30)
    assert box.subjects == ["Daily digest: 1 event"]


async def test_the_digest_lists_the_events_of_a_day_and_offline_sites_first(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    await add(alice, immediate=[], daily=["connection.offline", "key.rolled"], digest_at="06:00")
    await beat(plugin)
    await passing(hours=1)
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={}))
    await passing(hours=1)
    assert box.subjects == []
    await passing(hours=1)
    assert box.subjects == ["Daily digest: 1 event"]
    await passing(hours=20)
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
    await passing(hours=4)
    assert box.subjects == ["Daily digest: 1 event", "Daily digest: 2 events"]
    text = text_of(box.messages[1])
    assert text.index("is offline") < text.index("was replaced")


async def test_a_domain_with_other_letters_is_written_as_mail_servers_expect(
    alice: httpx.AsyncClient, box: Box
) -> None:
    made = await add(alice, address="team@h\u00e4fen.example.com")
    assert made["address"] == "team@h\u00e4fen.example.com"
    await box.deliver()
    assert b"\r\nTo: team@xn--hfen-loa.example.com\r\n" in box.files[0]


async def test_an_address_that_a_header_would_show_as_another_is_disabled(
    alice: httpx.AsyncClient, services: Services, box: Box
) -> None:
    made = await add(alice, address=TEAM)
    async with services.storage.write() as session:
        await session.execute(update(tables.channels).values(target="=?utf-8?q?a=0aBcc=3a_c=40d.e?=@example.com"))
    await box.deliver()
    found = assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))
    assert (found["status"], found["disabled_reason"], box.files) == ("disabled", "rejected", [])


class BrokenMailer(Mailer):
    """Fails like a mail server that is down."""

    async def send(self, message: EmailMessage, address: str, name: str) -> None:
        raise Unsent("the mail server cannot be reached")


@pytest.mark.parametrize("is_back_again", [False, True])
async def test_a_site_that_is_offline_again_after_an_outage_of_the_mail_server_is_not_reported_as_back(
    alice: httpx.AsyncClient, plugin: Site, box: Box, services: Services, clock: FrozenClock, is_back_again: bool
) -> None:
    """The message that it is back is repeated during the outage. If it is back again, there is one message."""
    await add(alice)
    await beat(plugin)
    working, broken = (
        Worker(services, {"email": MailSender(mailer(services.settings))}) for mailer in (Mailer, BrokenMailer)
    )

    async def run(hours: int, worker: Worker) -> None:
        for _ in range(hours * 2):
            clock.advance(minutes=30)
            await sweep.catch_up(services)
            await worker.run_round()
            await worker.settle()

    await run(25, working)
    await beat(plugin)
    await run(26, broken)
    if is_back_again:
        await beat(plugin)
        await run(1, broken)
    await run(20, working)
    offline = "It is offline: no heartbeat since"
    expected = "It is connected again" if is_back_again else f"{offline} 2026-01-03 04:04 UTC"
    assert box.subjects == [f"{offline} 2026-01-02 03:04 UTC", expected]


@pytest.mark.parametrize("reason", ["gone", "failing"])
async def test_the_owner_of_a_disabled_webhook_has_a_message_without_alerts(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, box: Box, reason: str
) -> None:
    made = assert_ok(await alice.post("/api/v1/webhooks", json={"url": "https://hooks.example.com/x"}), 201)

    async def failing(_services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        attempt = Attempt(due[0].now, 410)
        return Failed(attempt, "gone") if reason == "gone" else Retry(attempt)

    worker = Worker(services, {"webhook": failing, "notice": MailSender(Mailer(services.settings))})
    for _ in range(3):
        assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
        await worker.run_round()
        await worker.settle()
        async with services.storage.write() as session:
            before = clock.now() - 5 * DAY
            await session.execute(update(tables.channels).values(failing_since=before))
    (message,) = box.messages
    why = {"gone": "the endpoint responded that it no longer exists", "failing": "all attempts failed for 5 days"}
    assert message["Subject"].strip() == f"The webhook to hooks.example.com was disabled: {why[reason]}"
    assert (message["To"], message["List-Unsubscribe"]) == (ALICE, None)
    assert f"/dashboard/webhooks/{made['id']}\n" in text_of(message)
    found = assert_ok(await alice.get("/api/v1/events", params={"types": "webhook.disabled"}))["events"]
    assert [event["data"]["disabled_reason"] for event in found] == [reason]
    assert assert_ok(await alice.get(ALERTS)) == {"alerts": []}
    assert (await add(alice))["address"] == ALICE


async def test_an_outage_of_the_mail_server_disables_no_address(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    made = await add(alice)
    worker = Worker(services, {"email": MailSender(BrokenMailer(services.settings))})
    for _ in range(20):
        async with services.storage.write() as session:
            await deliveries.add(session, 1, made["id"], None, clock.now())
        await worker.run_round()
        await worker.settle()
        clock.advance(hours=12)
    async with services.storage.read() as session:
        (row,) = await channels.listing(session, 1, ("email",))
    assert (row.disabled_at, row.failing_since is None) == (None, False)


async def test_a_digest_is_one_message_after_an_outage_of_the_mail_server(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, box: Box
) -> None:
    await add(alice, immediate=[], daily=["key.rolled"], digest_at="06:00")
    for _ in range(9):
        assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
    await box.deliver()
    clock.advance(hours=3)
    broken = Worker(services, {"email": MailSender(BrokenMailer(services.settings))})
    for _ in range(2):
        await broken.run_round()
        await broken.settle()
        clock.advance(seconds=6)
    for _ in range(360):
        clock.advance(seconds=1)
        await box.deliver()
    assert box.subjects == ["Daily digest: 9 events"]


class Interrupted(Mailer):
    """Fails or hangs with the third message."""

    def __init__(self, services: Services, problem: str) -> None:
        super().__init__(services.settings)
        self._problem, self.sent, self.is_third = problem, list[str](), asyncio.Event()

    async def send(self, message: EmailMessage, address: str, name: str) -> None:
        if len(self.sent) == 2 and not self.is_third.is_set():
            self.is_third.set()
            if self._problem == "a defect":
                raise ZeroDivisionError
            await asyncio.sleep(60)
        self.sent.append(message["Message-ID"])


@pytest.mark.parametrize("problem", ["a defect", "a stop"])
async def test_messages_that_were_sent_before_a_problem_are_not_repeated(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock, problem: str
) -> None:
    await add(alice, immediate=["key.rolled"])
    for _ in range(4):
        assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
    mailer = Interrupted(services, problem)
    first, second = (Worker(services, {"email": MailSender(mailer)}) for _ in range(2))
    await first.run_round()
    await mailer.is_third.wait()
    await (first.stop() if problem == "a stop" else first.settle())
    for _ in range(3):
        await second.run_round()
        await second.settle()
        clock.advance(seconds=6)
    assert (len(mailer.sent), len(set(mailer.sent))) == (4, 4)


class SlowMailer(Mailer):
    """Takes eight seconds for a message, while other processes look for work."""

    def __init__(self, services: Services, clock: FrozenClock) -> None:
        self._clock, self.sent = clock, list[str]()
        self.workers = [Worker(services, {"email": MailSender(self)}) for _ in range(2)]

    async def send(self, message: EmailMessage, address: str, name: str) -> None:
        self.sent.append(message["Message-ID"])
        if len(self.sent) < 50:  # a defect must end too
            self._clock.advance(seconds=8)
            await self.workers[1].run_round()


async def test_many_alerts_by_a_slow_server_arrive_once(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    """Together they take longer than the claim of a process lasts."""
    await add(alice, immediate=["key.rolled"])
    for _ in range(9):
        assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
    mailer = SlowMailer(services, clock)
    for _ in range(9):
        await mailer.workers[0].run_round()
        for worker in mailer.workers:
            await worker.settle()
    assert (len(mailer.sent), len(set(mailer.sent))) == (9, 9)


async def test_the_address_of_the_login_is_active_without_a_confirmation(alice: httpx.AsyncClient, box: Box) -> None:
    made = await add(alice)
    assert (made["address"], made["status"], made["digest_at"]) == (ALICE, "active", "08:00")
    assert assert_ok(await alice.get(ALERTS)) == {"alerts": [made]}
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}")) == made
    assert_ok(await alice.post(f"{ALERTS}/{made['id']}/test"))
    await box.deliver()
    assert box.subjects == ["This is a test of your alerts"]


async def test_another_address_receives_only_a_link_until_it_is_confirmed(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    made = await add(alice, address="team@harbour.example.com", immediate=["key.rolled"])
    roll = f"{KEYS}/{plugin.key['client_id']}/roll"
    assert_ok(await alice.post(roll, json={}))
    await box.deliver()
    (message,) = box.messages
    assert (made["status"], message["To"]) == ("unconfirmed", "team@harbour.example.com")
    assert message["List-Unsubscribe"] is None
    link = re.search(r"http://\S+/dashboard/alerts/confirm/\S+", text_of(message))
    assert link is not None
    page = await http.get(link[0])
    assert (page.status_code, "Confirm the address" in page.text) == (200, True)
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))["status"] == "unconfirmed"
    assert (await http.post(link[0])).status_code == 200
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))["status"] == "active"
    assert_ok(await alice.post(roll, json={"overlap_seconds": 0}))
    await box.deliver()
    assert len(box.messages) == 2


@pytest.mark.parametrize("change", ["unsubscribed", "deleted", "new link"])
async def test_an_address_that_changes_while_it_is_confirmed_stays_unconfirmed(
    alice: httpx.AsyncClient, box: Box, services: Services, change: str
) -> None:
    made = await add(alice, address=TEAM)
    await box.deliver()
    row = await alerts.to_confirm(services, confirmation_of(box).rpartition("/")[2])
    if change == "deleted":
        assert_ok(await alice.delete(f"{ALERTS}/{made['id']}"))
    else:
        await alerts.unsubscribe(services, row)
    if change == "new link":
        assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"enabled": True}))
    with pytest.raises(ServiceError, match="no such"):
        await alerts.confirm(services, row)
    async with services.storage.read() as session:
        found = await channels.find(session, row.owner_id, row.id, ["email"])
    assert found is None if change == "deleted" else found is not None and found.confirmed_at is None


@pytest.mark.parametrize("change", ["test", "enable"])
@ON_POSTGRES
async def test_a_message_that_is_requested_while_the_address_is_deleted_is_not_found(
    alice: httpx.AsyncClient, box: Box, services: Services, change: str
) -> None:
    made = await add(alice, address=TEAM)
    path = f"{ALERTS}/{made['id']}"
    if change == "enable":
        await box.deliver()
        await alerts.unsubscribe(services, await alerts.to_confirm(services, confirmation_of(box).split("/")[-1]))
    async with services.storage.write() as session:
        await channels.remove(session, 1, made["id"])
        call = alice.post(f"{path}/test") if change == "test" else alice.patch(path, json={"enabled": True})
        requesting = asyncio.create_task(call)
        await asyncio.sleep(0.5)
    assert_error(await requesting, 404, "NOT_FOUND")


async def test_a_link_to_confirm_an_address_ends_after_three_days(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, box: Box, clock: FrozenClock
) -> None:
    await add(alice, address="team@harbour.example.com")
    await box.deliver()
    link = re.search(r"http://\S+/confirm/\S+", text_of(box.messages[0]))
    assert link is not None
    clock.advance(days=3, milliseconds=1)
    assert (await http.post(link[0])).status_code == 404


async def test_the_default_digest_has_each_change_at_the_provider(
    alice: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    """Within a day, by the provider's policy."""
    await add(alice)
    here = {"locationId": "locations/111"}
    made = assert_ok(await plugin.http.post("/api/v1/posts", params=here, json={"summary": "Fresh bread"}), 201)
    one = f"/api/v1/posts/{made['name'].rpartition('/')[2]}"
    assert_ok(await plugin.http.patch(one, params=here, json={"summary": "Fresh rolls"}))
    assert_ok(await plugin.http.delete(one, params=here))
    reply = "/api/v1/reviews/111002/reply"
    assert_ok(await plugin.http.put(reply, params=here, json={"comment": "Thank you."}))
    assert_ok(await plugin.http.delete(reply, params=here))
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"title": "Pier"}))
    await passing(hours=23, minutes=59)
    (digest,) = (message for message in box.messages if message["Subject"].startswith("Daily digest"))
    text = text_of(digest)
    for line in (
        "A post of “Pier” was created: “Fresh bread”",
        "A post of “Pier” was changed: “Fresh rolls”",
        "A post of “Pier” was deleted: “Fresh rolls”",
        "A review of “Pier” was replied to: “Thank you.”",
        "The reply to a review of “Pier” was deleted",
        "The profile of “Pier” was synced: title",
    ):
        assert line in " ".join(text.split())


async def test_a_reader_unsubscribes_without_a_login(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, box: Box
) -> None:
    made = await add(alice, immediate=["key.rolled"])
    roll = f"{KEYS}/{plugin.key['client_id']}/roll"
    assert_ok(await alice.post(roll, json={}))
    await box.deliver()
    (message,) = box.messages
    link = message["List-Unsubscribe"].strip("<>")
    assert f"\r\nList-Unsubscribe: <{link}>\r\n".encode() in box.files[0]
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert (await http.get(link)).status_code == 200
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))["status"] == "active"
    one_click = {"List-Unsubscribe": "One-Click"}
    assert (await http.post(link, data=one_click)).status_code == 200
    entry = assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))
    assert (entry["status"], entry["disabled_reason"]) == ("disabled", "unsubscribed")
    assert_ok(await alice.post(roll, json={"overlap_seconds": 0}))
    await box.deliver()
    assert len(box.messages) == 1
    assert_error(await alice.post(f"{ALERTS}/{made['id']}/test"), 409, "CONFLICT")
    assert assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"enabled": True}))["status"] == "active"


async def test_a_reader_who_unsubscribed_has_to_confirm_the_address_again(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, box: Box, clock: FrozenClock
) -> None:
    """It does not matter whether the owner disabled the address before or after. Old links still unsubscribe."""
    made = await add(alice, address=TEAM, immediate=["key.rolled"])
    path, roll = f"{ALERTS}/{made['id']}", f"{KEYS}/{plugin.key['client_id']}/roll"
    await box.deliver()
    first = confirmation_of(box)
    assert (await http.post(first)).status_code == 200
    assert_ok(await alice.post(roll, json={}))
    await box.deliver()
    unsubscribe = box.messages[-1]["List-Unsubscribe"].strip("<>")
    for before in (False, True, False):
        clock.advance(seconds=1)
        if before:
            assert_ok(await alice.patch(path, json={"enabled": False}))
        assert (await http.post(unsubscribe)).status_code == 200
        assert assert_ok(await alice.patch(path, json={"enabled": False}))["disabled_reason"] == "unsubscribed"
        assert (await http.post(first)).status_code == 404
        assert assert_ok(await alice.patch(path, json={"enabled": True}))["status"] == "unconfirmed"
        assert_ok(await alice.post(roll, json={"overlap_seconds": 0}))
        await box.deliver()
        assert box.subjects[-1].startswith("Confirm this address")
        assert (await http.post(first)).status_code == 404
        assert (await http.post(confirmation_of(box))).status_code == 200
        assert assert_ok(await alice.get(path))["status"] == "active"
    found = [event["event"] for event in assert_ok(await alice.get("/api/v1/audit"))["events"]]
    assert (found.count("alert.unsubscribed"), found.count("alert.confirmed")) == (3, 4)
    assert_ok(await alice.post(roll, json={"overlap_seconds": 0}))
    await box.deliver()
    assert (await http.get(box.messages[-1]["List-Unsubscribe"].strip("<>"))).status_code == 200
    assert_ok(await alice.patch(path, json={"enabled": False}))
    assert assert_ok(await alice.patch(path, json={"enabled": True}))["status"] == "active"


async def test_a_reader_who_unsubscribed_receives_no_earlier_events_before_confirming(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, box: Box, passing: Passing
) -> None:
    """The digest of the day waits when the reader unsubscribes, and the owner enables the address again."""
    made = await add(alice, address=TEAM, immediate=["key.created"], daily=["key.rolled"], digest_at="06:00")
    await box.deliver()
    assert (await http.post(confirmation_of(box))).status_code == 200
    assert_ok(await alice.post(KEYS, json={"name": "x", "business_id": 10, "assigned_location_id": "111"}), 201)
    assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={}))
    await box.deliver()
    assert (await http.post(box.messages[-1]["List-Unsubscribe"].strip("<>"))).status_code == 200
    before = len(box.messages)
    changed = assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"enabled": True}))
    assert changed["status"] == "unconfirmed"
    await passing(hours=4)
    assert box.subjects[before:] == ["Confirm this address to receive alerts about your sites"]


async def test_a_link_that_is_sent_again_is_valid_for_three_days(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, box: Box, clock: FrozenClock
) -> None:
    made = await add(alice, address=TEAM)
    clock.advance(days=4)
    assert_ok(await alice.post(f"{ALERTS}/{made['id']}/test"))
    await box.deliver()
    clock.advance(days=2)
    link = confirmation_of(box)
    assert (await http.get(link)).status_code == 200
    assert (await http.post(link)).status_code == 200
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}"))["status"] == "active"


@pytest.mark.parametrize("link", ["1-1-x", "1-1-1767323045678-x", "x", "1-1-", "99999999999999999999-1-x", "1-99-é"])
@ON_ONE_DATABASE
async def test_a_forged_link_to_confirm_or_unsubscribe_is_not_found(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, link: str
) -> None:
    await add(alice)
    for purpose in ("confirm", "unsubscribe"):
        assert (await http.get(f"/dashboard/alerts/{purpose}/{link}")).status_code == 404
        assert (await http.post(f"/dashboard/alerts/{purpose}/{link}")).status_code == 404


async def test_a_change_of_an_address_changes_only_the_fields_of_the_body(alice: httpx.AsyncClient) -> None:
    made = await add(alice, quiet_time={"from": "22:00", "to": "07:00"}, reminders=True)
    changed = assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"digest_at": "09:30"}))
    assert changed == made | {"digest_at": "09:30"}
    changed = assert_ok(await alice.patch(f"{ALERTS}/{made['id']}", json={"quiet_time": None}))
    assert changed == made | {"digest_at": "09:30", "quiet_time": None}
    assert_ok(await alice.delete(f"{ALERTS}/{made['id']}"))
    assert_error(await alice.get(f"{ALERTS}/{made['id']}"), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"address": "nobody"}, "address"),
        ({"address": "a@b.example.com\nBcc: c@d.example.com"}, "address"),
        ({"address": "a@b.example.com, c@d.example.com"}, "address"),
        ({"immediate": ["key.lost"]}, "immediate.0"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"digest_at": "25:00"}, "digest_at"),
        ({"quiet_time": {"from": "22:00"}}, "quiet_time.to"),
        ({"muted_locations": ["x y"]}, "muted_locations.0"),
        ({"reminder": True}, "reminder"),
    ],
)
@ON_ONE_DATABASE
async def test_the_response_names_the_invalid_field_of_an_address(
    alice: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    assert fields(assert_error(await alice.post(ALERTS, json=body), 400, "VALIDATION_ERROR")) == [field]


async def test_an_address_is_used_once_and_is_visible_only_to_its_owner(
    alice: httpx.AsyncClient, as_user: AsUser
) -> None:
    made = await add(alice)
    assert fields(assert_error(await alice.post(ALERTS, json={"address": ALICE.upper()}), 400, "VALIDATION_ERROR"))
    bob = await as_user(BOB)
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
        json: dict[str, Any] | None = {} if method == "PATCH" else None
        response = await bob.request(method, f"{ALERTS}/{made['id']}{path}", json=json)
        assert_error(response, 404, "NOT_FOUND")


async def test_the_outbox_of_development(alice: httpx.AsyncClient, http: httpx.AsyncClient, box: Box) -> None:
    made = await add(alice)
    assert_ok(await alice.post(f"{ALERTS}/{made['id']}/test"))
    await box.deliver()
    page = await http.get("/dashboard/mail")
    assert "This is a test of your alerts" in page.text
