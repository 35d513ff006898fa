"""Forms of existing things: a page that was opened before a change elsewhere does not undo that change."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from support.api import ALICE, Site, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.browser.key_pages import shown_problems
from support.provider.drive import calls, document, drift, forget_calls

PIER, SITE = "locations/111", "/dashboard/sites/111"
MEANWHILE = "was changed after you opened this page, so nothing was saved."
DOMAIN = "old-agency.example.com"
BOOK = {"actionType": "BOOK", "url": "https://a.example.com/"}
ORDER = {"actionType": "ORDER", "url": "https://b.example.com/"}
Fields = dict[str, Any]
Paths = tuple[str, str, str]  # of the page, of the form's action and of the API


@dataclass(frozen=True)
class Form:
    """A form: what somebody else changes by the API, what its user changes, and a field that both change."""

    make: Callable[[httpx.AsyncClient], Awaitable[Paths]]
    theirs: Fields
    ours: Fields
    result: Fields
    both: tuple[str, str, Fields, str, Any]  # field of the API, its label, theirs, theirs in words, ours by input


async def key(alice: httpx.AsyncClient) -> Paths:
    fields = {"business_id": 10, "assigned_location_id": "111", "primary_domain": "harbour.example.com"}
    body = {"name": "Website", **fields, "allowed_domains": [DOMAIN]}
    ident = assert_ok(await alice.post("/api/v1/developer/credentials", json=body), 201)["client_id"]
    return f"/dashboard/keys/{ident}", "/change", f"/api/v1/developer/credentials/{ident}"


async def watch(alice: httpx.AsyncClient) -> Paths:
    page, _, api = await key(alice)
    return page, "/grace", f"{api}/alerts"


async def post(alice: httpx.AsyncClient) -> Paths:
    body = {"summary": "Fresh rolls", "callToAction": BOOK}
    name = assert_ok(await alice.post("/api/v1/posts?locationId=111", json=body), 201)["name"]
    ident = name.rpartition("/")[2]
    return f"{SITE}/posts/{ident}/edit", "/edit", f"/api/v1/posts/{ident}?locationId=111"


async def webhook(alice: httpx.AsyncClient) -> Paths:
    ident = assert_ok(await alice.post("/api/v1/webhooks", json={"url": "https://old.example/"}), 201)["id"]
    return f"/dashboard/webhooks/{ident}", f"/webhooks/{ident}", f"/api/v1/webhooks/{ident}"


async def alert(alice: httpx.AsyncClient) -> Paths:
    ident = assert_ok(await alice.post("/api/v1/alerts", json={"time_zone": "Europe/Berlin"}), 201)["id"]
    return f"/dashboard/alerts/{ident}", f"/alerts/{ident}", f"/api/v1/alerts/{ident}"


FORMS = {
    "key": Form(
        key,
        {"allowed_domains": []},
        {"name": "Renamed"},
        {"name": "Renamed", "allowed_domains": ["harbour.example.com", "www.harbour.example.com"]},
        ("name", "Name", {"name": "Theirs"}, "Theirs", {"name": "Ours"}),
    ),
    "watch": Form(
        watch,
        {"grace_seconds": 7200},
        {},
        {"grace_seconds": 7200},
        ("grace_seconds", "Grace", {"grace_seconds": 7200}, "2", {"grace": "3"}),
    ),
    "post": Form(
        post,
        {"callToAction": ORDER},
        {"summary": "Fresh bread"},
        {"summary": "Fresh bread", "callToAction": ORDER},
        (
            "callToAction",
            "Button",
            {"callToAction": {**BOOK, "actionType": "ORDER"}},
            "Order",
            {"action": "SHOP"},
        ),
    ),
    "webhook": Form(
        webhook,
        {"url": "https://new.example/", "types": ["key.rolled"]},
        {"description": "Ours"},
        {"url": "https://new.example/", "types": ["key.rolled"], "description": "Ours"},
        ("types", "Events", {"types": ["key.rolled"]}, "A secret was replaced", {"types": ["key.created"]}),
    ),
    "alert": Form(
        alert,
        {"muted_locations": [PIER], "digest_at": "06:30", "immediate": ["key.rolled"]},
        {"key.revoked": "immediate", "reminders": "on"},
        {
            "muted_locations": [PIER],
            "digest_at": "06:30",
            "immediate": ["key.rolled", "key.revoked"],
            "time_zone": "Europe/Berlin",
            "reminders": True,
        },
        ("immediate", "A secret was replaced", {"immediate": ["key.rolled"]}, "At once", {"key.rolled": "daily"}),
    ),
}


async def stored(alice: httpx.AsyncClient, api: str) -> Fields:
    if "/posts/" not in api:
        return dict(assert_ok(await alice.get(api)))
    listed = assert_ok(await alice.get("/api/v1/posts?locationId=111"))["localPosts"]
    ident = api.rpartition("/")[2].partition("?")[0]
    return next(one for one in listed if one["name"].endswith(ident))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_a_form_writes_only_what_its_user_has_changed(
    alice_there: Browser, alice: httpx.AsyncClient, form: Form
) -> None:
    page, action, api = await form.make(alice)
    await alice_there.open(page)
    assert_ok(await alice.patch(api, json=form.theirs))
    await alice_there.send(action, **form.ours)
    found = await stored(alice, api)
    assert {name: found[name] for name in form.result} == form.result


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_a_field_that_both_have_changed_is_named_and_replaced_by_the_next_save(
    alice_there: Browser, alice: httpx.AsyncClient, form: Form
) -> None:
    field, label, theirs, in_words, ours = form.both
    page, action, api = await form.make(alice)
    await alice_there.open(page)
    assert_ok(await alice.patch(api, json=theirs))
    value = (await stored(alice, api))[field]
    await alice_there.send(action, 409, **ours)
    assert shown_problems(alice_there) == [f"{label}: {MEANWHILE} Save again to replace its current value: {in_words}"]
    fields = alice_there.page.form(action)["fields"]
    assert {name: fields[name] for name in ours} == {
        name: text if isinstance(text, list) else [text] for name, text in ours.items()
    }
    assert (await stored(alice, api))[field] == value
    await alice_there.send(action)
    assert (await stored(alice, api))[field] != value


async def test_the_page_of_a_rejected_form_has_what_somebody_else_has_changed(
    alice_there: Browser, alice: httpx.AsyncClient
) -> None:
    page, action, api = await webhook(alice)
    await alice_there.open(page)
    assert_ok(await alice.patch(api, json={"url": "https://new.example/"}))
    await alice_there.send(action, 400, description="x" * 201)
    fields = alice_there.page.form(action)["fields"]
    assert (fields["url"], fields["description"]) == (["https://new.example/"], ["x" * 201])
    assert_ok(await alice.patch(api, json={"description": "Theirs"}))
    await alice_there.send(action, 409, description="Ours")
    await alice_there.send(action)
    found = await stored(alice, api)
    assert (found["url"], found["description"]) == ("https://new.example/", "Ours")


async def test_a_muted_location_that_the_form_does_not_list_stays(
    alice_there: Browser, alice: httpx.AsyncClient
) -> None:
    page, action, api = await alert(alice)
    assert_ok(await alice.patch(api, json={"muted_locations": ["locations/999"]}))
    await alice_there.open(page)
    await alice_there.send(action, muted=["locations/999", PIER])
    assert (await stored(alice, api))["muted_locations"] == ["locations/999", PIER]
    await alice_there.open(page)
    assert alice_there.page.form(action)["fields"]["muted"] == ["locations/999", PIER]


async def test_the_message_is_translated(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    page, action, api = await key(alice)
    alice_there.http.headers["accept-language"] = "de"
    await alice_there.open(page)
    assert_ok(await alice.patch(api, json={"primary_domain": None}))
    await alice_there.send(action, 409, primary_domain="ours.example.com")
    [problem] = shown_problems(alice_there)
    assert problem.endswith("(nichts)")
    assert MEANWHILE not in problem


async def test_times_of_a_post_that_the_form_cannot_show_stay(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    page, action, api = await post(alice)
    day = {"year": 2026, "month": 5, "day": 1}
    schedule = {"startDate": day, "startTime": {"hours": 9, "seconds": 30}, "endDate": day, "endTime": {"hours": 18}}
    event = {"title": "Latte art", "schedule": schedule}
    assert_ok(await alice.patch(api, json={"topicType": "EVENT", "event": event}))
    await alice_there.open(page)
    await alice_there.send(action, title="Latte")
    found = (await stored(alice, api))["event"]
    assert (found["title"], found["schedule"]["startTime"]["seconds"]) == ("Latte", 30)


async def test_a_post_that_cannot_be_read_stays_in_its_form(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    page, action, api = await post(alice)
    await alice_there.open(page)
    assert_ok(await alice.delete(api))
    await alice_there.send(action, 404, summary="Typed")
    assert alice_there.page.form(action)["fields"]["summary"] == ["Typed"]


async def test_two_pages_of_a_draft_change_it(alice_there: Browser, signed_in: SignIn) -> None:
    other = await signed_in(ALICE)
    await alice_there.open(f"{SITE}/posts")
    page = await alice_there.send("/posts", summary="Fresh rolls", language="en", intent="draft")
    link = next(link for link in page.links if "draft=" in link)
    await alice_there.open(link)
    await other.open(link)
    await other.send("/posts", summary="Fresh bread", publish_date="2026-02-01", publish_time="09:00", intent="draft")
    await alice_there.send("/posts", language="de", intent="draft")
    fields = (await alice_there.open(link)).form("/posts")["fields"]
    assert (fields["summary"], fields["language"], fields["publish_date"]) == (["Fresh bread"], ["de"], ["2026-02-01"])
    await other.open(link)
    await other.send("/posts", summary="Theirs", publish_time="10:00", intent="draft")
    await alice_there.send("/posts", 409, summary="Ours", publish_time="11:00", intent="draft")
    again = f"{MEANWHILE} Save again to replace its current value:"
    assert shown_problems(alice_there) == [f"Text: {again} Theirs", f"Publish at: {again} 2026-02-01 10:00 UTC"]
    await alice_there.send("/posts", intent="draft")
    fields = (await other.open(link)).form("/posts")["fields"]
    assert (fields["summary"], fields["publish_time"]) == (["Ours"], ["11:00"])


async def test_two_people_answer_a_review(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    api, action = "/api/v1/reviews/111003/reply?locationId=111", "/111003/reply"
    await alice_there.open("/dashboard/templates")
    await alice_there.send("/templates", name="Thanks", comment="Our template")
    await alice_there.open(f"{SITE}/reviews")
    assert_ok(await alice.put(api, json={"comment": "Theirs"}))
    await alice_there.send(action, intent="template")
    await alice_there.send(action, 409)
    assert f"Your reply: {MEANWHILE} Save again to replace its current value: Theirs" in alice_there.page.text
    assert alice_there.page.form(action)["fields"]["comment"] == ["Our template"]
    await alice_there.send(action)
    assert "Our template" in (await alice_there.open(f"{SITE}/reviews")).text
    assert_ok(await alice.put(api, json={"comment": "Theirs again"}))
    await forget_calls(emulator)
    assert "Nothing was changed" in (await alice_there.send(action)).text
    assert await calls(emulator, "PUT") == []


@pytest.fixture
async def synced(plugin: Site) -> Site:
    """A plugin whose location has a profile here."""
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"title": "Harbour Coffee, Pier"}))
    return plugin


async def test_both_change_fields_of_a_profile(alice_there: Browser, synced: Site, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(f"{SITE}/profile")
    assert_ok(await synced.http.post("/api/v1/sync/111", json={"title": "Theirs", "storeCode": "T-1"}))
    await alice_there.send("/profile", intent="more", title="Ours")  # shows more inputs, and writes nothing
    await alice_there.send("/profile", 409, labels="ours")
    assert shown_problems(alice_there) == [f"Name: {MEANWHILE} Save again to replace its current value: Theirs"]
    fields = alice_there.page.form("/profile")["fields"]
    assert (fields["title"], fields["labels"], fields["storeCode"]) == (["Ours"], ["ours"], ["T-1"])
    await forget_calls(emulator)
    await alice_there.send("/profile")
    [sent] = await calls(emulator, "PATCH")
    assert (sent["query"]["updateMask"], sent["body"]["title"]) == ("title,labels", "Ours")


async def test_a_category_that_was_added_meanwhile_is_ticked_after_a_problem(
    alice_there: Browser, synced: Site, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(f"{SITE}/profile")
    old = (await document(emulator, PIER))["categories"]
    tea = {"name": "categories/gcid:tea_house"}
    more = {**old, "additionalCategories": [*old["additionalCategories"], tea]}
    assert_ok(await synced.http.post("/api/v1/sync/111", json={"categories": more}))
    changes = {"category-categories/gcid:bakery": None, "specialHours": "Christmas"}
    await alice_there.send("/profile", 400, **changes)
    await forget_calls(emulator)
    await alice_there.send("/profile", specialHours="")
    [sent] = await calls(emulator, "PATCH")
    names = sent["body"]["categories"]["additionalCategories"]
    assert names == [{"name": "categories/gcid:breakfast_restaurant"}, tea]


async def test_a_service_that_both_change_is_a_conflict(
    alice_there: Browser, synced: Site, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(f"{SITE}/profile")
    fields = alice_there.page.form("/profile")["fields"]
    price = next(name for name in fields if re.fullmatch(r"serviceItems-\w+-price", name) and fields[name][0])
    items = (await document(emulator, PIER))["serviceItems"]
    assert "price" in items[0]
    theirs = [{**items[0], "price": {"currencyCode": "JPY", "units": "3500"}}, *items[1:]]
    assert_ok(await synced.http.post("/api/v1/sync/111", json={"serviceItems": theirs}))
    page = await alice_there.send("/profile", 409, **{price: "2500"})
    assert f"Services: {MEANWHILE}" in page.text
    assert "3500 JPY" in page.text
    assert (await document(emulator, PIER))["serviceItems"][0]["price"]["units"] == "3500"


async def test_a_change_of_the_provider_in_a_field_that_was_not_edited_is_no_conflict(
    alice_there: Browser, synced: Site, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(f"{SITE}/profile")
    await drift(emulator, locations={PIER: {"websiteUri": "https://harbour.example/other"}})
    await alice_there.send("/profile", title="Ours")
    assert (await document(emulator, PIER))["websiteUri"] == "https://harbour.example/other"
