"""The page where a profile is edited: only the fields that were changed are sent, and every problem is shown."""

from typing import Any

import httpx
import pytest

from profilesvc.services.context import Services
from support.api import CAROL, Site, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.provider.drive import calls, document, drift, fail, forget_calls, heal
from support.syncs import store_source

PIER, SITE = "locations/111", "/dashboard/sites/111"
PROFILE = f"{SITE}/profile"
MONDAY = "regularHours-MONDAY"


@pytest.fixture(autouse=True)
async def synced(plugin: Site, emulator: httpx.AsyncClient) -> None:
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"title": "Harbour Coffee, Pier"}))
    await forget_calls(emulator)


async def patches(emulator: httpx.AsyncClient) -> list[tuple[str, Any]]:
    return [(call["query"]["updateMask"], call["body"]) for call in await calls(emulator, "PATCH")]


async def test_the_page_shows_the_profile_in_words(alice_there: Browser) -> None:
    page = await alice_there.open(PROFILE)
    fields = page.form("/profile")["fields"]
    assert fields["title"] == ["Harbour Coffee, Pier"]
    assert fields[MONDAY] == ["07:30-19:00"]
    assert fields["regularHours-FRIDAY"] == ["07:30-24:00"]
    assert fields["regularHours-SATURDAY"] == ["09:00-01:00"]
    assert fields["specialHours"] == ["2027-01-01 closed\n2026-12-31 20:00-04:00"]
    assert fields["categories"] == ["categories/gcid:coffee_shop"]
    assert "Breakfast restaurant" in page.text
    for word in ("openDay", "primaryCategory", "{&"):
        assert word not in alice_there.answer.text


