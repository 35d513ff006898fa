"""The site of `make docs` in a real Chromium, from this machine only: tabs, copy buttons, search, themes, phones."""

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser.jupyter import PICTURES, ROOT
from support.browser.tab import PHONE

SITE = ROOT / "build" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("*/*.html"))
READERS = ("for-plugin-authors", "for-integrators", "for-operators", "for-engineers")
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the folder `docs` of the site."""
    if not (SITE / "docs" / "index.html").exists():
        pytest.skip("there is no site: run `make docs`")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=SITE))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_tab_selects_the_language_of_the_whole_page(page: Any, site: str) -> None:
    page.goto(f"{site}/docs/quickstart.html")
    sets = page.locator(".sd-tab-set").count()
    assert sets > 1
    page.locator(".sd-tab-label", has_text="PHP").last.click()
    assert page.locator(".sd-tab-set > input:checked + label", has_text="PHP").count() == sets
    shown = [block.inner_text() for block in page.locator(".sd-tab-content:visible").all()]
    assert len(shown) == sets
    assert "$" in shown[0]
    page.goto(f"{site}/docs/quickstart.html")
    assert page.locator(".sd-tab-set > input:checked + label", has_text="PHP").count() == sets


def test_a_copy_button_copies_the_block(page: Any, site: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site}/docs/quickstart.html")
    block = page.locator("div.highlight-sh").first
    block.hover()
    block.locator("button.copybtn").click()
    page.locator("button.copybtn.success").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").strip() == block.locator("pre").inner_text().strip()


def test_the_search_finds_a_page(page: Any, site: str) -> None:
    page.goto(f"{site}/docs/index.html")
    page.locator("input.sidebar-search").fill("idempotency")
    page.locator("input.sidebar-search").press("Enter")
    page.locator(".search li a", has_text=re.compile("^Reference")).first.click()
    page.wait_for_url("**/docs/reference.html*")


def test_next_and_previous_lead_through_the_pages(page: Any, site: str) -> None:
    page.goto(f"{site}/docs/quickstart.html")
    page.locator(".related-pages a.next-page").click()
    page.wait_for_url("**/docs/plugin-authors.html")
    page.locator(".related-pages a.prev-page").click()
    page.wait_for_url("**/docs/quickstart.html")


def test_the_dark_theme_stays(page: Any, site: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site}/docs/index.html")
    dark = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(BACKGROUND) != dark
    while page.evaluate(BACKGROUND) != dark:  # the button goes through automatic, light and dark
        page.locator("button.theme-toggle:visible").first.click()
    page.goto(f"{site}/docs/errors.html")
    assert page.evaluate(BACKGROUND) == dark


def test_every_page_fits_on_a_phone(page: Any, site: str) -> None:
    page.set_viewport_size(PHONE)
    wide = []
    for name in PAGES:
        page.goto(f"{site}/{name}", wait_until="load")
        if page.evaluate(TOO_WIDE):
            wide.append(name)
        for theme in ("dark", "light") if Path(name).stem in READERS else ():
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=PICTURES / f"site-{Path(name).stem}-{theme}.png", full_page=True)
    assert wide == []
    page.locator("label[for=__navigation]:visible").first.click()
    page.locator(".sidebar-tree a:visible", has_text="Quickstart").first.click()
    page.wait_for_url("**/docs/quickstart.html")


CUT = """() => Array.from(document.querySelectorAll('article pre, article table'))
  .filter(part => part.scrollWidth > Math.max(part.clientWidth, part.parentElement.clientWidth))
  .map(part => part.textContent.trim().slice(0, 40))"""


@pytest.mark.parametrize("name", ["errors", "plugin-authors", "quickstart", "reference", "settings", "test-errors"])
def test_code_and_tables_are_not_cut_on_a_phone(page: Any, site: str, name: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{site}/docs/{name}.html", wait_until="load")
    assert page.evaluate(CUT) == []


def test_a_table_has_its_columns_where_they_fit(page: Any, site: str) -> None:
    page.goto(f"{site}/docs/errors.html", wait_until="load")
    assert page.locator("table.stacked").count() == 0
    page.set_viewport_size(PHONE)
    page.locator("table.stacked").first.wait_for()
    assert page.locator("td[data-label=Status]").first.inner_text() == "400"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("table:not(.stacked)").first.wait_for()


def test_every_code_of_the_reference_leads_to_its_section(page: Any, site: str) -> None:
    page.goto(f"{site}/docs/errors.html")
    sections = set(page.evaluate("[...document.querySelectorAll('section[id]')].map(section => section.id)"))
    table = page.evaluate("[...document.querySelectorAll('table a[href^=\"#\"]')].map(a => a.hash.slice(1))")
    page.goto(f"{site}/docs/api.html")
    links = page.evaluate("[...document.querySelectorAll('a[href^=\"errors.html#\"]')].map(a => a.hash.slice(1))")
    codes = page.evaluate("[...document.querySelectorAll('td > code')].map(c => c.textContent)")
    assert set(links) == set(table)
    assert set(table) <= sections
    assert [code for code in codes if re.fullmatch("[A-Z]+_[A-Z_]+", code) and code.lower() in table] == []
