"""One site: its connection, what differs at the provider and its repair, posts, reviews; without a script."""

import json
import re
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.domain.time import FrozenClock
from support.api import BOB, CAROL, Site, assert_ok
from support.browser.dashboard import Browser, SignIn

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}"
SITE = "/dashboard/sites/111"
PHONE = {"phoneNumbers": {"primaryPhone": "+81 45-555-0199"}}


async def drifted(plugin: Site, emulator: httpx.AsyncClient) -> None:
    """A profile that was synced, and whose phone somebody then changed at the provider."""
    assert_ok(await plugin.http.post("/api/v1/sync/111", json=PHONE))
    phones = {"primaryPhone": "+81 45-555-0000", "additionalPhones": []}
    change = {"locations": {"locations/111": {"phoneNumbers": phones}}}
    answer = await emulator.put("/__emulator/state", json=change)
    assert answer.is_success, answer.text


async def test_drift_is_shown_previewed_and_repaired(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await drifted(plugin, emulator)
    clock.advance(minutes=5)
    page = await alice_there.open(SITE)
    assert "+81 45-555-0199" in page.text
    assert "+81 45-555-0000" in page.text
    assert "Changed at the provider" in page.text
    assert "2 fields differ at the provider: Phone" in (await alice_there.open("/dashboard")).text
    await alice_there.open(SITE)
    page = await alice_there.send("/sync", intent="preview")
    assert "It would change these fields at the provider: Phone" in page.text
    assert "+81 45-555-0000" in page.text
    page = await alice_there.send("/sync", intent="sync")
    assert "Changed at the provider" not in page.text
    assert "No field differs." in page.text
    assert "2 fields differ" not in (await alice_there.open("/dashboard")).text


async def test_the_same_form_twice_is_one_sync(alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient) -> None:
    await drifted(plugin, emulator)
    await alice_there.open(SITE)
    kept = alice_there.page
    await alice_there.send("/sync", intent="sync")
    alice_there.page = kept
    await alice_there.send("/sync", intent="sync")
    entries = assert_ok(await plugin.http.get("/api/v1/sync/history/111"))["history"]
    assert sum(entry["timestamp"].startswith("2026-01-02") for entry in entries) == 2  # the plugin's and this one


async def test_sync_is_switched(alice_there: Browser) -> None:
    page = await alice_there.open(SITE)
    assert "Sync is on" in page.text
    page = await alice_there.send("/switch")
    assert "Sync is off" in page.text
    assert not any(form["action"].endswith("/sync") for form in page.forms)
    assert "Sync is on" in (await alice_there.send("/switch")).text


async def test_the_timeline_has_thirty_days(alice_there: Browser, plugin: Site, clock: FrozenClock) -> None:
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    clock.advance(hours=30)
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    clock.advance(minutes=1)
    await alice_there.open(SITE)
    picture = alice_there.answer.text.partition("<svg")[2].partition("</svg>")[0]
    assert [picture.count(f'<rect class="{state}"') for state in ("online", "idle", "offline")] == [2, 1, 1]
    assert "now online" in picture


async def test_an_outage_of_the_provider_hides_only_its_data(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    fault = {"kind": "status", "status": 503, "times": 100}
    assert (await emulator.post("/__emulator/faults", json=fault)).is_success
    clock.advance(minutes=5)
    page = await alice_there.open(SITE)
    assert "The comparison is not available" in page.text
    assert "Sync history" in page.text


KINDS: list[tuple[str, dict[str, str]]] = [
    ("STANDARD", {"summary": "Fresh beans", "action": "LEARN_MORE", "action_url": "https://harbour.example/beans"}),
    (
        "EVENT",
        {
            "title": "Latte art",
            "start_date": "2026-02-01",
            "start_time": "10:00",
            "end_date": "2026-02-01",
            "end_time": "12:30",
        },
    ),
    (
        "OFFER",
        {
            "title": "Winter",
            "start_date": "2026-02-01",
            "start_time": "00:00",
            "end_date": "2026-02-28",
            "end_time": "23:59",
            "coupon": "WARM10",
            "redeem_url": "https://harbour.example/w",
            "terms": "One each.",
        },
    ),
    ("ALERT", {"summary": "Closed on Monday"}),
]


@pytest.mark.parametrize(("kind", "fields"), KINDS, ids=[kind for kind, _ in KINDS])
async def test_a_post_of_each_kind(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, kind: str, fields: dict[str, str]
) -> None:
    await alice_there.open(f"{SITE}/posts?kind={kind}")
    page = await alice_there.send("/posts", **fields)
    assert "In review" in page.text
    newest = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))["localPosts"][0]
    assert newest["topicType"] == kind
    if kind == "OFFER":
        assert newest["offer"]["couponCode"] == "WARM10"
        assert newest["event"]["schedule"]["endTime"] == {"hours": 23, "minutes": 59}


