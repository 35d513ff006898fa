"""Selects never fall back silently, and the service refuses what a form did not offer."""

import re

import httpx
import pytest
from sqlalchemy import update

from conftest import ON_ONE_DATABASE
from profilesvc.services.context import Services
from profilesvc.storage import tables
from support.api import assert_ok
from support.browser.dashboard import Browser

CREDENTIALS = "/api/v1/developer/credentials"
pytestmark = ON_ONE_DATABASE


async def beyond(browser: Browser) -> tuple[str, str]:
    """A location that is beyond the plan, and one that is not."""
    await browser.open("/dashboard/keys")
    options = re.findall(r'<option value="(locations/\d+)"( disabled)?', browser.answer.text)
    blocked = next(name for name, is_disabled in options if is_disabled)
    return blocked, next(name for name, is_disabled in options if not is_disabled)


@pytest.mark.in_process("changes the plan")
@pytest.mark.parametrize("wanted", ["beyond", "999", "x", "111"])
async def test_a_key_is_not_made_for_another_location_than_the_wanted_one(
    alice_there: Browser, alice: httpx.AsyncClient, services: Services, wanted: str
) -> None:
    if wanted in ("beyond", "111"):
        await use_plan(services, "growth")
    blocked, free = await beyond(alice_there) if wanted == "beyond" else (f"locations/{wanted}", "")
    page = await alice_there.open(f"/dashboard/keys?location={blocked.removeprefix('locations/')}")
    form = page.form("POST /keys")["fields"]
    if wanted == "111":  # within the plan
        assert form["location"] == ["locations/111"]
        return
    assert form["location"] == [""]
    assert "is not possible" in page.text
    await alice_there.send("POST /keys", 400, name="Plugin")
    page = await alice_there.send("POST /keys", 403 if free else 404, name="Plugin", location=blocked)
    assert page.form("POST /keys")["fields"]["location"] == [""]  # not another one after the refusal either
    assert assert_ok(await alice.get(CREDENTIALS))["credentials"] == []


async def use_plan(services: Services, plan: str) -> None:
    async with services.storage.write() as session:
        await session.execute(update(tables.users).where(tables.users.c.id == 1).values(plan=plan))


async def test_an_unknown_business_is_not_replaced_by_the_first(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/keys")
    page = await alice_there.send("POST /keys", 400, name="", business_id="99")
    found = page.form("POST /keys")["fields"]
    assert found.get("business_id", [""]) == [""]


@pytest.mark.parametrize("value", ["sometimes", "", "IMMEDIATE"])
async def test_an_unknown_time_of_an_alert_is_refused(alice_there: Browser, value: str) -> None:
    await alice_there.open("/dashboard/alerts")
    await alice_there.send("POST /alerts")
    link = next(link for link in alice_there.page.links if re.fullmatch(r"/dashboard/alerts/\d+", link))
    await alice_there.open(link)
    page = await alice_there.send(f"POST {link}", 400, **{"key.created": value})
    assert page.form(f"POST {link}")["fields"]["key.created"] == [value or "immediate"] or not value


async def test_a_stored_value_that_is_not_offered_stays_selected(alice_there: Browser, services: Services) -> None:
    """Otherwise a form would change it although its user has changed nothing."""
    await alice_there.open("/dashboard/webhooks")
    page = await alice_there.send("POST /webhooks", 400, url="https://hooks.example/x", format="fax")
    assert page.form("POST /webhooks")["fields"]["format"] == ["fax"]
    page = await alice_there.open("/dashboard/sites/111/posts?action=DANCE")
    assert page.form("POST /posts")["fields"]["action"] == ["DANCE"]
    page = await alice_there.send("POST /posts", 400, summary="x", action_url="https://harbour.example/")
    assert page.form("POST /posts")["fields"]["action"] == ["DANCE"]


@pytest.mark.parametrize("intent", ["", "draft", "schedule"])
async def test_a_kind_of_post_that_is_not_offered_is_refused(alice_there: Browser, intent: str) -> None:
    await alice_there.open("/dashboard/sites/111/posts")
    changes = {"intent": intent} if intent else {}
    page = await alice_there.send("POST /posts", 400, kind="DANCE", summary="x", **changes)
    assert "Kind of post" in page.text
    assert (await alice_there.open("/dashboard/drafts")).text.count("Dance") == 0


async def test_hours_of_a_kind_that_is_not_offered_are_refused(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/sites/111/profile")
    page = await alice_there.send("POST /profile", 400, intent="hours", hours_kind="DANCE")
    assert "moreHours-DANCE" not in alice_there.answer.text
    assert "is not offered" in page.text
