"""Drafts, scheduled posts and photos: written in the dashboard, published by the rounds."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.operations import publishing
from profilesvc.services import posts
from profilesvc.services.context import Services
from profilesvc.storage.drafts import drafts as stored
from support.api import BOB, Site, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.provider.drive import fail, heal, posts_of

SITE = "/dashboard/sites/111"
LISTED = "/api/v1/posts?locationId=locations/111"
LATER = {"publish_date": "2026-01-02", "publish_time": "14:00", "zone": "Asia/Tokyo", "intent": "schedule"}
pytestmark = pytest.mark.in_process("runs the rounds itself")


async def texts(plugin: Site) -> list[str]:
    return [post.get("summary", "") for post in assert_ok(await plugin.http.get(LISTED))["localPosts"]]


async def schedule(browser: Browser, **fields: Any) -> None:
    await browser.open(f"{SITE}/posts")
    page = await browser.send("/posts", **{"summary": "On time", **LATER, **fields})
    assert "The post is scheduled." in page.text


async def pass_time(services: Services, clock: FrozenClock, **much: int) -> None:
    clock.advance(**much)
    await publishing.run_once(services)


async def test_a_draft_is_kept_changed_and_deleted(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SITE}/posts")
    before = await texts(plugin)
    page = await alice_there.send("/posts", kind="OFFER", title="Half", action_url="https://x.example/", intent="draft")
    assert "Draft: Half" in alice_there.answer.text
    await alice_there.open(next(link for link in page.links if "draft=" in link))
    fields = alice_there.page.form("/posts")["fields"]
    assert (fields["title"], fields["kind"], fields["action_url"]) == (["Half"], ["OFFER"], ["https://x.example/"])
    page = await alice_there.send("/posts", kind="STANDARD", summary="Whole", intent="draft")
    assert len([link for link in page.links if "draft=" in link]) == 1
    await alice_there.open(next(link for link in page.links if "draft=" in link))
    await alice_there.send("/posts", intent="post")
    assert await texts(plugin) == ["Whole", *before]
    assert "Drafts and scheduled" not in alice_there.page.text
    await alice_there.send("/posts", summary="Another", intent="draft")
    delete = next(form["action"] for form in alice_there.page.forms if "/drafts/" in form["action"])
    assert "The draft is deleted." in (await alice_there.send(delete, sure="on")).text


@pytest.mark.parametrize("intent", ["draft", "schedule"])
async def test_a_form_that_is_sent_twice_is_one_draft(alice_there: Browser, intent: str) -> None:
    await alice_there.open(f"{SITE}/posts")
    page = alice_there.page
    for _ in range(2):
        alice_there.page = page
        listed = await alice_there.send("/posts", **{"summary": "Only one", **LATER, "intent": intent})
        assert ("The draft is stored." if intent == "draft" else "The post is scheduled.") in listed.text
    assert len([link for link in listed.links if "draft=" in link]) == 1
    alice_there.page = page
    listed = await alice_there.send("/posts", 422, **{"summary": "Another", **LATER, "intent": intent})
    assert listed.form("/posts")["fields"]["summary"] == ["Another"]
    listed = await alice_there.send("/posts", intent="draft")
    assert len([link for link in listed.links if "draft=" in link]) == 2


async def test_a_scheduled_post_is_published_once_at_its_time(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await schedule(alice_there)
    assert "2026-01-02T05:00:00" in alice_there.answer.text  # 14:00 in Tokyo
    used = (await alice_there.open("/dashboard/plan")).text
    await pass_time(services, clock, hours=1)
    assert "On time" not in await texts(plugin)
    await pass_time(services, clock, hours=1)
    await pass_time(services, clock, minutes=10)
    assert (await texts(plugin)).count("On time") == 1
    assert "Drafts and scheduled" not in (await alice_there.open(f"{SITE}/posts")).text
    assert used != (await alice_there.open("/dashboard/plan")).text


async def test_an_interrupted_attempt_creates_no_second_post(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await schedule(alice_there)

    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stored, "end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            await pass_time(services, clock, hours=2)
    page = await alice_there.open(f"{SITE}/posts")
    assert "Being sent" in page.text
    assert not any("draft=" in link for link in page.links)
    await pass_time(services, clock, minutes=10)
    assert (await texts(plugin)).count("On time") == 1
    assert "Being sent" not in (await alice_there.open(f"{SITE}/posts")).text


async def test_a_post_that_the_provider_refuses_stays_with_the_reason(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await schedule(alice_there, photo="https://photos.invalid/x.png")
    await pass_time(services, clock, hours=2)
    page = await alice_there.open(f"{SITE}/posts")
    assert "Not published" in page.text
    assert "Photo could not be fetched" in page.text
    await pass_time(services, clock, hours=1)
    await alice_there.open(next(link for link in page.links if "draft=" in link))
    await alice_there.send("/posts", photo="", intent="post")
    assert (await texts(plugin)).count("On time") == 1


async def test_a_provider_that_is_down_delays_a_post(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    await schedule(alice_there)
    await fail(emulator, status=503)
    await pass_time(services, clock, hours=2)
    await pass_time(services, clock, minutes=6)
    page = await alice_there.open(f"{SITE}/posts")
    assert "It is tried again." in page.text
    assert not any("draft=" in link for link in page.links)  # the provider may have it, so it is not changed now
    await heal(emulator)
    await pass_time(services, clock, minutes=30)
    assert (await texts(plugin)).count("On time") == 1


async def test_a_provider_that_fails_after_the_effect_gets_no_second_post(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    """By the rounds, and by hand with the form that was sent."""
    await schedule(alice_there)
    await fail(emulator, method="POST", status=500, after=True)
    await pass_time(services, clock, hours=2)
    await heal(emulator)
    await pass_time(services, clock, minutes=30)
    assert (await posts_of(emulator, "On time"), (await texts(plugin)).count("On time")) == (1, 1)
    await alice_there.open(f"{SITE}/posts")
    await fail(emulator, method="POST", status=502, after=True)
    page = await alice_there.send("/posts", 502, summary="By hand")
    assert "The provider may have published this post." in page.text
    await heal(emulator)
    assert "The post was sent" in (await alice_there.send("/posts")).text
    assert await posts_of(emulator, "By hand") == 1


async def test_many_posts_of_one_owner_do_not_delay_those_of_others(
    alice_there: Browser, signed_in: SignIn, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    for number in range(6):
        await schedule(alice_there, summary=f"Many {number}", publish_time=f"14:0{number}")
    bob = await signed_in(BOB)
    await bob.open("/dashboard/sites/211/posts")
    await bob.send("/posts", summary="One of Bob", **{**LATER, "publish_time": "14:30"})
    async with services.storage.read() as session:
        found = await stored.due(session, clock.now() + DAY, 4)
    assert len({due.owner_id for due in found[:2]}) == 2
    assert len(found) == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"publish_date": ""}, "publish_date"),
        ({"publish_date": "2020-01-01"}, "publish_date"),
        ({"publish_date": "2029-01-01"}, "publish_date"),
        ({"zone": "Mars/Crater"}, "zone"),
        ({"zone": "../../etc/passwd"}, "zone"),
    ],
)
@ON_ONE_DATABASE
async def test_a_wrong_time_is_shown_at_its_field(alice_there: Browser, changes: dict[str, str], field: str) -> None:
    await alice_there.open(f"{SITE}/posts")
    page = await alice_there.send("/posts", 400, **{"summary": "Typed", **LATER, **changes})
    assert f'href="#{field}"' in alice_there.answer.text
    assert page.form("/posts")["fields"]["summary"] == ["Typed"]


async def test_another_users_draft_is_neither_shown_nor_changed(
    alice_there: Browser, signed_in: SignIn, services: Services
) -> None:
    await schedule(alice_there)
    link = next(link for link in alice_there.page.links if "draft=" in link)
    ident = link.partition("draft=")[2].partition("#")[0]
    bob = await signed_in(BOB)
    await bob.open(link, 404)
    await bob.open(f"/dashboard/sites/211/posts?draft={ident}", 404)
    await bob.open("/dashboard/sites/211/posts")
    await bob.send("/posts", 404, summary="Mine", intent="draft", draft=ident)
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    answer = await bob.http.post(f"/dashboard/sites/211/drafts/{ident}/delete", data={"csrf": csrf, "sure": "on"})
    assert answer.status_code == 404
    await alice_there.open(link)


@pytest.mark.parametrize("ident", ["%00", "%ff", "x" * 65, "."])
async def test_an_id_that_no_draft_has_is_not_found(alice_there: Browser, ident: str) -> None:
    """PostgreSQL fails at a text with a zero byte."""
    assert (await alice_there.http.get(f"{SITE}/posts?draft={ident}")).status_code == 404


@pytest.mark.parametrize("name", ["summary", "no_such_field"])
async def test_a_draft_has_a_largest_size(alice_there: Browser, name: str) -> None:
    page = await alice_there.open(f"{SITE}/posts")
    fields = {**page.form("/posts")["fields"], "intent": "draft", name: "x" * 20_001}
    answer = await alice_there.http.post(f"{SITE}/posts", data=fields)
    assert answer.status_code == 400
    assert 'href="#summary"' in answer.text
    assert "Drafts and scheduled" not in (await alice_there.open(f"{SITE}/posts")).text


@pytest.mark.parametrize("is_published", [True, False])
async def test_a_scheduled_post_that_is_sent_by_hand_is_sent_once(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock, is_published: bool
) -> None:
    """Its form may be open while the round publishes it."""
    await schedule(alice_there)
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    if is_published:
        await pass_time(services, clock, hours=2)
    await alice_there.send("/posts", 404 if is_published else 200, intent="post")
    await pass_time(services, clock, hours=2)
    assert (await texts(plugin)).count("On time") == 1


async def test_a_post_that_is_being_sent_is_not_sent_by_hand(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    await schedule(alice_there)
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    ident = alice_there.page.form("/posts")["fields"]["draft"][0]
    clock.advance(hours=2)
    async with services.storage.write() as session:
        assert await stored.claim(session, 1, ident, clock.now(), clock.now() + 60_000)
    await alice_there.send("/posts", 409, intent="post")
    await pass_time(services, clock, minutes=10)
    assert (await texts(plugin)).count("On time") == 1


async def test_a_defect_with_one_post_does_not_delay_another(
    alice_there: Browser, plugin: Site, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for summary in ("First", "Second"):
        await schedule(alice_there, summary=summary)
    create = posts.create

    async def defective(*args: Any) -> Any:
        if args[3]["summary"] == "First":
            raise ValueError("defect")
        return await create(*args)

    monkeypatch.setattr(posts, "create", defective)
    await pass_time(services, clock, hours=2)
    assert "Second" in await texts(plugin)


@pytest.mark.parametrize("is_draft", [False, True])
async def test_a_post_that_may_exist_is_not_sent_twice_by_its_form(
    alice_there: Browser, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient, is_draft: bool
) -> None:
    if is_draft:
        await schedule(alice_there)
        await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    else:
        await alice_there.open(f"{SITE}/posts")
    await fail(emulator, "disconnect", after=True, times=1, match={"method": "POST"})
    page = await alice_there.send("/posts", 502, summary="On time", intent="post")
    assert "may have published this post" in page.text
    await pass_time(services, clock, hours=2)
    assert await posts_of(emulator, "On time") == 1
    await alice_there.send("/posts", 422, summary="Changed", intent="post")
    await alice_there.send("/posts", summary="On time", intent="post")
    assert await posts_of(emulator, "On time") == 1
    assert "Drafts and scheduled" not in alice_there.page.text


async def test_a_scheduled_post_that_may_exist_is_not_sent_twice(
    alice_there: Browser, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    """While it may exist, it cannot be sent by hand, even if a later attempt certainly failed."""
    await schedule(alice_there)
    await fail(emulator, "disconnect", after=True, times=1, match={"method": "POST"})
    await pass_time(services, clock, hours=2)
    await fail(emulator, status=503)
    await pass_time(services, clock, minutes=6)
    page = await alice_there.open(f"{SITE}/posts")
    assert "Being sent" in page.text
    assert not any("draft=" in link for link in page.links)
    await heal(emulator)
    await pass_time(services, clock, minutes=30)
    assert await posts_of(emulator, "On time") == 1
    assert "Drafts and scheduled" not in (await alice_there.open(f"{SITE}/posts")).text


async def test_a_scheduled_post_keeps_its_time_if_it_cannot_be_sent_now(
    alice_there: Browser, services: Services, clock: FrozenClock, emulator: httpx.AsyncClient
) -> None:
    await schedule(alice_there)
    await alice_there.open(next(link for link in alice_there.page.links if "draft=" in link))
    await fail(emulator, status=400, match={"method": "POST"})
    await alice_there.send("/posts", 502, intent="post")
    await heal(emulator)
    await alice_there.open(f"{SITE}/posts")
    assert "2026-01-02T05:00:00" in alice_there.answer.text
    await pass_time(services, clock, hours=2)
    assert await posts_of(emulator, "On time") == 1