async def test_a_form_is_checked_while_it_is_filled_in_and_when_it_is_sent(alice_there: Browser) -> None:
    await alice_there.open(f"{SITE}/posts?kind=EVENT")
    fields = {**alice_there.page.form("/posts")["fields"], "title": "Latte art"}
    answer = await alice_there.http.post(f"{SITE}/posts/check", data=fields, headers={"X-Fragment": "1"})
    assert "First day: is required" in answer.text
    page = await alice_there.send("/posts", 400, title="Latte art", summary="Kept")
    assert "First day: is required" in page.text
    assert page.form("/posts")["fields"]["summary"] == ["Kept"]


async def test_a_post_is_deleted(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", summary="Short-lived")
    posts = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))["localPosts"]
    await alice_there.send(f"/{posts[0]['name'].rpartition('/')[2]}/delete", sure="on")
    after = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))["localPosts"]
    assert len(after) == len(posts) - 1


async def test_reviews_are_answered_where_the_plan_has_them(alice_there: Browser, signed_in: SignIn) -> None:
    page = await alice_there.open(f"{SITE}/reviews")
    assert "stars on average" in page.text
    action = next(form["action"] for form in page.forms if form["action"].endswith("/reply"))
    page = await alice_there.send(action, comment="Thank you & <b>welcome</b>")
    assert "<b>" not in alice_there.answer.text
    assert "Thank you & <b>welcome</b>" in page.text
    await alice_there.send(action.replace("/reply", "/withdraw"), sure="on")
    carol = await signed_in(CAROL)
    page = await carol.open("/dashboard/sites/311")
    assert not any(link.endswith("/reviews") for link in page.links)
    page = await carol.open("/dashboard/sites/311/reviews", 403)
    assert "does not include reviews" in page.text
    assert "does not include posts" in (await carol.open("/dashboard/sites/311/posts")).text


async def test_the_plan_page_shows_the_usage(alice_there: Browser) -> None:
    before = await alice_there.open("/dashboard/plan")
    assert "Your plan: Pro" in before.text
    assert "0 of 1000 this month" in before.text
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", summary="One")
    assert "1 of 1000 this month" in (await alice_there.open("/dashboard/plan")).text
    assert "Agency" in before.text


@pytest.mark.parametrize("where", ["name", "heartbeat", "profile", "post"])
async def test_hostile_text_stays_text(
    alice_there: Browser, as_service: AsService, emulator: httpx.AsyncClient, where: str
) -> None:
    site = await as_service(name=HOSTILE if where == "name" else "Site")
    if where == "heartbeat":
        beat = {"plugin_version": HOSTILE[:64], "wp_version": "<b>", "php_version": '"><svg onload=x>'}
        assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json=beat))
    if where == "profile":
        assert_ok(await site.http.post("/api/v1/sync/111", json={"title": HOSTILE[:50], HOSTILE: {"x": HOSTILE}}))
    if where == "post":
        post = {"summary": HOSTILE}
        assert_ok(await site.http.post("/api/v1/posts?locationId=locations/111", json=post), 201)
    key = f"/dashboard/keys/{site.key['client_id']}"
    for path in ("/dashboard", "/dashboard/keys", key, f"{key}/revoke", SITE, f"{SITE}/posts", "/dashboard/plan"):
        await alice_there.open(path)  # whose parser refuses handlers and styles in tags
        for tag in ("<script>alert", "<img src=x", "<svg onload", "<b>"):
            assert tag not in alice_there.answer.text, path


async def test_opening_hours_are_a_week_and_the_page_is_short(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    def week(hour: int) -> dict[str, Any]:
        days = ("MONDAY", "TUESDAY", "WEDNESDAY")
        return {
            "periods": [
                {"openDay": day, "openTime": {"hours": hour}, "closeDay": day, "closeTime": {"hours": 18}}
                for day in days
            ]
        }

    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"regularHours": week(9)}))
    change = {"locations": {"locations/111": {"regularHours": week(10)}}}
    assert (await emulator.put("/__emulator/state", json=change)).is_success
    clock.advance(minutes=5)
    page = await alice_there.open(SITE)
    text = page.text.replace("\N{EN DASH}", "-")
    assert "Opening hours Mon-Wed 09:00-18:00 Thu-Sun closed Mon-Wed 10:00-18:00 Thu-Sun closed" in text
    assert "openDay" not in alice_there.answer.text
    assert "{" not in page.text


