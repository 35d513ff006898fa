"""The dashboard of an agency with 300 sites, in a real Chromium."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser.dashboard import COOKIE
from support.browser.tab import DESK, PHONE, PICTURES, Tab
from support.pictures import png
from support.program import Server, command, serving

DENSE = (
    "/dashboard",
    "/dashboard?needs=drift&select=all",
    "/dashboard?q=nothing",
    "/dashboard/keys",
    "/dashboard/audit",
    "/dashboard/audit?kind=webhooks",
)


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A service with 300 sites of one owner, and the owner's session."""
    folder = tmp_path_factory.mktemp("agency")
    amounts = ("--keys", "300", "--posts", "0", "--history", "0", "--sites-per-user", "300")
    for words in (("db", "upgrade"), ("db", "generate", *amounts), ("users", "list")):
        done = command(folder, *words)
        assert done.returncode == 0, done.stderr
    email = next(word for word in done.stdout.split() if "@" in word)
    with serving(folder, "serve", "--port", "0") as server:
        yield server, command(folder, "users", "token", email, BASE_URL=server.url).stdout.strip()


@contextlib.contextmanager
def owner(chromium: Any, agency: tuple[Server, str], **options: Any) -> Iterator[Tab]:
    server, session = agency
    opened = Tab(chromium, server.url, **options)
    opened.context.add_cookies([{"name": COOKIE, "value": session, "url": server.url}])
    yield opened
    opened.context.close()
    assert opened.outside == []
    assert opened.console == []


def in_view(page: Any, text: str) -> bool:
    """Whether a text is within the window, without scrolling."""
    found = page.get_by_text(text)
    found.wait_for()
    box = found.bounding_box()
    return box is not None and 0 <= box["y"] < page.viewport_size["height"] - box["height"]


