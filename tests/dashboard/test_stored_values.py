"""Stored values that this version does not accept: they are shown, do not act, and break no list and no page."""

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import AsService
from profilesvc.contract.alerts import DAILY, IMMEDIATE, AlertSettings
from profilesvc.contract.stored import acting
from profilesvc.contract.zones import zone_names, zone_of
from profilesvc.delivery.mail import MailSender
from profilesvc.delivery.smtp import Mailer
from profilesvc.delivery.worker import deliver_due
from profilesvc.services.context import Services
from profilesvc.storage import tables
from support.api import assert_error, assert_ok, fields
from support.browser.dashboard import Browser

pytestmark = pytest.mark.in_process("changes rows that no request can change")
Columns = tuple[Any, dict[str, Any]]
NEWER = {"immediate": ["connection.offline", "moon.full"], "theme": "dark", "time_zone": "localtime"}
WRONG: dict[str, Columns] = {
    "a zone of one host": (tables.channels, {"settings": json.dumps({"time_zone": "localtime"})}),
    "settings of a newer version": (tables.channels, {"settings": json.dumps(NEWER)}),
    "a quiet time without its end": (tables.channels, {"settings": json.dumps({"quiet_time": {"from": "22:00"}})}),
    "a time of day of another form": (tables.channels, {"settings": json.dumps({"digest_at": "8 am"})}),
    "a list that is none": (tables.channels, {"settings": json.dumps({"daily": "post.created", "reminders": "often"})}),
    "a muted location of another form": (tables.channels, {"settings": json.dumps({"muted_locations": ["111"]})}),
    "settings that are no object": (tables.channels, {"settings": "null"}),
    "settings that are cut": (tables.channels, {"settings": '{"time_zone": "Eur'}),
    "types of a newer version": (tables.channels, {"types": ",moon.full,connection.offline,"}),
    "a reason of a newer version": (tables.channels, {"disabled_reason": "bounced", "disabled_at": 1}),
    "a type of a newer event": (tables.events, {"type": "moon.full"}),
    "data of a newer event": (tables.events, {"data": "{}"}),
    "an audit event of a newer version": (tables.audit, {"event": "moon.full", "actor": "robot:1"}),
    "details that are no object": (tables.audit, {"details": "[]"}),
    "attempts of a newer version": (tables.deliveries, {"attempts": '[{"at": 1, "moon": 1}]'}),
    "attempts that are none": (tables.deliveries, {"attempts": "null"}),
    "a draft in another zone": (tables.drafts, {"zone": "localtime"}),
    "a draft of an unknown kind": (tables.drafts, {"document": '{"topicType": "MOON", "summary": 5}', "fields": "{}"}),
    "scopes that are none": (tables.provider_connections, {"scopes": "", "last_error": "moon"}),
    "a profile of another shape": (tables.locations, {"profile": '{"title": 5, "regularHours": []}'}),
    "a post of another shape": (tables.posts, {"document": '{"name": "x", "topicType": "MOON", "state": "MOON"}'}),
    "a template of only spaces": (tables.reply_templates, {"text": " ", "name": ""}),
}
LISTS = (
    *("/api/v1/alerts", "/api/v1/webhooks", "/api/v1/webhooks/{webhook}/deliveries", "/api/v1/events", "/api/v1/audit"),
    *("/api/v1/provider-connections", "/api/v1/developer/credentials", "/api/v1/reviews?locationId=locations/111"),
    *("/api/v1/external-business/locations", "/api/v1/posts?locationId=locations/111"),
    *("/dashboard", "/dashboard/alerts", "/dashboard/alerts/{alert}", "/dashboard/webhooks", "/dashboard/audit"),
    *("/dashboard/webhooks/{webhook}", "/dashboard/drafts", "/dashboard/calendar", "/dashboard/sites/111/calendar"),
    *("/dashboard/sites/111/events", "/dashboard/sites/111/posts", "/dashboard/templates", "/dashboard/keys"),
    *("/dashboard/connections", "/dashboard/account", "/dashboard/sites/111/profile", "/dashboard/sites/111"),
)