async def test_the_table_has_no_other_fields_if_none_differs(alice_there: Browser, plugin: Site) -> None:
    assert_ok(await plugin.http.post("/api/v1/sync/111", json=PHONE))
    page = await alice_there.open(SITE)
    assert "No field differs." in page.text
    assert "other field" not in page.text


async def test_pages_of_a_site_name_it(alice_there: Browser) -> None:
    for page, what in (("", ""), ("/posts", "Posts"), ("/reviews", "Reviews")):
        await alice_there.open(f"{SITE}{page}")
        assert "<h1>Harbour Coffee, Pier</h1>" in alice_there.answer.text
        title = alice_there.answer.text.partition("<title>")[2].partition("</title>")[0]
        assert "Harbour Coffee, Pier" in title
        assert what in title


@pytest.mark.parametrize("fault", ["too long", "refused", "away"])
@ON_ONE_DATABASE
async def test_a_rejected_reply_stays_in_its_form(
    alice_there: Browser, emulator: httpx.AsyncClient, fault: str
) -> None:
    page = await alice_there.open(f"{SITE}/reviews")
    action = next(form["action"] for form in page.forms if form["action"].endswith("/reply"))
    typed = "Thank you. " + ("x" * 5000 if fault == "too long" else "")
    if fault != "too long":
        status = {"refused": 400, "away": 503}[fault]
        body = {"kind": "status", "status": status, "times": 100}
        assert (await emulator.post("/__emulator/faults", json=body)).is_success
    answer = await alice_there.http.post(
        action,
        data={**page.form(action)["fields"], "comment": typed},
        headers={"Origin": str(alice_there.http.base_url).rstrip("/")},
    )
    assert answer.status_code >= 400
    alice_there._look(answer, answer.status_code)
    assert alice_there.page.form(action)["fields"]["comment"] == [typed.strip()]
    assert "There is a problem" in alice_there.page.text or "problems" in alice_there.page.text
    assert "<h1>Harbour Coffee, Pier</h1>" in answer.text


async def test_a_post_that_the_provider_rejects_stays_in_its_form(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(f"{SITE}/posts?kind=ALERT")
    fault = {"kind": "status", "status": 400, "times": 100}
    assert (await emulator.post("/__emulator/faults", json=fault)).is_success
    form = alice_there.page.form("/posts")
    answer = await alice_there.http.post(
        f"{SITE}/posts", data={**form["fields"], "summary": "Typed", "photo": "https://harbour.example/x.png"}
    )
    assert answer.status_code >= 400
    alice_there._look(answer, answer.status_code)
    fields = alice_there.page.form("/posts")["fields"]
    assert (fields["summary"], fields["kind"], fields["photo"]) == (
        ["Typed"],
        ["ALERT"],
        ["https://harbour.example/x.png"],
    )


async def test_another_kind_of_post_is_chosen_in_the_same_form(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SITE}/posts?kind=OFFER")
    page = await alice_there.send("/posts", 400, summary="Kept", coupon="WARM10", action="CALL")
    assert page.form("/posts")["fields"]["kind"] == ["OFFER"]
    await alice_there.send("/posts", kind="STANDARD")  # everything that was typed is in the form still
    newest = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))["localPosts"][0]
    assert (newest["topicType"], newest["summary"]) == ("STANDARD", "Kept")
    assert "offer" not in newest


async def test_the_link_of_a_call_is_refused_at_its_field(alice_there: Browser) -> None:
    await alice_there.open(f"{SITE}/posts")
    await alice_there.send("/posts", 400, summary="Call us", action="CALL", action_url="https://harbour.example")
    assert 'href="#action_url"' in alice_there.answer.text
    assert "is not for CALL, which uses the phone number of the profile" in alice_there.page.text
    await alice_there.send("/posts", action_url="")


@pytest.mark.parametrize("action", ["/delete", "/withdraw"])
async def test_irreversible_actions_need_a_confirmation(alice_there: Browser, plugin: Site, action: str) -> None:
    listed = f"{SITE}/{'posts' if action == '/delete' else 'reviews'}"
    page = await alice_there.open(listed)
    forms = len(page.forms)
    page = await alice_there.send(action, 400)
    assert "tick the box to confirm" in page.text
    assert " open>" in alice_there.answer.text
    assert len((await alice_there.open(listed)).forms) == forms
    await alice_there.send(action, sure="on")
    assert len((await alice_there.open(listed)).forms) == forms - 1


