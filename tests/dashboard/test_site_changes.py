"""The page of a site: what the provider has changed, and each difference, settled field by field; without a script."""

from typing import Any

import httpx
import pytest

from support.api import Site, assert_ok
from support.browser.dashboard import Browser
from support.provider.drive import calls, document, drift, forget_calls

PIER, SITE = "locations/111", "/dashboard/sites/111"
COMPARISON = "/api/v1/sync/comparison/111"
WEEK = {"periods": [{"openDay": "MONDAY", "openTime": {"hours": 9}, "closeDay": "MONDAY", "closeTime": {"hours": 17}}]}


async def patches(emulator: httpx.AsyncClient) -> list[str]:
    return [call["query"]["updateMask"] for call in await calls(emulator, "PATCH")]


class TestChangesOfTheProvider:
    @pytest.fixture(autouse=True)
    async def changed(self, plugin: Site, emulator: httpx.AsyncClient) -> None:
        assert_ok(await plugin.http.post("/api/v1/sync/111", json={"title": "Harbour Coffee, Pier"}))
        await drift(emulator, google_updated={PIER: {"title": "Harbour Coffee Pier", "regularHours": WEEK}})
        await forget_calls(emulator)

    async def test_changes_of_the_provider_are_shown_in_words(self, alice_there: Browser) -> None:
        page = await alice_there.open(SITE)
        assert "The provider changed these fields" in page.text
        assert "No other field differs." in page.text
        assert "Harbour Coffee Pier" in page.text
        assert "Mon 09:00\N{EN DASH}17:00" in page.text
        assert "openDay" not in alice_there.answer.text

    async def test_changes_of_the_provider_are_in_the_list_once_they_were_read(self, alice_there: Browser) -> None:
        assert "The provider changed this profile." not in (await alice_there.open("/dashboard")).text
        await alice_there.open(SITE)
        assert "The provider changed this profile." in (await alice_there.open("/dashboard")).text
        assert SITE in (await alice_there.open("/dashboard?needs=drift")).links
        assert "Changed by the provider" in (await alice_there.http.get("/dashboard/sites.csv")).text
        await alice_there.open(SITE)
        await alice_there.send("/updates", mask="regularHours,title", decision="reject")
        assert "The provider changed this profile." not in (await alice_there.open("/dashboard")).text

    async def test_changes_of_the_provider_are_settled_one_by_one(
        self, alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
    ) -> None:
        await alice_there.open(SITE)
        page = await alice_there.send("/updates", mask="title", decision="accept")
        assert await patches(emulator) == ["title"]
        assert "The provider changed this field" in page.text
        assert assert_ok(await plugin.http.get(COMPARISON))["source"]["title"] == "Harbour Coffee Pier"
        page = await alice_there.send("/updates", mask="regularHours", decision="reject")
        assert "The provider changed" not in page.text
        assert (await document(emulator, PIER))["title"] == "Harbour Coffee Pier"

    @pytest.mark.parametrize("decision", ["accept", "reject"])
    async def test_changes_of_the_provider_are_settled_together(
        self, alice_there: Browser, emulator: httpx.AsyncClient, decision: str
    ) -> None:
        await alice_there.open(SITE)
        page = await alice_there.send("/updates", mask="regularHours,title", decision=decision)
        assert await patches(emulator) == ["regularHours,title"]
        assert "The provider changed" not in page.text
        assert ((await document(emulator, PIER))["regularHours"] == WEEK) is (decision == "accept")

    async def test_a_change_that_was_settled_meanwhile_is_a_problem(
        self, alice_there: Browser, emulator: httpx.AsyncClient
    ) -> None:
        await alice_there.open(SITE)
        await drift(emulator, google_updated={PIER: {}})
        page = await alice_there.send("/updates", 400, mask="title", decision="accept")
        assert "is not a field that the provider has changed" in page.text

    async def test_changes_in_review_are_named(self, alice_there: Browser, emulator: httpx.AsyncClient) -> None:
        await drift(emulator, switches={"edit_review_seconds": 60})
        await alice_there.open(SITE)
        page = await alice_there.send("/updates", mask="title", decision="reject")
        assert "In review at the provider: Name" in page.text

    async def test_changes_have_no_buttons_while_sync_is_off(self, alice_there: Browser) -> None:
        await alice_there.open(SITE)
        page = await alice_there.send("/switch")
        assert "Switch sync on to accept or reject changes." in page.text
        assert not any(form["action"].endswith("/updates") for form in page.forms)


class TestDifferences:
    @pytest.fixture(autouse=True)
    async def differing(self, plugin: Site, emulator: httpx.AsyncClient) -> None:
        body = {"phoneNumbers": {"primaryPhone": "+81 45-555-0199"}, "websiteUri": "https://harbour.example/ours"}
        assert_ok(await plugin.http.post("/api/v1/sync/111", json=body))
        theirs: dict[str, Any] = {"phoneNumbers": {"primaryPhone": "+81 45-555-0000"}, "websiteUri": None}
        await drift(emulator, locations={PIER: theirs})
        await forget_calls(emulator)

    async def test_the_choice_of_our_value_sends_one_field(
        self, alice_there: Browser, emulator: httpx.AsyncClient
    ) -> None:
        await alice_there.open(SITE)
        page = await alice_there.send("/differences", field="phoneNumbers.primaryPhone", choice="ours")
        assert await patches(emulator) == ["phoneNumbers"]
        assert (await document(emulator, PIER))["phoneNumbers"]["primaryPhone"] == "+81 45-555-0199"
        assert "websiteUri" not in await document(emulator, PIER)
        assert "differ" in page.text

    async def test_the_choice_of_their_value_changes_nothing_at_the_provider(
        self, alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
    ) -> None:
        await alice_there.open(SITE)
        for field in ("phoneNumbers.primaryPhone", "websiteUri", "phoneNumbers.additionalPhones"):
            await alice_there.send("/differences", field=field, choice="theirs")
            if not any(form["action"].endswith("/differences") for form in alice_there.page.forms):
                break
        assert await patches(emulator) == []
        compared = assert_ok(await plugin.http.get(COMPARISON))
        assert compared["differences"] == []
        assert compared["source"]["phoneNumbers"]["primaryPhone"] == "+81 45-555-0000"
        assert compared["source"]["websiteUri"] is None

    async def test_a_difference_that_is_gone_is_not_settled(
        self, alice_there: Browser, emulator: httpx.AsyncClient
    ) -> None:
        await alice_there.open(SITE)
        await alice_there.send("/differences", field="labels", choice="ours")
        assert await patches(emulator) == []

    async def test_the_status_of_an_edit_is_shown(self, alice_there: Browser, emulator: httpx.AsyncClient) -> None:
        await drift(emulator, google_updated={PIER: {"websiteUri": "https://maps.example/"}})
        page = await alice_there.open(SITE)
        assert "The public sees a value that the provider has set itself." in page.text
