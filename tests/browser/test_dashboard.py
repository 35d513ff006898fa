"""The dashboard as a person uses it, in a real Chromium, on the demo: from signing in to a revoked key."""

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from support.browser.tab import PICTURES, ROOT, Tab
from support.program import Server, controls, demo_token, environment, serving
from support.waiting import patience


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("demo"), "demo", "--port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def provider(demo: Server) -> str:
    """The address of the emulator."""
    return next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))


@contextlib.contextmanager
def tab(chromium: Any, demo: Server, **options: Any) -> Iterator[Tab]:
    opened = Tab(chromium, demo.url, **options)
    yield opened
    opened.context.close()
    assert opened.outside == []
    assert opened.console == []


def plugin(demo: Server, folder: Path, client_id: str, secret: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "profilesvc", "simulate", "plugin", "--url", demo.url, "--every", "3"]
    credentials = ["--client-id", client_id, "--client-secret", secret]
    return subprocess.Popen(
        [*command, *credentials], cwd=folder, env=environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, text=True
    )


def test_alice_from_a_new_key_to_a_repaired_site_and_bob_sees_none_of_it(
    chromium: Any, demo: Server, provider: str, tmp_path: Path
) -> None:
    with tab(chromium, demo) as alice:
        page = alice.sign_in("Alice Ito")
        page.get_by_role("link", name="Keys", exact=True).click()
        page.get_by_label("Name").fill("Station site")
        page.locator("select[name=location]").select_option("locations/112")
        page.get_by_role("button", name="Create the key").click()
        secret = page.get_by_label("Client secret").input_value()
        client_id = page.get_by_label("Client id").input_value()
        assert len(secret) == 64
        alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy the secret").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == secret
        page.screenshot(path=PICTURES / "dashboard-secret.png")
        page.reload()  # shows the key, and not the secret, and makes no second key
        page.get_by_role("heading", name="History", exact=True).wait_for()
        assert secret not in page.content()

        page.goto(f"{demo.url}/dashboard")
        entry = page.get_by_role("listitem").filter(has_text="Station site")
        assert "Never connected" in entry.text_content()
        site = plugin(demo, tmp_path, client_id, secret)
        try:
            entry.get_by_text("Online").wait_for()  # without reloading
            assert "plugin 2.4.1" in entry.text_content()
            _drift_and_repair(alice, controls(demo.folder / "var", provider))
            _post_an_offer(alice)
            page.goto(f"{demo.url}/dashboard/keys/{client_id}")
            page.get_by_role("link", name="Revoke…").click()
            page.get_by_role("button", name="Revoke permanently").click()
            page.wait_for_url("**/dashboard/keys")
            said, _ = site.communicate(timeout=patience(30))
        finally:
            site.kill()
        assert said.splitlines()[-1] == "stopped: the key was revoked or its secret was replaced; enter new credentials"
        assert site.returncode == 1

    with tab(chromium, demo) as bob:
        page = bob.sign_in("Bob Marsh")
        page.get_by_role("link", name="Marsh Bikes", exact=False).first.wait_for()
        assert "Harbour" not in page.content()
    for path in (f"/dashboard/keys/{client_id}", "/dashboard/sites/111", "/dashboard/sites/111/posts"):
        opened = Tab(chromium, demo.url)  # the console reports a 404, too
        opened.sign_in("Bob Marsh")
        assert opened.page.goto(f"{demo.url}{path}").status == 404
        assert "Harbour" not in opened.page.content()
        opened.context.close()


def _drift_and_repair(alice: Tab, provider: httpx.Client) -> None:
    page = alice.page
    changed = {"locations": {"locations/111": {"websiteUri": "https://drift.example/"}}}
    with provider:
        provider.put("state", json=changed).raise_for_status()
    page.goto(f"{alice.url}/dashboard/sites/111")
    row = page.get_by_role("row").filter(has_text="https://drift.example/")
    assert "Changed" in row.inner_text()
    page.screenshot(path=PICTURES / "dashboard-drift.png", full_page=True)
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("It would change these fields at the provider: Website").wait_for()
    page.get_by_role("button", name="Sync now").click()
    page.get_by_text("No field differs.").wait_for()
    assert "drift.example" not in page.content()


