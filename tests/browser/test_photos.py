"""Photos in a real browser: on a slow line, too large without a script, and a form that is sent twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser.tab import Tab
from support.pictures import png
from support.program import Server, serving

POSTS = "/dashboard/sites/111/posts"
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 50_000, "uploadThroughput": 50_000}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("photos"), "demo", "--port", "0") as server:
        yield server


def written(chromium: Any, demo: Server, tmp_path: Path, text: str, size: int, **options: Any) -> Tab:
    """The form of a post, filled in with a text and a photo of this size."""
    tab = Tab(chromium, demo.url, **options)
    tab.sign_in("Alice Ito")
    (tmp_path / "photo.png").write_bytes(png(size=size))
    tab.page.goto(f"{demo.url}{POSTS}")
    tab.page.locator("#summary").fill(text)
    tab.page.locator("#photo_file").set_input_files(tmp_path / "photo.png")
    return tab


def test_a_photo_arrives_on_a_slow_line(chromium: Any, demo: Server, tmp_path: Path) -> None:
    """300 ms and 400 kbit/s: it takes longer than the 10 s of other forms."""
    tab = written(chromium, demo, tmp_path, "From the harbour", 600_000)
    network = tab.context.new_cdp_session(tab.page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", SLOW)
    started = tab.page.evaluate("performance.now() + performance.timeOrigin")
    tab.page.get_by_role("button", name="Post it").click()
    tab.page.locator("#notice").wait_for(timeout=60_000)
    assert tab.page.evaluate("performance.now() + performance.timeOrigin") - started > 11_000
    tab.context.close()


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
def test_a_photo_that_is_too_large_loses_nothing(
    chromium: Any, demo: Server, tmp_path: Path, *, has_script: bool
) -> None:
    tab = written(chromium, demo, tmp_path, "Typed before", 12_000_000, java_script_enabled=has_script)
    if has_script:
        assert "more than 5 MB" in tab.page.locator("#photo_file-error").inner_text()
        assert tab.page.locator("#photo_file").input_value() == ""
    else:
        tab.page.get_by_role("button", name="Post it").click()
        tab.page.locator("#problems").wait_for()
        assert "10 KB to 5 MB" in tab.page.locator("#problems").inner_text()
    assert tab.page.locator("#summary").input_value() == "Typed before"
    tab.context.close()


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
def test_a_form_that_is_sent_twice_makes_one_post(
    chromium: Any, demo: Server, tmp_path: Path, *, has_script: bool
) -> None:
    text = f"Twice {has_script}"
    tab = written(chromium, demo, tmp_path, text, 20_000, java_script_enabled=has_script)
    tab.page.get_by_role("button", name="Post it").dblclick()
    tab.page.locator("#notice").wait_for()
    tab.page.goto(f"{demo.url}{POSTS}")
    tab.page.get_by_text(text).first.wait_for()
    assert tab.page.get_by_text(text).count() == 1
    tab.page.go_back()
    assert tab.page.locator("h1").count() == 1  # a page of ours, not an error of the browser
    tab.context.close()
