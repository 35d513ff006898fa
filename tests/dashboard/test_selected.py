"""What is done to several sites: a preview, a result for each site, and nothing twice."""

import re

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.services import keys
from profilesvc.services.context import Services
from profilesvc.services.drafts import several
from support.api import BOB, Site, assert_ok
from support.browser.dashboard import Browser, Page, SignIn, as_agency

SELECTED = "/dashboard/sites/selected"
PHONE = {"phoneNumbers": {"primaryPhone": "+81 45-555-0199"}}


async def states(browser: Browser, client_ids: list[str]) -> list[str]:
    """Whether each key is active, on its page."""
    shown = []
    for client_id in client_ids:
        page = await browser.open(f"/dashboard/keys/{client_id}")
        shown.append("paused" if "You deactivated the key." in page.text else "active")
    return shown


async def test_all_sites_that_are_shown_are_selected(alice_there: Browser) -> None:
    await alice_there.open("/dashboard")
    assert " checked" not in alice_there.answer.text
    await alice_there.open(next(link for link in alice_there.page.links if "select=all" in link))
    assert alice_there.answer.text.count('name="site"') == alice_there.answer.text.count('form="act"')
    assert alice_there.answer.text.count(" checked>") == 5


async def test_keys_are_paused_and_resumed_after_a_preview(alice_there: Browser, as_service: AsService) -> None:
    sites = [await as_service(location) for location in ("locations/111", "locations/112")]
    ids = [site.key["client_id"] for site in sites]
    page = await alice_there.open(f"{SELECTED}?act=pause&site=111&site=112&site=113")
    assert "This is what would happen to 2 of 3 sites" in page.text
    assert "Nothing: it has no key." in page.text
    kept = alice_there.page, alice_there.answer
    assert await states(alice_there, ids) == ["active", "active"]
    alice_there.page, alice_there.answer = kept
    page = await send_all(alice_there, ["111", "112"])
    assert "2 done, none failed." in page.text
    assert await states(alice_there, ids) == ["paused", "paused"]
    await alice_there.open(f"{SELECTED}?act=resume&site=111")
    await send_all(alice_there, ["111"])
    assert await states(alice_there, ids) == ["active", "paused"]
    alice_there.page, alice_there.answer = kept
    page = await send_all(alice_there, ["111", "112"])  # the same form again, for example by a reload
    assert "2 done, none failed." in page.text
    assert await states(alice_there, ids) == ["active", "paused"]


async def send_all(browser: Browser, sites: list[str]) -> Page:
    form = browser.page.form("POST /selected")["fields"]
    assert form["site"] == sites
    return await browser.send("POST /selected", site=sites)


async def test_a_hold_of_the_operator_stays(alice_there: Browser, plugin: Site, services: Services) -> None:
    await keys.deactivate(services, plugin.key["client_id"], "security_concern")
    page = await alice_there.open(f"{SELECTED}?act=resume&site=111")
    assert "you cannot lift the reason" in page.text
    assert not [form for form in page.forms if form["action"].endswith("/selected")]


async def test_sites_are_synced_once_with_a_result_for_each(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, as_service: AsService
) -> None:
    other = await as_service("locations/112")
    await alice_there.open("/dashboard/sites/112")
    await alice_there.send("/switch")
    for site, number in ((plugin, "111"), (other, "112")):
        assert_ok(await site.http.post(f"/api/v1/sync/{number}", json=PHONE))
    phones = {"phoneNumbers": {"primaryPhone": "+81 45-555-0000", "additionalPhones": []}}
    changed = {"locations": {f"locations/{number}": phones for number in ("111", "112")}}
    assert (await emulator.put("/__emulator/state", json=changed)).is_success
    page = await alice_there.open(f"{SELECTED}?act=sync&site=111&site=112&site=113")
    assert "Nothing: " in page.text
    kept = alice_there.page, alice_there.answer
    page = await send_all(alice_there, ["111", "112"])
    assert page.text.count("Changed at the provider: Phone") == 2
    alice_there.page, alice_there.answer = kept
    page = await send_all(alice_there, ["111", "112"])
    assert page.text.count("Changed at the provider: Phone") == 2
    for site, number in ((plugin, "111"), (other, "112")):
        entries = assert_ok(await site.http.get(f"/api/v1/sync/history/{number}"))["history"]
        assert sum(entry["timestamp"].startswith("2026-01-02") for entry in entries) == 2  # the plugin's and this one


async def test_an_outage_stops_the_rest_which_can_be_tried_again(
    alice_there: Browser, services: Services, emulator: httpx.AsyncClient
) -> None:
    await as_agency(alice_there, services, 12)
    ids = re.findall(r'name="site" value="(\d+)"', alice_there.answer.text)
    page = await alice_there.open(f"{SELECTED}?act=sync&" + "&".join(f"site={one}" for one in ids))
    ready = page.form("POST /selected")["fields"]["site"]
    assert len(ready) == 12
    fault = {"kind": "status", "status": 503, "times": 1000}
    assert (await emulator.post("/__emulator/faults", json=fault)).is_success
    page = await send_all(alice_there, ready)
    assert f"0 done, 3 failed, {len(ready) - 3} not tried." in page.text
    assert page.form("GET /selected")["fields"]["site"] == ready


async def test_other_users_sites_and_unknown_ones_are_left_out(
    alice_there: Browser, signed_in: SignIn, plugin: Site
) -> None:
    bob = await signed_in(BOB)
    page = await bob.open(f"{SELECTED}?act=pause&site=111&site=evil&site=")
    assert "No site is selected." in page.text
    csrf = page.form("/sign-out")["fields"]["csrf"][0]
    answer = await bob.http.post(SELECTED, data={"csrf": csrf, "act": "pause", "once": "x1", "site": ["111"]})
    assert "0 done, none failed." in answer.text
    assert await states(alice_there, [plugin.key["client_id"]]) == ["active"]


@pytest.mark.parametrize("query", ["", "?act=delete&site=111", "?act=%00"])
@ON_ONE_DATABASE
async def test_an_unknown_act_is_an_error(alice_there: Browser, query: str) -> None:
    await alice_there.open(f"{SELECTED}{query}", 400)


async def test_a_form_without_its_number_does_nothing(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SELECTED}?act=pause&site=111")
    await alice_there.send("POST /selected", 400, once="")
    assert await states(alice_there, [plugin.key["client_id"]]) == ["active"]


async def test_only_so_many_sites_at_once(alice_there: Browser, services: Services) -> None:
    await as_agency(alice_there, services, several.MOST + 1)
    page = await alice_there.open("/dashboard?select=all")
    ids = [f"9{number:011d}" for number in range(1, 2000)]
    page = await alice_there.open(f"{SELECTED}?act=pause&" + "&".join(f"site={one}" for one in ids[:51]), 409)
    assert f"Select at most {several.MOST} sites." in page.text


async def test_an_update_is_posted_to_the_selected_sites(alice_there: Browser) -> None:
    await alice_there.open("/dashboard")
    path = alice_there.answer.text.partition('formaction="')[2].partition('"')[0]
    page = await alice_there.open(f"{path}?site=111&site=112")
    assert page.form(f"POST {path}")["fields"]["site"] == ["111", "112"]