async def test_nothing_is_sent_if_nothing_was_changed(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    await alice_there.send("/profile")
    assert await calls(emulator, "PATCH") == []


WRONG = {
    "title": ("", "Name: is required"),
    "phoneNumbers": ("call me", "Phone: must be a phone number, such as +1 415 555 0132"),
    "additionalPhones": ("+81 45-555-0110\nfax", "Further phones"),
    "websiteUri": ("javascript:alert(1)", "Website: must be an http or https address without user info"),
    "profile": ("Order at www.harbour.example", "Description: must not contain a link"),
    "regionCode": ("Japan", "Country: must be the code of a country, such as JP for Japan"),
    "storeCode": ("<x>", "Store code: must not contain angle brackets"),
    "labels": ("\n".join("abcdefghijk"), "Labels: must have at most 10 items"),
    "adWordsLocationExtensions": ("x", "Phone in ads: must be a phone number, such as +1 415 555 0132"),
    "openingDate": ("2031-01", "Opened: must not be more than one year ahead"),
}


async def test_the_rules_of_the_provider_are_shown_at_their_fields(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    """Nothing is sent, and what was typed is kept (D-124)."""
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", 400, **{name: typed for name, (typed, _) in WRONG.items()})
    for name, (typed, problem) in WRONG.items():
        assert page.form("/profile")["fields"][name] == [typed]
        assert f'href="#{name}"' in alice_there.answer.text, name
        assert problem in page.text
    assert await calls(emulator, "PATCH") == []


async def test_values_that_are_stored_already_are_shown_and_do_not_block_others(
    alice_there: Browser, services: Services, emulator: httpx.AsyncClient
) -> None:
    odd = {"websiteUri": "harbour.example", "phoneNumbers": {"primaryPhone": "call me"}, "storeCode": "<1>"}
    await store_source(services, PIER, odd)
    fields = (await alice_there.open(PROFILE)).form("/profile")["fields"]
    assert (fields["websiteUri"], fields["phoneNumbers"], fields["storeCode"]) == (
        ["harbour.example"],
        ["call me"],
        ["<1>"],
    )
    await alice_there.send("/profile", title="Harbour Coffee")
    assert [mask for mask, _ in await patches(emulator)] == ["title"]


async def test_an_emptied_message_is_cleared(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", adWordsLocationExtensions="+81 45-555-0177")
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", adWordsLocationExtensions="")
    assert (await patches(emulator))[-1] == ("adWordsLocationExtensions", {})
    assert "adWordsLocationExtensions" not in await document(emulator, PIER)


async def test_only_changed_fields_are_sent(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    """A field that somebody else changed after the page was opened keeps their value."""
    await alice_there.open(PROFILE)
    await drift(emulator, locations={PIER: {"websiteUri": "https://harbour.example/other"}})
    hours = {MONDAY: "8:00-12:00, 13:00 - 18:00", "regularHours-SUNDAY": ""}
    await alice_there.send("/profile", title="Harbour Coffee", **hours)
    [(mask, body)] = await patches(emulator)
    assert mask == "title,regularHours"
    assert (await document(emulator, PIER))["websiteUri"] == "https://harbour.example/other"
    periods = [one for one in body["regularHours"]["periods"] if one["openDay"] in ("MONDAY", "SUNDAY")]
    monday = {"openDay": "MONDAY", "closeDay": "MONDAY"}
    assert periods == [
        {**monday, "openTime": {"hours": 8}, "closeTime": {"hours": 12}},
        {**monday, "openTime": {"hours": 13}, "closeTime": {"hours": 18}},
    ]


DATE = {"year": 2026, "month": 12, "day": 24}
CHANGES: list[tuple[dict[str, Any], str, object]] = [
    ({"additionalPhones": ""}, "phoneNumbers", {"primaryPhone": "+81 45-555-0111"}),
    ({"websiteUri": ""}, "websiteUri", None),
    ({"profile": "New."}, "profile.description", {"description": "New."}),
    ({"specialHours": ""}, "specialHours", None),
    (
        {"specialHours": "2026-12-24 9:00-12:00"},
        "specialHours",
        {"specialHourPeriods": [{"startDate": DATE, "openTime": {"hours": 9}, "closeTime": {"hours": 12}}]},
    ),
    (
        {"categories": "categories/gcid:bakery", "category-categories/gcid:breakfast_restaurant": None},
        "categories",
        {
            "primaryCategory": {"name": "categories/gcid:bakery"},
            "additionalCategories": [{"name": "categories/gcid:coffee_shop"}],
        },
    ),
    ({"openInfo": "CLOSED_TEMPORARILY"}, "openInfo.status", {"status": "CLOSED_TEMPORARILY"}),
    ({"labels": "one\r\ntwo words\r\n"}, "labels", ["one", "two words"]),
]


@pytest.mark.parametrize(("sent", "mask", "value"), CHANGES)
async def test_a_field_is_changed_or_cleared(
    alice_there: Browser, emulator: httpx.AsyncClient, sent: dict[str, Any], mask: str, value: object
) -> None:
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", **sent)
    [(sent_mask, body)] = await patches(emulator)
    assert (sent_mask, body.get(mask.partition(".")[0])) == (mask, value)


async def test_the_street_keeps_the_rest_of_the_address(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    before = (await document(emulator, PIER))["storefrontAddress"]
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", storefrontAddress="New street 1\r\nHall 2")
    after = (await document(emulator, PIER))["storefrontAddress"]
    assert after == {**before, "addressLines": ["New street 1", "Hall 2"]}


async def test_all_problems_are_shown_and_what_was_typed_is_kept(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(PROFILE)
    wrong = {
        "title": "x" * 301,
        MONDAY: "nine to five",
        "regularHours-TUESDAY": "25:00-26:00",
        "specialHours": "Christmas",
        "labels": "\n".join("abcdefghijk"),
        "additionalPhones": "1\n2\n3",
    }
    page = await alice_there.send("/profile", 400, **wrong)
    assert "There are 6 problems" in page.text
    for name in wrong:
        assert f'id="{name}" aria-describedby' in alice_there.answer.text
        assert f'href="#{name}"' in alice_there.answer.text
    assert "Opening hours, Monday: must be times such as 09:00-17:30" in page.text
    fields = page.form("/profile")["fields"]
    assert fields[MONDAY] == ["nine to five"]
    assert fields["specialHours"] == ["Christmas"]
    assert await calls(emulator, "PATCH") == []
    corrected = {"title": "Pier", MONDAY: "9:00-17:00", "regularHours-TUESDAY": "9:00-17:00"}
    await alice_there.send("/profile", **corrected, specialHours="", labels="a", additionalPhones="")
    assert [mask for mask, _ in await patches(emulator)] == ["title,phoneNumbers,regularHours,specialHours,labels"]


async def test_a_rejection_of_the_provider_is_next_to_its_field(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, blocked={PIER: {"websiteUri": "THROTTLED"}})
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", 502, websiteUri="https://harbour.example/typed")
    assert 'href="#websiteUri"' in alice_there.answer.text
    assert page.form("/profile")["fields"]["websiteUri"] == ["https://harbour.example/typed"]


async def test_a_rejected_save_leaves_nothing_that_waits(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    """After Cancel, the next sync of the site has nothing to send (D-84)."""
    await fail(emulator, method="PATCH", status=400, message="no")
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", 502, title="Typed", **{MONDAY: "10:00-12:00"})
    await heal(emulator)
    await forget_calls(emulator)
    page = await alice_there.open(SITE)
    assert "Typed" not in page.text
    assert (await alice_there.open(PROFILE)).form("/profile")["fields"]["title"] == ["Harbour Coffee, Pier"]
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", websiteUri="https://harbour.example/new")
    assert [mask for mask, _ in await patches(emulator)] == ["websiteUri"]


async def test_an_outage_keeps_the_input(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    await fail(emulator)
    page = await alice_there.send("/profile", 502, title="Typed")
    assert page.form("/profile")["fields"]["title"] == ["Typed"]


async def test_hours_that_the_form_cannot_show_are_not_editable(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    odd = {
        "openDay": "MONDAY",
        "openTime": {"hours": 9, "seconds": 30},
        "closeDay": "MONDAY",
        "closeTime": {"hours": 17},
    }
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"regularHours": {"periods": [odd]}}))
    await forget_calls(emulator)
    page = await alice_there.open(PROFILE)
    assert "Only shown here" in page.text
    assert "Opening hours" in page.text.partition("Only shown here")[2]
    await alice_there.send("/profile", title="Pier")
    assert [mask for mask, _ in await patches(emulator)] == ["title"]


async def test_only_fields_of_the_plan_are_offered(signed_in: SignIn, emulator: httpx.AsyncClient) -> None:
    carol = await signed_in(CAROL)
    page = await carol.open("/dashboard/sites/311/profile")
    fields = page.form("/profile")["fields"]
    assert "title" in fields
    assert "labels" not in fields
    await carol.send("/profile", title="Diaz", labels="smuggled")
    assert [mask for mask, _ in await patches(emulator)] == ["title"]


async def test_sync_must_be_on(alice_there: Browser) -> None:
    page = await alice_there.open("/dashboard/sites/112/profile")
    assert "Sync is off." in page.text
    assert not any(form["action"].endswith("/profile") for form in page.forms)