async def test_forms_and_buttons_of_a_list_have_names_of_their_own(alice_there: Browser) -> None:
    for page in ("/reviews", "/posts"):
        await alice_there.open(f"{SITE}{page}")
        html = re.sub(r"<time[^>]*>.*?</time>", "", alice_there.answer.text)
        for pattern in (
            r"<(?:button|summary)[^>]*>(.*?)</",
            r'<form[^>]*aria-label="(.*?)"',
            r"<label for[^>]*>(.*?)</l",
        ):
            names = [re.sub("<[^>]*>", "", name) for name in re.findall(pattern, html)]
            assert len(names) == len(set(names)), page


@pytest.mark.parametrize("action", ["/sync", "/switch", "/verification"])
@ON_ONE_DATABASE
async def test_a_rejected_action_shows_its_page_again(
    alice_there: Browser, emulator: httpx.AsyncClient, clock: FrozenClock, action: str
) -> None:
    page = await alice_there.open(SITE)
    csrf = page.form("/sign-out")["fields"]["csrf"][0]
    fault = {"kind": "status", "status": 503, "times": 100}
    assert (await emulator.post("/__emulator/faults", json=fault)).is_success
    answer = await alice_there.http.post(f"{SITE}{action}", data={"csrf": csrf, "sync": "off", "intent": "sync"})
    if answer.status_code != 303:  # what asks the provider
        assert answer.status_code >= 500
        assert "<h1>Harbour Coffee, Pier</h1>" in answer.text
        assert 'id="problems"' in answer.text


async def test_an_error_has_the_navigation(alice_there: Browser, signed_in: SignIn, visitor: Browser) -> None:
    for path in ("/dashboard/nothing", "/dashboard/sites/999", "/dashboard/sites/x/posts", "/dashboard/keys/x"):
        answer = await alice_there.http.get(path)
        assert answer.status_code in (400, 404)
        assert '<nav aria-label="Dashboard">' in answer.text, path
    answer = await alice_there.http.post("/dashboard/keys", data={})  # a form without a session
    assert answer.status_code == 403
    assert '<nav aria-label="Dashboard">' in answer.text
    assert "<nav" not in (await visitor.http.get("/dashboard/nothing")).text


PAGES = (
    "",
    "/live",
    "/profile",
    "/events",
    "/posts",
    "/posts/live",
    "/posts/11101/edit",
    "/calendar",
    "/reviews",
    "/reviews/r1/live",
)
ACTIONS = (
    "/switch",
    "/sync",
    "/updates",
    "/differences",
    "/profile",
    "/verification",
    "/posts",
    "/posts/11101/delete",
    "/posts/11101/edit",
    "/reviews/r1/reply",
    "/reviews/r1/withdraw",
)


async def test_another_users_site_is_neither_shown_nor_changed(
    alice_there: Browser, signed_in: SignIn, plugin: Site
) -> None:
    before = assert_ok(await plugin.http.get("/api/v1/external-business/locations"))
    bob = await signed_in(BOB)
    assert "Harbour" not in bob.answer.text
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    for page in PAGES:
        await bob.open(f"{SITE}{page}", 404)
        assert "Harbour" not in bob.answer.text
    for action in ACTIONS:
        form: dict[str, Any] = {
            "csrf": csrf,
            "sync": "off",
            "intent": "sync",
            "once": "x",
            "summary": "Bob was here",
            "comment": "x",
            "mask": "title",
            "decision": "accept",
        }
        answer = await bob.http.post(f"{SITE}{action}", data=form)
        assert answer.status_code == 404, action
        assert "Harbour" not in answer.text
    for page in (
        "/dashboard",
        "/dashboard/keys",
        "/dashboard/keys?state=all",
        "/dashboard/keys/live",
        "/dashboard/keys/locations",
        "/dashboard/audit",
        "/dashboard/sites/selected?act=sync&site=111",
        "/dashboard/plan",
        "/dashboard/drafts",
        "/dashboard/calendar",
        "/dashboard/sites/live",
    ):
        assert "Harbour" not in (await bob.open(page)).text
        assert plugin.key["client_id"] not in bob.answer.text
    assert assert_ok(await plugin.http.get("/api/v1/external-business/locations")) == before
    posts = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))
    assert "Bob was here" not in json.dumps(posts)
