"""The first steps of an account, which are shown until they are taken."""

from conftest import AsService
from profilesvc.dashboard.sites import listing as site_list
from profilesvc.services.context import Services
from support.api import assert_ok
from support.browser.dashboard import Browser

STEPS = ("Connect your login", "Create a key for a site", "Paste the key into the plugin", "Switch sync on")


def steps_of(browser: Browser) -> list[bool]:
    """Whether each step is done; nothing if they are not shown."""
    parts = browser.page.text.partition("First steps")[2]
    places = [parts.find(step) for step in STEPS if step in parts]
    ends = [*places, len(parts)][1:]
    return ["(done)" in parts[start:end] for start, end in zip(places, ends, strict=True)]


async def test_the_steps_are_shown_until_they_are_taken(alice_there: Browser, as_service: AsService) -> None:
    await alice_there.open("/dashboard")
    assert steps_of(alice_there) == [True, False, False, True]
    site = await as_service()
    await alice_there.open("/dashboard")
    assert steps_of(alice_there) == [True, True, False, True]
    await alice_there.open("/dashboard?q=harbour")
    assert steps_of(alice_there) == []
    assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
    await alice_there.open("/dashboard")
    assert steps_of(alice_there) == []


async def test_a_poll_shows_a_step_that_was_taken(alice_there: Browser, as_service: AsService) -> None:
    await alice_there.open("/dashboard")
    poll = alice_there.answer.text.partition('data-poll="')[2].partition('"')[0].replace("&amp;", "&")
    assert (await alice_there.http.get(poll, headers={"X-Fragment": "1"})).status_code == 204
    await as_service()
    await alice_there.open(poll)
    assert steps_of(alice_there) == [True, True, False, True]


async def test_a_plan_without_sync_has_no_such_step(services: Services) -> None:
    plan = services.plans["starter"]
    assert site_list.first_steps([], plan) == dict.fromkeys(("connect", "key", "plugin", "sync"), False)
    assert "sync" not in site_list.first_steps([], plan.model_copy(update={"sync": False}))