def test_the_sites_that_drifted_are_found_while_typing_and_fixed(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard")
        page.get_by_text("1 to 50 of 300").wait_for()
        assert page.get_by_role("link", name="3 differ at the provider").is_visible()
        page.get_by_label("Problem").select_option("drift")
        page.get_by_text("3 of 300 sites match.").wait_for()  # without the button
        assert page.url.endswith("?needs=drift&sort=attention")
        box = page.get_by_role("searchbox", name="Search")
        box.press_sequentially("shop 101")
        page.get_by_text("1 of 300 sites match.").wait_for()
        assert page.evaluate("document.activeElement.id") == "q"
        page.locator("tbody th a").click()
        page.get_by_role("heading", level=1).wait_for()
        page.go_back()
        page.get_by_text("1 of 300 sites match.").wait_for()
        assert box.input_value() == "shop 101"
        with page.expect_response("**/sites/live*") as polled:  # the list goes on
            pass
        assert polled.value.status == 204
        page.locator("tbody th a").click()
        page.get_by_role("button", name="Keep ours of Name").click()
        assert in_view(page, "Your value was sent to the provider.")
        assert page.get_by_role("heading", level=1).inner_text() == "Shop 101"
        page.get_by_role("button", name="Take theirs of Phone").click()
        assert in_view(page, "The provider's value is yours now.")
        assert in_view(page, "No field differs.")


def test_an_offer_with_a_photo_is_sent_to_twelve_sites(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard?sort=name")
        for number in range(12):
            page.locator("tbody input[type=checkbox]").nth(number).check()
        page.get_by_role("button", name="Write a post").click()
        assert page.get_by_role("checkbox").count() == 12  # the other sites are folded
        page.get_by_role("radio", name="Offer").check()
        page.get_by_label("Title").fill("x" * 60)
        assert page.get_by_label("Title").input_value() == "x" * 58
        page.get_by_text("58 of 58").wait_for()
        page.get_by_label("First day").fill("2030-05-01")
        page.get_by_label("Last day").fill("2030-05-02")
        page.get_by_label("Upload a photo").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": png()})
        page.get_by_role("button", name="Show the preview").last.click()
        page.get_by_text("2030-05-01 00:00 to 2030-05-02 23:59").wait_for()
        page.get_by_role("button", name="Post to 12 sites").click()
        page.get_by_text("12 of 12 posts were sent to the provider.").wait_for()
        page.get_by_role("link", name="Sites", exact=True).click()
        page.get_by_role("link", name="Calendar").click()
        page.get_by_text("Days and times are in Asia/Tokyo.").wait_for()
        page.go_back()
        page.get_by_role("heading", name="Sites", exact=True).wait_for()


def test_a_leaked_secret_is_replaced_and_the_audit_is_exported(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard/keys?q=site+42")
        page.get_by_role("link", name="Site 42", exact=True).click()
        page.get_by_text("The secret leaked").click()
        page.get_by_label("Yes, end the old secret").check()
        page.get_by_role("button", name="Replace the leaked secret").click()
        page.get_by_text("The old secret and all tokens have ended.").wait_for()
        page.get_by_role("link", name="Audit").click()
        with page.expect_download() as exported:
            page.get_by_role("link", name="CSV").click()
        assert "New secret,Site 42," in Path(exported.value.path()).read_text("utf-8")


def test_an_offline_site_leads_to_the_errors_of_its_key(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard?state=offline&sort=name")
        page.locator("tbody th a").last.click()
        page.get_by_text("No heartbeat for a day or more.").wait_for()
        page.get_by_role("link", name="Last errors of the key").click()
        assert in_view(page, "No error in the last 7 days.")


def test_a_selection_survives_an_update(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard?q=shop+10")
        first = page.locator("tbody input[type=checkbox]").first
        first.check()
        page.evaluate("document.getElementById('sites').dataset.poll = '/dashboard/sites/live?q=shop+10'")
        with page.expect_response("**/sites/live*") as polled:
            pass
        assert polled.value.status == 200
        assert first.is_checked()
        page.get_by_role("button", name="Deactivate keys").click()
        page.get_by_text("This is what would happen to 1 of 1 site").wait_for()
        page.get_by_role("button", name="Deactivate these keys").click()
        page.get_by_text("1 done, none failed.").wait_for()
        page.reload()  # shows the list, and does not send the form again
        page.get_by_role("heading", name="Sites", exact=True).wait_for()


def test_the_location_of_a_key_is_found_while_typing(chromium: Any, agency: tuple[Server, str]) -> None:
    with owner(chromium, agency) as tab:
        page = tab.page
        page.goto(f"{tab.url}/dashboard/keys")
        page.get_by_label("Name", exact=True).fill("Second key")
        page.get_by_label("Find the location").press_sequentially("shop 250")
        page.get_by_role("radio", name="Shop 250").check()
        assert page.get_by_role("radio").count() == 1
        page.get_by_role("button", name="Create the key").click()
        assert len(page.get_by_label("Client secret").input_value()) == 64


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_lists_of_many_are_accessible(
    chromium: Any, agency: tuple[Server, str], scheme: str, viewport: dict[str, int]
) -> None:
    with owner(chromium, agency, color_scheme=scheme, viewport=viewport) as tab:
        for number, path in enumerate(DENSE):
            tab.page.goto(f"{tab.url}{path}")
            tab.assert_accessible()
            width = "phone" if viewport is PHONE else "desk"
            picture = PICTURES / f"agency-{number}-{scheme}-{width}.png"
            tab.page.screenshot(path=picture, full_page="needs" in path or "nothing" in path)


def test_the_list_is_drawn_soon_on_a_slow_network(chromium: Any, agency: tuple[Server, str]) -> None:
    """At 300 ms and 400 kbit/s the compressed page takes less than half a second after one round trip."""
    with owner(chromium, agency) as tab:
        tab.page.goto(f"{tab.url}/dashboard")
        size, redirects = tab.page.evaluate(
            "performance.getEntriesByType('navigation').flatMap(one => [one.encodedBodySize, one.redirectCount])"
        )
        assert 0 < size < 20_000
        assert redirects == 0
