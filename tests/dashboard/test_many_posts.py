"""One post for several sites, and the calendar of a site, without a script."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import publishing
from profilesvc.services.context import Services
from profilesvc.storage import idempotency
from support.api import BOB, Site, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.pictures import png
from support.provider.drive import calls, fail, forget_calls, heal, posts_of

NEW, SITE = "/dashboard/posts/new", "/dashboard/sites/111"
OFFER = {
    "kind": "OFFER",
    "title": "Ten percent",
    "start_date": "2026-05-01",
    "start_time": "08:00",
    "end_date": "2026-05-02",
    "end_time": "18:00",
    "coupon": "TEN",
}


async def newest(plugin: Site, place: str = "111") -> dict[str, object]:
    post: dict[str, object] = assert_ok(await plugin.http.get(f"/api/v1/posts?locationId={place}"))["localPosts"][0]
    return post


async def test_an_offer_with_a_photo_is_sent_to_each_chosen_site_once(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    page = await alice_there.open(f"{NEW}?site=111&site=112")
    assert page.form("/posts/new")["fields"]["site"] == ["111", "112"]
    fields = {**page.form("/posts/new")["fields"], **OFFER, "intent": "preview"}
    answer = await alice_there.http.post(NEW, data=fields, files={"photo_file": ("x.png", png())})
    page = alice_there._look(answer, 200)
    assert "2026-05-01 08:00 to 2026-05-02 18:00" in page.text
    assert "Post to 2 sites" in page.text
    preview = page
    await forget_calls(emulator)
    page = await alice_there.send("/posts/new", intent="send")
    assert "2 of 2 posts were sent" in page.text
    alice_there.page = preview  # Back, and the same button again
    assert "2 of 2 posts were sent" in (await alice_there.send("/posts/new", intent="send")).text
    assert len([call for call in await calls(emulator, "POST") if call["path"].endswith("/localPosts")]) == 2
    post = await newest(plugin)
    assert post["offer"] == {"couponCode": "TEN"}
    assert "/dashboard/photos/" in str(post["media"])


async def test_sites_are_found_and_what_was_typed_stays(alice_there: Browser) -> None:
    await alice_there.open(f"{NEW}?site=111")
    page = await alice_there.send("/posts/new", intent="search", find="xyz", summary="Typed")
    assert "No other site has this in its name." in page.text
    fields = page.form("/posts/new")["fields"]
    assert (fields["summary"], fields["site"]) == (["Typed"], ["111"])
    page = await alice_there.send("/posts/new", intent="preview", summary="Typed")
    page = await alice_there.send("/posts/new", intent="edit")
    assert page.form("/posts/new")["fields"]["summary"] == ["Typed"]


async def test_the_enter_key_searches_a_typed_name_and_else_shows_the_preview(alice_there: Browser) -> None:
    await alice_there.open(f"{NEW}?site=111")
    page = await alice_there.send("/posts/new", intent="enter", find="112", summary="Typed")
    assert page.form("/posts/new")["fields"]["find"] == ["112"]
    page = await alice_there.send("/posts/new", intent="enter", find="", summary="Typed")
    assert "Post to 1 site" in page.text


async def test_an_offer_without_times_is_valid_all_day(alice_there: Browser) -> None:
    await alice_there.open(f"{NEW}?site=111")
    days = {**OFFER, "start_time": "", "end_time": "", "intent": "preview"}
    page = await alice_there.send("/posts/new", **days)
    assert "2026-05-01 00:00 to 2026-05-02 23:59" in page.text
    await alice_there.open(f"{NEW}?site=111")
    page = await alice_there.send("/posts/new", 400, **days | {"kind": "EVENT"})  # it has hours
    assert "Start time: is required" in page.text


async def test_all_problems_are_shown_at_once(alice_there: Browser) -> None:
    await alice_there.open(NEW)
    page = await alice_there.send("/posts/new", 400, kind="EVENT", site=None, intent="send", once="x")
    assert 'href="#site"' in alice_there.answer.text
    assert 'href="#title"' in alice_there.answer.text
    assert 'id="site"' in alice_there.answer.text
    assert page.form("/posts/new")["fields"]["kind"] == ["EVENT"]


async def test_each_site_has_its_own_result(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(f"{NEW}?site=111&site=112")
    await alice_there.send("/posts/new", intent="preview", summary="Two")
    match = {"method": "POST", "path": ".*/locations/112/localPosts"}
    await fail(emulator, status=400, match=match)
    page = await alice_there.send("/posts/new", intent="send")
    await heal(emulator)
    assert "1 of 2 posts were sent" in page.text
    assert "Failed:" in page.text
    page = await alice_there.send("/posts/new", intent="edit")
    assert page.form("/posts/new")["fields"]["summary"] == ["Two"]


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_post_that_may_exist_is_not_sent_twice(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, is_down: bool
) -> None:
    """Also if the provider is not available when it is sent again."""
    await alice_there.open(f"{NEW}?site=111&site=112")
    await alice_there.send("/posts/new", intent="preview", summary="Only once")
    match = {"method": "POST", "path": ".*/locations/111/localPosts"}
    await fail(emulator, "disconnect", after=True, times=1, match=match)
    page = await alice_there.send("/posts/new", intent="send")
    assert "1 of 2 posts were sent" in page.text
    assert "the post may exist" in page.text
    assert "Change the post for the other" not in page.text
    if is_down:
        await fail(emulator, status=503)
        page = await alice_there.send("/posts/new", intent="send")
        assert "Change the post for the other" not in page.text
        await heal(emulator)
    page = await alice_there.send("/posts/new", intent="send")
    assert "1 of 1 posts were sent" in page.text
    assert await posts_of(emulator, "Only once") == 2


async def test_another_users_site_cannot_be_chosen(signed_in: SignIn, plugin: Site) -> None:
    before = await newest(plugin)
    bob = await signed_in(BOB)
    page = await bob.open(f"{NEW}?site=111")
    assert "Harbour" not in page.text
    fields = {**page.form("/posts/new")["fields"], "site": "111", "summary": "x", "intent": "send", "once": "x"}
    answer = await bob.http.post(NEW, data=fields)
    assert answer.status_code == 400
    assert await newest(plugin) == before
    await bob.open(f"{SITE}/calendar", 404)


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-01-31"), ("Asia/Tokyo", "2026-02-01"), ("x", "2026-01-31")])
async def test_the_calendar_has_the_days_of_a_zone(
    alice_there: Browser, clock: FrozenClock, zone: str, day: str
) -> None:
    await alice_there.open(f"{SITE}/posts")
    later = {"publish_date": "2026-01-31", "publish_time": "23:30", "zone": "UTC", "intent": "schedule"}
    await alice_there.send("/posts", summary="Near midnight", **later)
    page = await alice_there.open(f"{SITE}/calendar?month={day[:7]}&zone={zone}")
    cell = alice_there.answer.text.partition(f'datetime="{day}"')[2].partition("</td>")[0]
    assert "Near midnight" in cell
    assert "Scheduled" in cell
    assert "Month after" in page.text
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", summary="Now")
    assert "Now" in (await alice_there.open(f"{SITE}/calendar")).text


@pytest.mark.parametrize("month", ["2026-13", "x", "99999-01", "0001-01"])
@ON_ONE_DATABASE
async def test_a_wrong_month_is_an_error_of_ours(alice_there: Browser, month: str) -> None:
    page = await alice_there.open(f"{SITE}/calendar?month={month}", 400)
    assert "must be a month" in page.text


LATER = {"publish_date": "2026-01-20", "publish_time": "14:00", "zone": "Asia/Tokyo", "kind": "STANDARD"}


async def test_a_post_is_scheduled_for_several_sites_once(
    alice_there: Browser, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(f"{NEW}?site=111&site=112")
    page = await alice_there.send("/posts/new", intent="preview", summary="Later", **LATER)
    assert "Schedule for 2 sites" in page.text
    preview = page
    page = await alice_there.send("/posts/new", intent="schedule")
    assert "2 of 2 posts were scheduled." in page.text
    alice_there.page = preview  # Back, and the same button again
    await alice_there.send("/posts/new", intent="schedule")
    page = await alice_there.open("/dashboard/drafts")
    assert page.text.count("Later") == 2
    assert "1 to 2 of 2" in page.text
    page = await alice_there.open("/dashboard/drafts?q=station")
    assert "1 to 1 of 1" in page.text
    clock.advance(days=19)
    await publishing.run_once(services)
    assert await posts_of(emulator, "Later") == 2


@pytest.mark.in_process("fails a commit")
async def test_a_draft_is_stored_once_although_the_database_fails(
    alice_there: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await alice_there.open(f"{NEW}?site=111")
    before, finish = alice_there.page, idempotency.finish

    async def fail_once(*args: Any) -> bool:
        monkeypatch.setattr(idempotency, "finish", finish)
        raise ServiceError(SERVICE_UNAVAILABLE)

    monkeypatch.setattr(idempotency, "finish", fail_once)
    await alice_there.send("/posts/new", intent="draft", summary="Half")
    alice_there.page = before
    await alice_there.send("/posts/new", intent="draft", summary="Half")
    assert "1 to 1 of 1" in (await alice_there.open("/dashboard/drafts")).text


async def test_a_draft_of_a_post_for_several_sites_may_be_unfinished(alice_there: Browser) -> None:
    await alice_there.open(f"{NEW}?site=111&site=112")
    page = await alice_there.send("/posts/new", intent="draft", kind="OFFER", title="Half")
    assert "2 of 2 posts were stored as drafts." in page.text
    page = await alice_there.open("/dashboard/drafts?state=draft")
    await alice_there.open(next(link for link in page.links if "draft=" in link))
    fields = alice_there.page.form("/posts")["fields"]
    assert (fields["title"], fields["kind"]) == (["Half"], ["OFFER"])
    await alice_there.open(NEW)
    page = await alice_there.send("/posts/new", 400, intent="draft", title="Typed")
    assert 'href="#site"' in alice_there.answer.text


async def test_a_wrong_time_is_shown_before_the_preview(alice_there: Browser) -> None:
    await alice_there.open(f"{NEW}?site=111")
    page = await alice_there.send("/posts/new", 400, intent="preview", summary="Typed", **{**LATER, "zone": "Mars"})
    assert 'href="#zone"' in alice_there.answer.text
    assert page.form("/posts/new")["fields"]["summary"] == ["Typed"]


async def test_back_and_change_it_sends_no_second_post(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(f"{NEW}?site=111&site=112")
    preview = await alice_there.send("/posts/new", intent="preview", summary="Once")
    await alice_there.send("/posts/new", intent="send")
    alice_there.page = preview  # Back
    await alice_there.send("/posts/new", intent="edit")
    await alice_there.send("/posts/new", intent="preview")
    assert "2 of 2 posts were sent" in (await alice_there.send("/posts/new", intent="send")).text
    assert await posts_of(emulator, "Once") == 2
    alice_there.page = preview
    await alice_there.send("/posts/new", intent="edit")
    await alice_there.send("/posts/new", intent="preview", summary="Changed")
    page = await alice_there.send("/posts/new", intent="send")
    assert "This form was sent to this site before" in page.text
    assert await posts_of(emulator, "Changed") == 0


async def test_the_calendar_of_all_sites_has_filters_and_the_rest_of_a_day(alice_there: Browser) -> None:
    for number in range(4):
        await alice_there.open(f"{NEW}?site=111&site=112")
        later = {**LATER, "publish_time": f"14:0{number}"}
        await alice_there.send("/posts/new", intent="preview", summary=f"Post {number}", **later)
        await alice_there.send("/posts/new", intent="schedule")
    page = await alice_there.open("/dashboard/calendar?month=2026-01&zone=Asia/Tokyo")
    assert page.text.count("Scheduled 14:0") == 5
    link = next(link for link in page.links if "day=2026-01-20" in link)
    assert "All 8 of 2026-01-20" in page.text
    page = await alice_there.open(link)
    assert "1 to 8 of 8" in page.text
    assert "Post 3" in page.text
    page = await alice_there.open("/dashboard/calendar?month=2026-01&zone=Asia/Tokyo&q=station")
    assert page.text.count("Scheduled 14:0") == 4
    assert "/dashboard/sites/112/posts" in page.links
    page = await alice_there.open("/dashboard/calendar?month=2026-01&business=none")
    assert "14:0" not in page.text
    await alice_there.open("/dashboard/calendar?month=1", 400)
