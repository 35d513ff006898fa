"""The page of the account in a real Chromium, with and without JavaScript: sessions, the copy, and the deletion."""

import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser.tab import Tab
from support.program import Server, serving

BOB = "bob@example.com"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0"


@pytest.fixture
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("account"), "demo", "--port", "0") as server:
        yield server


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_sessions_are_ended_and_the_account_is_deleted(chromium: Any, demo: Server, script: bool) -> None:
    options = {"java_script_enabled": script}
    here, there, third = (Tab(chromium, demo.url, **options, **more) for more in ({}, {"user_agent": FIREFOX}, {}))
    for tab in (here, there, third):
        tab.sign_in("Bob Marsh")
    _sessions(here, there, third)
    _deletion(here)
    for tab in (here, there, third):
        assert tab.outside == []
        assert [line for line in tab.console if "400 (Bad Request)" not in line] == []  # the wrong address
        tab.context.close()


def _sessions(here: Tab, there: Tab, third: Tab) -> None:
    page = here.page
    page.goto(f"{here.url}/dashboard/account")
    row = page.get_by_role("row", name="Firefox on Windows")
    row.get_by_role("button", name="End").click()
    page.get_by_text("The session is ended.").wait_for()
    assert row.count() == 0
    there.page.goto(f"{there.url}/dashboard/account")
    there.page.get_by_text("Your session has ended").wait_for()
    third.page.goto(f"{third.url}/dashboard/account")
    third.page.get_by_role("heading", name="Sessions").wait_for()
    page.get_by_role("button", name="End all other sessions").click()
    page.get_by_text("All other sessions are ended.").wait_for()
    third.page.reload()
    third.page.get_by_text("Your session has ended").wait_for()


def _deletion(tab: Tab) -> None:
    page = tab.page
    page.get_by_role("link", name="Delete your account").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="Download your data").click()
    with zipfile.ZipFile(started.value.path()) as file:
        assert json.loads(file.read("data.json"))["user"]["email"] == BOB
    page.get_by_label("Type your e-mail address").fill("alice@example.com")
    page.get_by_role("button", name="Delete my account").click()
    page.locator("#problems").get_by_text(f"must be {BOB}").wait_for()
    assert page.get_by_label("Type your e-mail address").input_value() == "alice@example.com"
    page.get_by_label("Type your e-mail address").fill(BOB)
    page.get_by_role("button", name="Delete my account").click()
    page.get_by_role("heading", name="Your account is deleted").wait_for()
    page.goto(f"{tab.url}/dashboard")
    page.get_by_role("link", name="Sign in").click()
    page.get_by_role("button", name="Alice Ito").wait_for()
    assert page.get_by_role("button", name="Bob Marsh").count() == 0
