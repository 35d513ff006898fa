"""The events of a site, in words, on its page and on pages of their own."""

from typing import Any, get_args

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.contract.events import EVENT_TYPES, EventType, PublishedEvent, QuotaWarning
from profilesvc.dashboard.words import events as event_words
from profilesvc.domain.time import FrozenClock
from profilesvc.operations.notify import sweep
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.storage.events import NewEvent
from support.api import Site, assert_ok
from support.browser.dashboard import Browser

SITE = "/dashboard/sites/111"
HOSTILE = "<script>alert(1)</script>"


async def publish(services: Services, *new: NewEvent) -> None:
    async with services.storage.write() as session:
        events.publish(services, session, 1, *new)


def of_another_site(count: int) -> list[NewEvent]:
    data = QuotaWarning(used=8, limit=10, month="2026-01")
    return [events.new("quota.warning", data, location_name="locations/112") for _ in range(count)]


def switched(count: int) -> list[NewEvent]:
    return [
        NewEvent("location.sync_switched", '{"location_id":"locations/111","sync_enabled":true}', None, "locations/111")
        for _ in range(count)
    ]


async def test_a_new_key_and_switched_sync_are_events(
    alice_there: Browser, alice: httpx.AsyncClient, as_service: AsService
) -> None:
    assert "No events yet." in (await alice_there.open("/dashboard/sites/112")).text
    site = await as_service(name=HOSTILE)
    await alice_there.open(SITE)
    await alice_there.send("/switch")
    for path in (SITE, f"{SITE}/events"):
        page = await alice_there.open(path)
        assert "Sync was switched off none" in page.text
        assert f"The key “{HOSTILE}” was created {HOSTILE}" in page.text
        assert page.text.index("Sync was switched off") < page.text.index("was created")
        assert f"/dashboard/keys/{site.key['client_id']}" in page.links
        assert HOSTILE not in alice_there.answer.text
    assert "was created" not in (await alice_there.open("/dashboard/sites/112")).text


@pytest.mark.in_process("runs the sweep itself")
async def test_a_silent_site_is_an_event(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await sweep.run_once(services)
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    for _ in range(26):
        clock.advance(hours=1)
        await sweep.catch_up(services)
    page = await alice_there.open(SITE)
    assert "The site is offline: no heartbeat since 2026-01-02 03:04 UTC" in page.text
    assert "The site has not reported for 2 hours" in page.text


async def test_many_events_have_pages(alice_there: Browser, services: Services) -> None:
    await publish(services, *switched(120))
    page = await alice_there.open(SITE)
    assert page.text.count("Sync was switched on") == 10
    assert f"{SITE}/events" in page.links
    assert "All events" in page.text
    seen = []
    await alice_there.open(f"{SITE}/events")
    while True:
        seen.append(alice_there.page.text.count("Sync was switched on"))
        older = [link for link in alice_there.page.links if "before=" in link]
        if not older:
            break
        await alice_there.open(older[0])
    assert seen == [50, 50, 20]


@pytest.mark.in_process("makes the reading of the process shorter")
async def test_events_below_many_of_other_sites_are_found(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page reads a limited part of the owner's log."""
    monkeypatch.setattr(events, "_READ", 100)
    await publish(services, *switched(1), *of_another_site(250))
    page = await alice_there.open(SITE)
    assert "Sync was switched on" not in page.text
    assert "All events" in page.text
    await alice_there.open(f"{SITE}/events")
    for _ in range(2):
        assert "No events in this part of the log." in alice_there.page.text
        await alice_there.open(next(link for link in alice_there.page.links if "before=" in link))
    assert alice_there.page.text.count("Sync was switched on") == 1
    assert not any("before=" in link for link in alice_there.page.links)


@pytest.mark.parametrize("before", ["0", "-1", "9223372036854775808"])
@ON_ONE_DATABASE
async def test_a_position_that_is_not_of_a_link_is_rejected(alice_there: Browser, before: str) -> None:
    await alice_there.open(f"{SITE}/events?before={before}", 400)


DATA: dict[str, Any] = {
    "client_id": "svcid_1_1_x",
    "location_id": "locations/111",
    "connection": {"last_heartbeat_at": None},
    "key": {"name": "Site", "client_id": "svcid_1_1_x", "expires_at": "2026-02-01T00:00:00.000Z"},
    "verification_state": "NOT_VERIFIED",
    "sync_enabled": False,
    "differences": [{"field": "phoneNumbers.primaryPhone"}, *({"field": f"field{number}"} for number in range(6))],
    "fields_updated": ["websiteUri"],
    "error": "RATE_LIMITED",
    "review": {"starRating": "TWO"},
    "used": 8,
    "limit": 10,
    "post": {"summary": "Fresh\nbeans " + "x" * 100},
}


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_each_type_has_a_sentence_and_a_choice(kind: EventType) -> None:
    chosen = [name for group in event_words.GROUPS.values() for name in group]
    assert sorted(chosen) == sorted(get_args(EventType))
    for data in (DATA, {}):
        values = {"id": "evt_1_1", "type": kind, "created_at": "2026-01-02T03:04:05.678Z", "owner": {"id": 1}}
        sentence = event_words.happening(PublishedEvent.model_validate({**values, "data": data}))
        assert sentence[0].isupper() or kind == "quota.warning"
        assert "{" not in sentence
        assert len(sentence) < 200


def test_a_sentence_has_what_changed() -> None:
    def told(kind: EventType) -> str:
        values = {"id": "evt_1_1", "type": kind, "created_at": "2026-01-02T03:04:05.678Z", "owner": {"id": 1}}
        return event_words.happening(PublishedEvent.model_validate({**values, "data": DATA}))

    assert told("profile.drifted").endswith(
        "differs from the last sync: Phone, Field0, Field1, Field2, Field3 and 2 more"
    )
    assert told("sync.succeeded") == "A sync succeeded: Website"
    assert told("review.created") == "There is a new review: 2 stars"
    assert told("sync.failed") == "A sync failed: RATE_LIMITED"
    assert told("location.verification_changed") == "The verification at the provider changed: not verified"
    assert told("key.expiring") == "The key “Site” expires on 2026-02-01"
    assert told("post.rejected").startswith("A post was rejected: “Fresh beans xxx")