async def filled(alice: httpx.AsyncClient, alice_there: Browser) -> dict[str, str]:
    """Make a row of each kind that the lists show, and return the ids in their paths."""
    alert = assert_ok(await alice.post("/api/v1/alerts", json={}), 201)["id"]
    webhook = assert_ok(await alice.post("/api/v1/webhooks", json={"url": "https://hooks.example.com/x"}), 201)["id"]
    assert_ok(await alice.post(f"/api/v1/webhooks/{webhook}/test"))
    await alice_there.open("/dashboard/sites/111/posts")
    await alice_there.send("/posts", intent="draft", summary="Autumn")
    await alice_there.open("/dashboard/templates")
    await alice_there.send("/templates", name="Thanks", comment="Thank you")
    return {"alert": str(alert), "webhook": str(webhook)}


@pytest.mark.parametrize("name", WRONG)
async def test_a_value_that_no_longer_validates_breaks_no_list(
    alice: httpx.AsyncClient, as_service: AsService, alice_there: Browser, services: Services, name: str
) -> None:
    await as_service("locations/111")
    ids = await filled(alice, alice_there)
    table, values = WRONG[name]
    async with services.storage.write() as session:
        changed = await session.execute(update(table).values(**values))
        assert changed.rowcount or table in (tables.provider_connections, tables.posts)  # type: ignore[attr-defined]
    broken = {path: (await alice_there.http.get(path.format(**ids))).status_code for path in LISTS if "/dash" in path}
    broken |= {path: (await alice.get(path.format(**ids))).status_code for path in LISTS if "/api" in path}
    assert {path: status for path, status in broken.items() if status != 200} == {}


async def test_a_stored_zone_is_shown_and_utc_acts_and_the_mail_goes_out(
    alice: httpx.AsyncClient, services: Services
) -> None:
    alert = assert_ok(await alice.post("/api/v1/alerts", json={"immediate": []}), 201)
    async with services.storage.write() as session:
        await session.execute(update(tables.channels).values(settings=json.dumps(NEWER)))
    shown = assert_ok(await alice.get("/api/v1/alerts"))["alerts"][0]
    assert (shown["time_zone"], shown["immediate"]) == ("localtime", NEWER["immediate"])
    assert_ok(await alice.post(f"/api/v1/alerts/{alert['id']}/test"))
    assert await deliver_due(services, {"email": MailSender(Mailer(services.settings))}) == 1
    assert len([*(services.settings.data_dir / "mail").glob("*.eml")]) == 1
    changed = assert_ok(await alice.patch(f"/api/v1/alerts/{alert['id']}", json={"reminders": True}))
    assert (changed["time_zone"], changed["reminders"]) == ("localtime", True)
    mended = assert_ok(await alice.patch(f"/api/v1/alerts/{alert['id']}", json={"time_zone": "Asia/Tokyo"}))
    assert mended["time_zone"] == "Asia/Tokyo"


def test_only_valid_values_act() -> None:
    settings = acting(AlertSettings, NEWER)
    assert (settings.time_zone, settings.immediate) == ("UTC", ["connection.offline"])
    assert acting(AlertSettings, {"quiet_time": {"from": "25:00", "to": 5}}).quiet_time is None
    assert acting(AlertSettings, {"immediate": 5, "daily": ["x", "y"]}).immediate == list(IMMEDIATE)
    assert acting(AlertSettings, {"daily": ["moon", "post.created", "x"]}).daily == ["post.created"]
    assert acting(AlertSettings, {}).daily == list(DAILY)


PSEUDO = (
    *("localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "leapseconds", "tzdata.zi"),
    *("zone.tab", "iso3166.tab", "", ".", "..", "Europe", "Europe/", "/Europe/Berlin", "europe/berlin", "UTC+2"),
    *("Europe/Berlin ", "Europe/Berlin\n", "../localtime", "posix", "right", "+VERSION", "SECURITY", "GMT+1"),
)


@pytest.mark.parametrize("name", PSEUDO)
async def test_a_pseudo_zone_is_refused_and_acts_as_utc(alice: httpx.AsyncClient, name: str) -> None:
    assert name not in zone_names()
    assert zone_of(name).key == "UTC"
    response = await alice.post("/api/v1/alerts", json={"time_zone": name})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["time_zone"]


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "US/Eastern", "Etc/GMT+1", "GB", "EST5EDT"])
def test_a_zone_of_the_iana_database_is_accepted(name: str) -> None:
    assert name in zone_names()
    assert zone_of(name).key == name