def _post_an_offer(alice: Tab) -> None:
    page = alice.page
    page.get_by_role("link", name="Posts", exact=True).click()
    page.get_by_label("Offer", exact=True).check()
    page.get_by_label("Title", exact=True).fill("Winter warmer")
    page.get_by_label("Coupon").fill("WARM10")
    page.get_by_label("Coupon").press("Tab")
    page.get_by_text("First day: is required").wait_for()  # while it is filled in
    for label, text in (
        ("First day", "2027-01-10"),
        ("Start time", "00:00"),
        ("Last day", "2027-01-31"),
        ("End time", "23:59"),
    ):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("Terms").fill("One each.")
    page.get_by_text("The form is complete.").wait_for()
    page.get_by_role("button", name="Post it").click()
    offer = page.get_by_role("article").filter(has_text="WARM10")
    offer.wait_for()
    offer.get_by_text("Live", exact=True).wait_for(timeout=60_000)  # by itself, once the provider has looked at it


def test_times_are_the_viewers(chromium: Any, demo: Server) -> None:
    seen = []
    for zone in ("Asia/Tokyo", "America/New_York"):
        with tab(chromium, demo, timezone_id=zone, locale="en-GB") as alice:
            alice.sign_in("Alice Ito").goto(f"{demo.url}/dashboard/sites/111")
            seen.append(alice.page.locator("#history ~ table time").first.inner_text())
    assert "UTC" not in "".join(seen)
    assert seen[0] != seen[1]


def test_the_keyboard_is_enough(chromium: Any, demo: Server) -> None:
    with tab(chromium, demo) as alice:
        page = alice.sign_in("Alice Ito")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        focused = ""
        for _ in range(30):  # the numbers, the first steps, and the box of the first site
            page.keyboard.press("Tab")
            focused = page.evaluate("document.activeElement.id")
            if focused.startswith("site-"):
                break
        assert focused.startswith("site-")
        with page.expect_response("**/sites/live*"):
            pass
        assert page.evaluate("document.activeElement.id") == focused
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_it_goes_on_after_a_restart_of_the_service(chromium: Any, tmp_path: Path) -> None:
    opened = None
    try:
        with serving(tmp_path, "demo", "--port", "0") as first:
            port = int(first.url.rpartition(":")[2])
            first.introduction()
            opened = Tab(chromium, first.url)
            page = opened.sign_in("Alice Ito")
            before = page.locator("#sites").get_attribute("data-poll")
        with serving(tmp_path, "demo", "--port", str(port)) as second:
            token = demo_token(second)
            beat = {"Authorization": f"Bearer {token}"}
            httpx.post(
                f"{second.url}/api/v1/api-keys/heartbeat", json={}, headers=beat, trust_env=False
            ).raise_for_status()
            page.locator(".site .online").first.wait_for()  # the same page, not reloaded, still signed in
            assert page.locator("#sites").get_attribute("data-poll") != before
    finally:
        if opened is not None:
            opened.context.close()


# Without the link to the guides, which are not on every machine.
_OUTLINE = """() => [...document.querySelectorAll('body, body :not(.help, .help *)')].map(element => {
  const words = [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data.trim());
  return [element.tagName, element.getAttribute('class') ?? '', ...words].join(' ');
})"""


def _drawn_from(picture: Path) -> str:
    """Return the digest of what a picture shows, which the picture itself contains."""
    with Image.open(picture) as opened:
        return str(opened.info.get("drawn from", ""))


def test_the_picture_of_the_readme(chromium: Any, tmp_path: Path) -> None:
    """It is drawn again if elements, words or style have changed, and CI fails until the new one is committed.

    Pixels are not compared, because fonts differ between machines.
    """
    kept, styles = ROOT / "docs" / "dashboard.png", sorted((ROOT / "src/profilesvc").glob("*/**/*.css"))
    with serving(tmp_path, "demo", "--port", "0") as fresh:
        beat = {"Authorization": f"Bearer {demo_token(fresh)}"}
        report = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
        sent = httpx.post(f"{fresh.url}/api/v1/api-keys/heartbeat", json=report, headers=beat, trust_env=False)
        sent.raise_for_status()
        with tab(chromium, fresh, viewport={"width": 1100, "height": 700}) as alice:
            page = alice.sign_in("Alice Ito")
            page.get_by_text("heartbeat just now").wait_for()
            shown, picture = json.dumps(page.evaluate(_OUTLINE)), page.screenshot()
    # How long the site of a young key was online, and the days of the chart.
    shown = re.sub(r"\d+(\.\d+)? %|\d{4}-\d\d-\d\d", "", shown)
    (PICTURES / "dashboard.png").write_bytes(picture)
    digest = hashlib.sha256(shown.encode() + b"".join(style.read_bytes() for style in styles)).hexdigest()
    if _drawn_from(kept) != digest:
        note = PngInfo()
        note.add_text("drawn from", digest)
        Image.open(io.BytesIO(picture)).save(kept, pnginfo=note, optimize=True)
        assert "CI" not in os.environ, "docs/dashboard.png was out of date: run `make browser` and commit it"
    assert kept.stat().st_size < 300_000
