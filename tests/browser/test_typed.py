"""What was typed in a real Chromium: it is there again after another language was selected, and after a sign-in."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser.tab import Tab
from support.program import Server, serving

TYPED = "Fresh \u00e9clairs & <b>bread</b>"


@pytest.fixture
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("typed"), "demo", "--port", "0") as server:
        yield server


def test_a_form_is_filled_in_again(chromium: Any, demo: Server) -> None:
    tab = Tab(chromium, demo.url)
    tab.sign_in("Alice Ito")
    page = tab.page
    page.goto(f"{tab.url}/dashboard/sites/111/posts")
    page.locator("input[type=radio][value=EVENT]").check()
    page.locator("#summary").fill(TYPED)
    page.locator("#title").fill("Festival")
    page.get_by_role("button", name="Deutsch").click()
    page.locator("html[lang=de]").wait_for()
    _is_filled(page)
    page.get_by_role("button", name="English").click()  # again, without any typing
    page.locator("html[lang=en]").wait_for()
    _is_filled(page)
    page.reload()
    assert page.locator("#summary").input_value() == ""
    page.locator("input[type=radio][value=EVENT]").check()
    page.locator("#summary").fill(TYPED)
    page.locator("#title").fill("Festival")
    tab.context.clear_cookies()
    page.get_by_role("button", name="Save as a draft").click()
    page.get_by_text("Your session has ended.").wait_for()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_text("Alice Ito").first.click()
    page.get_by_role("heading", name="You are signed in again").wait_for()
    _is_filled(page)
    page.get_by_role("button", name="Save as a draft").click()
    page.get_by_text("The draft is stored. It is not at the provider yet.").wait_for()
    assert tab.outside == []
    assert tab.console == []


def _is_filled(page: Any) -> None:
    page.wait_for_function("document.getElementById('summary').value !== ''")
    assert page.locator("#summary").input_value() == TYPED
    assert page.locator("#title").input_value() == "Festival"
    assert page.locator("input[type=radio][value=EVENT]").is_checked()
