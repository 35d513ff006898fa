"""E-mail alerts in the dashboard: addresses, what they receive and when; grace and snooze of keys."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import ON_ONE_DATABASE, AsService, Change
from profilesvc.contract.alerts import DAILY, IMMEDIATE
from profilesvc.delivery.mail import MailSender
from profilesvc.delivery.smtp import Mailer
from profilesvc.delivery.worker import deliver_due
from profilesvc.domain.time import HOUR, FrozenClock, ShiftedClock
from profilesvc.services.context import Services
from profilesvc.storage import tables
from support.api import ALICE, BOB, assert_ok
from support.browser.dashboard import Browser, SignIn

ALERTS, API = "/dashboard/alerts", "/api/v1/alerts"
TEAM = "team@harbour.example.com"
Deliver = Callable[[], Awaitable[int]]


@pytest.fixture
def deliver(services: Services) -> Deliver:
    """Send what is due to files."""
    return lambda: deliver_due(services, {"email": MailSender(Mailer(services.settings))})


async def switched_on(browser: Browser) -> str:
    """The path of the address of the login, after the button was pressed."""
    await browser.open(ALERTS)
    page = await browser.send("/alerts")
    return next(link for link in page.links if re.fullmatch(rf"{ALERTS}/\d+", link))


async def settings_of(alice: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = assert_ok(await alice.get(API))["alerts"][0]
    return found


async def test_one_button_switches_alerts_on(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    page = await alice_there.open(ALERTS)
    assert '<a href="/dashboard/alerts" aria-current="page">Alerts</a>' in alice_there.answer.text
    assert f"Send alerts to {ALICE}" in page.text
    page = await alice_there.send("/alerts", time_zone="Europe/Berlin")
    assert f"Alerts to {ALICE} are on." in page.text
    assert "Send alerts to" not in page.text
    counts = len(IMMEDIATE), len(DAILY)
    told = "Sent at once: {} kinds of event. Sent daily at 08:00 (Europe/Berlin): {} kinds of event.".format(*counts)
    assert told in page.text
    entry = await settings_of(alice)
    assert (entry["address"], entry["status"], entry["time_zone"]) == (ALICE, "active", "Europe/Berlin")


async def test_an_unknown_time_zone_of_a_browser_is_replaced_by_utc(
    alice_there: Browser, alice: httpx.AsyncClient
) -> None:
    await alice_there.open(ALERTS)
    await alice_there.send("/alerts", time_zone="Mars/Olympus")
    assert (await settings_of(alice))["time_zone"] == "UTC"


@pytest.mark.in_process("runs the worker itself")
async def test_another_address_confirms_itself(
    alice_there: Browser, visitor: Browser, deliver: Deliver, clock: FrozenClock
) -> None:
    await alice_there.open(ALERTS)
    add = alice_there.page.forms[-1]
    assert "address" in add["fields"]
    alice_there.page.forms = [add]
    page = await alice_there.send("/alerts", address=TEAM)
    assert f"A confirmation was sent to {TEAM}." in page.text
    assert "Not confirmed" in page.text
    await deliver()
    page = await visitor.open("/dashboard/mail")
    assert f"To {TEAM}" in page.text
    await visitor.open(next(link for link in page.links if "/confirm/" in link))
    await visitor.http.post(str(visitor.answer.url))
    page = await alice_there.open(ALERTS)
    assert "Not confirmed" not in page.text
    assert f"{TEAM} Active" in page.text
    clock.advance(seconds=1)
    page = await alice_there.send("/test")
    assert f"A test message is on its way to {TEAM}." in page.text
    await deliver()
    page = await visitor.open("/dashboard/mail")
    assert page.text.index("This is a test of your alerts") < page.text.index("Confirm this address")
    await visitor.open(next(link for link in page.links if "/unsubscribe/" in link))
    await visitor.http.post(str(visitor.answer.url))
    page = await alice_there.open(ALERTS)
    assert "The reader stopped the alerts by the link in a message." in page.text
    assert "Send a new link" in page.text
    page = await alice_there.open(next(link for link in page.links if re.fullmatch(rf"{ALERTS}/\d+", link)))
    assert "send a new link, which the reader has to confirm" in page.text
    page = await alice_there.send("/switch")
    assert f"A confirmation was sent to {TEAM}." in page.text
    assert f"{TEAM} Not confirmed" in page.text


async def test_a_link_that_was_not_used_can_be_sent_again(alice_there: Browser, clock: FrozenClock) -> None:
    await alice_there.open(ALERTS)
    alice_there.page.forms = alice_there.page.forms[-1:]
    await alice_there.send("/alerts", address=TEAM)
    clock.advance(days=3, seconds=1)
    page = await alice_there.open(ALERTS)
    assert "The link is valid for three days." in page.text
    page = await alice_there.send("/test")
    assert f"The link was sent again to {TEAM}." in page.text


@pytest.mark.parametrize(("typed", "said"), [("no address", "Address:"), ("", "Address:"), (ALICE, "is used by")])
@ON_ONE_DATABASE
async def test_a_rejected_address_stays_in_its_form(alice_there: Browser, typed: str, said: str) -> None:
    await switched_on(alice_there)
    await alice_there.send("/alerts", 400, address=typed)
    assert said in alice_there.page.text
    assert alice_there.page.form("/alerts")["fields"]["address"] == [typed]
    assert 'id="address"' in alice_there.answer.text.partition('aria-invalid="true"')[0]


async def test_the_settings_are_shown_and_changed(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    path = await switched_on(alice_there)
    page = await alice_there.open(path)
    fields = page.form(path)["fields"]
    chosen = {name: values[0] for name, values in fields.items() if "." in name}
    assert {name for name, when in chosen.items() if when == "immediate"} == set(IMMEDIATE)
    assert {name for name, when in chosen.items() if when == "daily"} == set(DAILY)
    changes = {
        "connection.idle": "immediate",
        "connection.offline": "daily",
        "sync.succeeded": "never",
        "digest_at": "06:30",
        "time_zone": "Asia/Tokyo",
        "quiet_from": "22:00",
        "quiet_to": "07:00",
        "reminders": "on",
        "muted": ["locations/111", "locations/112"],
    }
    page = await alice_there.send(path, **changes)
    assert f"The settings of {ALICE} are saved." in page.text
    assert "Quiet from 22:00 to 07:00. Reminders every day. 2 sites are muted." in page.text
    entry = await settings_of(alice)
    assert "connection.idle" in entry["immediate"]
    assert "connection.offline" in entry["daily"]
    assert "sync.succeeded" not in entry["immediate"] + entry["daily"]
    assert (entry["digest_at"], entry["time_zone"], entry["reminders"]) == ("06:30", "Asia/Tokyo", True)
    assert entry["quiet_time"] == {"from": "22:00", "to": "07:00"}
    assert entry["muted_locations"] == ["locations/111", "locations/112"]
    before = entry
    await alice_there.open(path)
    await alice_there.send(path)  # the form of the page, unchanged
    assert await settings_of(alice) == before
    await alice_there.open(path)
    await alice_there.send(path, quiet_from="", quiet_to="", reminders=None, muted=None)
    entry = await settings_of(alice)
    assert (entry["quiet_time"], entry["reminders"], entry["muted_locations"]) == (None, False, [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quiet_from": "22:00"}, "Quiet until:"),
        ({"quiet_from": "late", "quiet_to": "07:00"}, "Quiet from: must be a time of day"),
        ({"digest_at": ""}, "Daily message at: must be a time of day"),
        ({"time_zone": "Mars/Olympus"}, "Time zone: must be a time zone"),
    ],
)
@ON_ONE_DATABASE
async def test_wrong_settings_stay_in_the_form(alice_there: Browser, changes: dict[str, str], said: str) -> None:
    path = await switched_on(alice_there)
    await alice_there.open(path)
    page = await alice_there.send(path, 400, **{"connection.idle": "daily", **changes})
    assert said in page.text
    assert 'aria-invalid="true"' in alice_there.answer.text
    fields = page.form(path)["fields"]
    assert fields["connection.idle"] == ["daily"]
    assert {name: fields[name][0] for name in changes} == changes


async def test_an_address_is_switched_off_and_deleted(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    path = await switched_on(alice_there)
    await alice_there.open(path)
    page = await alice_there.send("/switch")
    assert "You switched the alerts to this address off." in page.text
    assert (await settings_of(alice))["status"] == "disabled"
    await alice_there.send("/switch")  # on the list
    assert (await settings_of(alice))["status"] == "active"
    await alice_there.open(path)
    await alice_there.send("/switch")
    await alice_there.open(path)
    await alice_there.send("/switch")
    assert (await settings_of(alice))["status"] == "active"
    await alice_there.open(path)
    page = await alice_there.send("/delete", 400)
    assert "tick the box to confirm" in page.text
    assert (await settings_of(alice))["status"] == "active"
    page = await alice_there.send("/delete", sure="on")
    assert f"Send alerts to {ALICE}" in page.text
    assert assert_ok(await alice.get(API)) == {"alerts": []}


@pytest.mark.in_process("changes rows itself")
async def test_a_failing_address_shows_the_error(alice_there: Browser, services: Services, clock: FrozenClock) -> None:
    await switched_on(alice_there)
    await alice_there.send("/test")
    attempts = f'[{{"at":{clock.now()},"status":null,"error":"550 <b>no such mailbox</b>"}}]'
    async with services.storage.write() as session:
        await session.execute(update(tables.channels).values(failing_since=clock.now()))
        await session.execute(update(tables.deliveries).values(attempts=attempts))
    page = await alice_there.open(ALERTS)
    assert "Failing" in page.text
    assert "The error: 550 <b>no such mailbox</b>." in page.text
    async with services.storage.write() as session:
        values = {"disabled_at": clock.now(), "disabled_reason": "rejected"}
        await session.execute(update(tables.channels).values(**values))
    page = await alice_there.open(ALERTS)
    assert "The mail server rejected the address. The error: 550" in page.text


async def test_a_key_has_a_grace_and_can_be_snoozed(
    alice_there: Browser, alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    client_id = (await as_service()).key["client_id"]
    path = f"/api/v1/developer/credentials/{client_id}/alerts"
    await alice_there.open(f"/dashboard/keys/{client_id}")
    page = await alice_there.send("/grace", grace="1.5")
    assert page.form("/grace")["fields"]["grace"] == ["1.5"]
    assert assert_ok(await alice.get(path))["grace_seconds"] == 5400
    for wrong in ("721", "-1", "nan", "long", ""):
        page = await alice_there.send("/grace", 400, grace=wrong)
        assert "Grace: must be a number of hours from 0 to 720" in page.text
        assert 'href="#alerts-grace"' in alice_there.answer.text
    page = await alice_there.send("/snooze", days="7")
    assert "Alerts about this site are snoozed until 2026-01-09 03:04 UTC" in page.text
    assert assert_ok(await alice.get(path))["grace_seconds"] == 5400
    page = await alice_there.send("/snooze")
    assert "are snoozed" not in page.text
    assert assert_ok(await alice.get(path))["snoozed_until"] is None
    page = await alice_there.send("/snooze", 400, days="999999999999")
    assert "Snooze: select one of the times" in page.text


async def test_another_users_alerts_are_neither_shown_nor_changed(
    alice_there: Browser, signed_in: SignIn, alice: httpx.AsyncClient, as_service: AsService
) -> None:
    path, key = await switched_on(alice_there), (await as_service()).key["client_id"]
    before = await settings_of(alice)
    bob = await signed_in(BOB)
    assert ALICE not in (await bob.open(ALERTS)).text
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    await bob.open(path, 404)
    form = {"csrf": csrf, "sure": "on", "enabled": "off", "grace": "1", "days": "1", "digest_at": "01:00"}
    actions = [path, *(f"{path}/{name}" for name in ("test", "switch", "delete"))]
    for action in (*actions, f"/dashboard/keys/{key}/grace", f"/dashboard/keys/{key}/snooze"):
        answer = await bob.http.post(action, data=form)
        assert answer.status_code == 404, action
        assert ALICE not in answer.text
    assert await settings_of(alice) == before


async def test_a_form_of_another_page_is_rejected(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    path = await switched_on(alice_there)
    csrf = alice_there.page.form("/sign-out")["fields"]["csrf"][0]
    before = await settings_of(alice)
    form = {"sure": "on", "enabled": "off", "address": TEAM}
    for action in (ALERTS, path, *(f"{path}/{name}" for name in ("test", "switch", "delete"))):
        assert (await alice_there.http.post(action, data=form)).status_code == 403, action
        evil = {"Origin": "https://evil.example"}
        assert (await alice_there.http.post(action, data=form | {"csrf": csrf}, headers=evil)).status_code == 403
    assert assert_ok(await alice.get(API)) == {"alerts": [before]}


async def test_a_visitor_signs_in_first(visitor: Browser) -> None:
    for path in (ALERTS, f"{ALERTS}/1"):
        await visitor.open(path)
        assert visitor.answer.url.path == "/dashboard/sign-in"


async def test_a_service_that_sends_no_mail_says_so(alice_there: Browser, services: Services, change: Change) -> None:
    change(settings=services.settings.model_copy(update={"environment": "production"}))
    page = await alice_there.open(ALERTS)
    assert "This service sends no e-mail. Ask its operator" in page.text
    assert [form["action"] for form in page.forms] == ["/dashboard/sign-out"]
    assert "/dashboard/mail" not in page.links


@pytest.mark.in_process("gives the process a clock of its own")
async def test_only_the_clock_of_a_demo_is_moved_by_the_page_of_mail(
    alice_there: Browser, services: Services, change: Change
) -> None:
    page = await alice_there.open("/dashboard/mail")
    assert [form["action"] for form in page.forms] == ["/dashboard/sign-out"]
    csrf = page.form("/sign-out")["fields"]["csrf"][0]
    answer = await alice_there.http.post("/dashboard/mail/clock", data={"csrf": csrf})
    assert answer.status_code == 404
    clock = ShiftedClock()
    clock.advance(milliseconds=services.clock.now() - clock.now())
    change(clock=clock)
    await alice_there.open("/dashboard/mail")
    before = clock.now()
    await alice_there.send("/clock")
    assert 25 * HOUR <= clock.now() - before < 26 * HOUR
