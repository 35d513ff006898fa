"""A new customer in a real Chromium, from an empty account to a disconnected login: no terminal and no operator."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.browser.tab import DESK, PHONE, PICTURES, Tab
from support.program import Server, controls, serving

ERIN, EMAIL, CHOSEN = "100008", "erin@example.com", ("Aoba", "Hodogaya", "Isogo")
SITE, AOBA = "/dashboard/sites/801", "locations/801"
MINUTE = 60_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("newcomer"), "demo", "--port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def provider(demo: Server) -> Iterator[httpx.Client]:
    """The controls of the emulator, which play the provider."""
    address = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
    with controls(demo.folder / "var", address) as client:
        yield client


def test_from_an_empty_account_to_a_disconnected_login(chromium: Any, demo: Server, provider: httpx.Client) -> None:
    erin = Tab(chromium, demo.url)
    page = erin.sign_in("Erin Park")
    assert "Park Bakery" not in page.content()
    _connect(erin)
    _choose_three_of_eight(erin)
    _create_a_key(erin)
    _see_in_the_list_what_the_provider_changed(erin, provider)
    _settle_what_the_provider_changed(erin, provider)
    _edit_the_profile(erin, provider)
    _reconnect(erin, provider)
    _disconnect(erin)
    assert erin.outside == []
    rejected = "Failed to load resource"  # a form with problems, and the icon that the provider's page lacks
    assert [line for line in erin.console if not line.startswith(rejected)] == []
    erin.context.close()


def _connect(erin: Tab) -> None:
    page = erin.page
    page.get_by_role("link", name="Connections", exact=True).click()
    page.get_by_role("link", name="Connect a login").click()
    _consent(page)


def _consent(page: Any) -> None:
    page.get_by_label(EMAIL).check()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("link", name=EMAIL).wait_for()


def _choose_three_of_eight(erin: Tab) -> None:
    page = erin.page
    page.get_by_role("link", name=EMAIL).click()
    assert page.locator("input[name=locations]").count() == 8
    for town in CHOSEN:
        page.get_by_label(f"Park Bakery, {town}").check()
    page.get_by_label("New business").fill("Park Bakery")
    page.get_by_role("button", name="Import the chosen locations").click()
    page.get_by_text("Imported: 3.").wait_for()
    page.goto(f"{erin.url}/dashboard")
    for town in CHOSEN:
        assert page.get_by_text(f"Park Bakery, {town}").first.is_visible()
    assert "Tsurumi" not in page.content()


def _create_a_key(erin: Tab) -> None:
    page = erin.page
    page.get_by_role("link", name="Keys", exact=True).click()
    page.get_by_label("Name").fill("Aoba website")
    page.locator("select[name=location]").select_option(AOBA)
    page.get_by_role("button", name="Create the key").click()
    assert len(page.get_by_label("Client secret").input_value()) == 64


def _see_in_the_list_what_the_provider_changed(erin: Tab, provider: httpx.Client) -> None:
    """The provider pushes a notification, so that the open list shows the change although no page asks for it."""
    page = erin.page
    page.goto(f"{erin.url}{SITE}")
    page.get_by_role("button", name="Switch sync on").click()
    page.get_by_role("heading", name="Sync is on").wait_for()
    page.goto(f"{erin.url}/dashboard")
    assert page.get_by_text("The provider changed this profile.").count() == 0
    changed = {"title": "Park Bakery Aoba", "websiteUri": "https://maps.example/aoba"}
    provider.put("state", json={"google_updated": {AOBA: changed}}).raise_for_status()
    card = page.locator("#card-801")
    card.get_by_text("The provider changed this profile.").wait_for(timeout=MINUTE)
    assert page.url == f"{erin.url}/dashboard"
    assert page.get_by_role("link", name="1 differs at the provider").is_visible()


def _settle_what_the_provider_changed(erin: Tab, provider: httpx.Client) -> None:
    page = erin.page
    page.get_by_role("link", name="Park Bakery, Aoba", exact=True).click()
    page.get_by_text("The provider's profile differs from the last sync").first.wait_for()
    page.wait_for_load_state("networkidle")
    region = page.get_by_role("region", name="The provider changed these fields")
    assert "Park Bakery Aoba" in region.inner_text()
    page.screenshot(path=PICTURES / "site-changes.png", full_page=True)
    for scheme in ("light", "dark"):
        for viewport in (DESK, PHONE):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(viewport)
            erin.assert_accessible()
    page.set_viewport_size(DESK)
    page.get_by_role("button", name="Accept the provider's change of Name").click()
    page.get_by_role("heading", name="Park Bakery Aoba", exact=True).wait_for()
    page.get_by_role("button", name="Reject the provider's change of Website").click()
    page.get_by_role("region", name="The provider changed").wait_for(state="detached")
    state = provider.get("state").json()["locations"][AOBA]
    assert (state["document"]["title"], state["google_updated"]) == ("Park Bakery Aoba", {})
    assert state["document"]["websiteUri"] == "https://park.example/aoba"
    page.goto(f"{erin.url}/dashboard")
    assert page.get_by_text("The provider changed this profile.").count() == 0
    page.goto(f"{erin.url}{SITE}")


def _edit_the_profile(erin: Tab, provider: httpx.Client) -> None:
    page = erin.page
    page.get_by_role("link", name="Profile", exact=True).click()
    for scheme in ("light", "dark"):
        for viewport in (DESK, PHONE):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(viewport)
            erin.assert_accessible()
    page.set_viewport_size(DESK)
    page.screenshot(path=PICTURES / "site-profile.png", full_page=True)
    page.get_by_label("Sunday").fill("noon")
    page.get_by_label("Phone", exact=True).fill("+81 45-555-0899")
    page.locator("button:not(.unseen)", has_text="Save and send").click()
    page.get_by_role("heading", name="There is a problem").wait_for()
    assert page.get_by_label("Phone", exact=True).input_value() == "+81 45-555-0899"
    page.get_by_label("Sunday").fill("09:00-13:00")
    page.locator("button:not(.unseen)", has_text="Save and send").click()
    page.get_by_text("The profile was sent to the provider.").wait_for()
    there = provider.get("state").json()["locations"][AOBA]["document"]
    assert there["phoneNumbers"] == {"primaryPhone": "045-555-0899"}  # the demo's provider has a spelling of its own
    assert there["regularHours"]["periods"][-1]["openDay"] == "SUNDAY"


def _reconnect(erin: Tab, provider: httpx.Client) -> None:
    page = erin.page
    login = {"email": EMAIL, "accounts": ["accounts/8"], "revoked": True}
    provider.put("state", json={"logins": {ERIN: login}}).raise_for_status()
    page.goto(f"{erin.url}{SITE}")
    page.get_by_text("must be connected again").first.wait_for()
    page.get_by_role("link", name="Connections", exact=True).click()
    page.get_by_text("Ended by the provider").wait_for()
    page.get_by_role("link", name="Connect it again").click()
    _consent(page)
    assert "Ended by the provider" not in page.content()
    page.goto(f"{erin.url}{SITE}")
    page.get_by_text("No field differs.").wait_for()


def _disconnect(erin: Tab) -> None:
    page = erin.page
    page.get_by_role("link", name="Connections", exact=True).click()
    page.get_by_role("link", name=EMAIL).click()
    page.get_by_label("Yes, disconnect the login and delete this data.").check()
    page.get_by_role("button", name="Disconnect").click()
    page.get_by_text("You have not connected a login yet.").wait_for()
    page.goto(f"{erin.url}/dashboard")
    assert "Park Bakery," not in page.content()
