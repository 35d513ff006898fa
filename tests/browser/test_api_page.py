"""The API's page `/docs` in a real Chromium: guides, Authorize, suggested values, and a reload keeps the token."""

import json
from pathlib import Path
from typing import Any

from support.browser.jupyter import PICTURES
from support.program import serving


def authorize(page: Any, key: dict[str, Any]) -> None:
    page.locator(".auth-wrapper .btn.authorize").first.click()
    flow = page.locator(".auth-container", has_text="clientCredentials")
    flow.locator("#client_id_clientCredentials").fill(key["client_id"])
    flow.locator("#client_secret_clientCredentials").fill(key["client_secret"])
    flow.get_by_label("Select all").or_(flow.get_by_text("select all", exact=True)).first.click()
    flow.get_by_role("button", name="Apply given OAuth2 credentials").click()
    flow.get_by_role("button", name="Remove authorization").wait_for()
    page.get_by_role("button", name="Close").first.click()


def request(page: Any, operation: str) -> str:
    """Send a request with the values that the page suggests; the status."""
    section = page.locator(f"#operations-{operation}")
    section.locator(".opblock-summary-control").click()
    section.get_by_role("button", name="Try it out").click()
    section.get_by_role("button", name="Execute").click()
    status = section.locator(".live-responses-table .response-col_status").nth(1)
    status.wait_for()
    return str(status.inner_text()).strip()


def test_the_page_links_the_guides(page: Any, tmp_path: Path) -> None:
    (tmp_path / "site" / "docs").mkdir(parents=True)
    (tmp_path / "site" / "docs" / "index.html").write_text("<h1>Start here</h1>")
    with serving(tmp_path, "demo", "--port", "0", GUIDES_FOLDER=str(tmp_path / "site")) as demo:
        page.goto(f"{demo.url}/docs")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Guides", exact=True).click()
        opened.value.get_by_role("heading", name="Start here").wait_for()


def test_authorize_fetches_a_token_that_a_reload_keeps(page: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo:
        key = json.loads((tmp_path / "var" / "demo.json").read_text("utf-8"))
        page.goto(f"{demo.url}/docs")
        authorize(page, key)
        assert request(page, "Connection-send_heartbeat").startswith("200")
        assert request(page, "Locations-get_location").startswith("200")
        page.goto("about:blank")
        page.goto(f"{demo.url}/docs")
        assert request(page, "Connection-send_heartbeat").startswith("200")
        page.screenshot(path=PICTURES / "docs.png")
