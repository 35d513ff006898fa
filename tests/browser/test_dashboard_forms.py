"""The dashboard's forms and the parts that update themselves, as only a browser shows them."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.browser.tab import PHONE, PICTURES, Tab
from support.program import Server, controls, demo_token, serving

SITE = "/dashboard/sites/111"
IN_VIEW = """id => {
  const place = document.getElementById(id).getBoundingClientRect();
  return place.top >= 0 && place.top < innerHeight;
}"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("forms"), "demo", "--port", "0") as server:
        yield server


@pytest.fixture(params=[True, False], ids=["script", "no-script"])
def alice(request: pytest.FixtureRequest, chromium: Any, demo: Server) -> Iterator[Tab]:
    """Alice, signed in, with and without a script."""
    opened = Tab(chromium, demo.url, java_script_enabled=request.param)
    opened.sign_in("Alice Ito")
    yield opened
    opened.context.close()
    assert opened.outside == []


@pytest.fixture
def alice_live(chromium: Any, demo: Server) -> Iterator[Tab]:
    opened = Tab(chromium, demo.url)
    opened.sign_in("Alice Ito")
    yield opened
    opened.context.close()


def focused(page: Any) -> str:
    page.wait_for_timeout(300)
    found = page.locator(":focus")
    return str(found.get_attribute("id")) if found.count() else ""


def test_the_problems_are_in_view_have_the_focus_and_link_to_their_fields(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}/dashboard/keys")
    page.get_by_label("Name").fill(" ")
    page.get_by_label("Domain of the site").fill("not a domain")
    page.get_by_label("Valid until").fill("2020-01-01")
    page.get_by_role("button", name="Create the key").click()
    page.locator("#problems").wait_for()
    assert focused(page) == "problems"
    assert page.evaluate(IN_VIEW, "problems")
    assert page.locator("#problems li").count() == 3
    page.locator("#problems").get_by_role("link", name=re.compile("Valid until")).click()
    assert focused(page) == "expires_on"
    assert page.evaluate(IN_VIEW, "expires_on")
    assert page.get_by_label("Domain of the site").input_value() == "not a domain"


def test_a_post_changes_its_kind_and_keeps_its_text(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}{SITE}/posts")
    page.locator("#summary").fill("Typed before")
    page.get_by_label("Event", exact=True).check()
    assert page.locator("#title").is_visible()
    assert not page.locator("#coupon").is_visible()
    page.get_by_label("Offer", exact=True).check()
    assert page.locator("#coupon").is_visible()
    assert not page.locator("#action").is_visible()
    page.locator("#coupon").fill("WARM10")
    page.locator("#coupon").press("Enter")  # sends the form, and nothing else
    page.locator("#problems").wait_for()
    assert focused(page) == "problems"
    assert [page.locator(f"#{name}").input_value() for name in ("summary", "coupon")] == ["Typed before", "WARM10"]
    page.get_by_label("Update", exact=True).check()
    page.get_by_role("button", name="Post it").click()
    page.get_by_role("article").filter(has_text="Typed before").first.wait_for()


def test_a_reply_that_is_too_long_stays_at_its_review(alice: Tab) -> None:
    page, text = alice.page, "é" * 3_000  # 6,000 bytes
    page.goto(f"{alice.url}{SITE}/reviews")
    article = page.get_by_role("article").nth(2)
    article.locator("textarea").fill(text)
    article.get_by_role("button", name=re.compile("^Reply")).click()
    page.locator("#problems").wait_for()
    assert page.locator("#problems").is_visible()
    assert page.get_by_role("article").nth(2).locator("textarea").input_value() == text
    page.locator("#problems a").click()
    assert page.evaluate("document.activeElement.value.length") == 3_000


def test_errors_are_accessible(alice_live: Tab) -> None:
    page = alice_live.page
    for path in ("/dashboard/nothing", f"{SITE}x/posts", "/dashboard/keys/x"):
        page.goto(f"{alice_live.url}{path}")
        assert page.get_by_role("navigation", name="Dashboard").is_visible()
        alice_live.assert_accessible()
    page.goto(f"{alice_live.url}{SITE}/posts?kind=EVENT")
    page.get_by_role("button", name="Post it").click()
    page.locator("#problems").wait_for()
    alice_live.assert_accessible()


def test_a_form_that_asks_is_not_sent_before_it_was_answered(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}/dashboard/keys")
    page.locator("a[href^='/dashboard/keys/svcid']").first.click()
    page.get_by_role("button", name="Deactivate").click()
    page.wait_for_timeout(500)
    assert page.get_by_role("button", name="Deactivate").is_visible()  # the browser wants the box ticked
    page.get_by_text("The secret leaked").click()
    assert page.get_by_role("button", name="Replace the leaked secret").is_visible()


def test_inputs_are_not_bold_and_dead_buttons_not_there(chromium: Any, demo: Server) -> None:
    for script in (True, False):
        opened = Tab(chromium, demo.url, java_script_enabled=script)
        page = opened.sign_in("Alice Ito")
        page.goto(f"{demo.url}/dashboard/keys")
        style = "(e, pseudo) => getComputedStyle(e, pseudo).fontWeight"
        for pseudo in (None, "::placeholder"):
            assert page.locator("#primary_domain").evaluate(style, pseudo) == "400"
        page.get_by_label("Name").fill("Copied")
        page.locator("#location").select_option("locations/112")
        page.get_by_role("button", name="Create the key").click()
        page.get_by_label("Client secret").wait_for()
        copy = page.get_by_role("button", name="Copy")
        if script:
            copy.nth(1).wait_for()  # a script adds them
        assert copy.count() == (2 if script else 0)
        opened.context.close()


def test_a_table_of_hours_has_columns_that_can_be_read(alice_live: Tab, demo: Server) -> None:
    provider = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
    hours = [
        {"openDay": day, "openTime": {"hours": 10}, "closeDay": day, "closeTime": {"hours": 17}}
        for day in ("MONDAY", "TUESDAY", "FRIDAY")
    ]
    change = {"locations": {"locations/111": {"regularHours": {"periods": hours}}}}
    with controls(demo.folder / "var", provider) as control:
        control.put("state", json=change).raise_for_status()
    page = alice_live.page
    for width in (1280, 700, PHONE["width"]):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{alice_live.url}{SITE}")
        row = page.get_by_role("table", name="Fields that differ").get_by_role("row").filter(has_text="Opening hours")
        assert "10:00" in row.inner_text()
        assert min(cell.bounding_box()["width"] for cell in row.locator("td").all()) >= 80
        assert page.evaluate("document.documentElement.scrollHeight") < 3_000
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=PICTURES / f"dashboard-hours-{width}.png", full_page=True)


def beat(demo: Server, **report: str) -> None:
    headers = {"Authorization": f"Bearer {demo_token(demo)}"}
    url = f"{demo.url}/api/v1/api-keys/heartbeat"
    httpx.post(url, json=report, headers=headers, trust_env=False).raise_for_status()


def test_a_part_that_is_renewed_keeps_what_the_reader_does(alice_live: Tab, demo: Server) -> None:
    page = alice_live.page
    page.set_viewport_size({"width": 500, "height": 400})
    page.goto(f"{alice_live.url}/dashboard")
    link = page.locator("#sites a").last
    link.focus()
    name, scrolled = link.get_attribute("id"), page.evaluate("scrollY")
    assert scrolled > 0
    top = link.bounding_box()["y"]
    page.evaluate("""() => {
      const chosen = document.querySelector('#sites h2').firstChild;
      getSelection().selectAllChildren(chosen);
      window.kept = document.activeElement;
    }""")
    text = page.evaluate("getSelection().toString()")
    beat(demo, plugin_version="9.9.9")
    page.get_by_text("plugin 9.9.9").first.wait_for()
    assert page.evaluate("document.activeElement === window.kept")
    assert page.evaluate("document.activeElement.id") == name
    assert page.evaluate("getSelection().toString()") == text
    assert abs(page.locator(f"#{name}").bounding_box()["y"] - top) < 2


def test_text_in_a_part_that_is_renewed_stays(alice_live: Tab) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}{SITE}/posts")
    page.locator("#summary").fill("Soon reviewed")
    page.get_by_role("button", name="Post it").click()
    page.get_by_role("article").filter(has_text="Soon reviewed").wait_for()
    page.locator("#summary").fill("Half a sen")
    page.locator("#posts details").nth(1).locator("summary").click()
    box = page.locator("#posts details").nth(1).locator("input[name=sure]")
    box.check()
    new = page.get_by_role("article").filter(has_text="Soon reviewed")
    new.get_by_text("Live", exact=True).wait_for(timeout=60_000)
    assert box.is_checked()
    assert page.locator("#posts details[open]").count() == 1
    assert page.locator("#summary").input_value() == "Half a sen"


def test_a_hidden_page_does_not_ask(alice_live: Tab) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}/dashboard")
    with page.expect_response("**/sites/live*"):
        pass
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    hide = """hidden => {
      Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(7_000)
    assert asked == []
    with page.expect_response("**/sites/live*", timeout=2_000):  # at once
        page.evaluate(hide, False)


def test_a_lost_connection_is_shown_until_it_is_back(alice_live: Tab, demo: Server) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}/dashboard")
    notice = page.locator("#connection")
    assert not notice.is_visible()
    page.context.set_offline(True)
    notice.get_by_text("The connection to the service is lost").wait_for()
    page.context.set_offline(False)
    # Not wait_for_function: it evaluates text in the page, which the page's Content-Security-Policy forbids.
    page.locator("#connection:empty").wait_for(state="attached")
    beat(demo, plugin_version="9.9.8")
    page.get_by_text("plugin 9.9.8").first.wait_for()


def test_a_lost_connection_is_shown_on_a_page_that_is_not_renewed(alice_live: Tab) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}{SITE}/reviews")
    page.route("**/*", lambda route: None)  # no answer, as from a network that drops packets
    page.locator("#connection").get_by_text("The connection to the service is lost").wait_for(timeout=5_000)
    page.unroute_all(behavior="ignoreErrors")


def test_back_shows_a_form_with_its_problems(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}{SITE}/posts?kind=EVENT")
    page.locator("#summary").fill("Typed before")
    page.get_by_role("button", name="Post it").click()
    page.locator("#problems").wait_for()
    page.get_by_role("link", name="Reviews").click()
    page.get_by_role("heading", name="Reviews").wait_for()
    page.go_back()
    page.get_by_role("button", name="Post it").wait_for()
    assert page.locator("#summary").input_value() == "Typed before"


def test_a_success_is_reported_once(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}{SITE}/posts")
    page.locator("#summary").fill("Reported")
    page.get_by_role("button", name="Post it").click()
    notice = page.get_by_role("status").filter(has_text="The post was sent to the provider.")
    notice.wait_for()
    if "notice=" not in page.url:  # a script has removed it
        page.reload()
        assert notice.count() == 0


def test_a_counter_counts_as_the_provider_does(alice_live: Tab) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}{SITE}/posts")
    page.locator("#summary").fill("Grüße")
    page.locator("#summary + .counter").get_by_text("5 of 1,500").wait_for()
    page.goto(f"{alice_live.url}{SITE}/reviews")
    page.locator("textarea").first.fill("Grüße")
    page.locator("textarea + .counter").first.get_by_text("7 of 4,096").wait_for()


def test_a_session_that_ended_does_not_take_typed_text_away(alice_live: Tab) -> None:
    page = alice_live.page
    page.goto(f"{alice_live.url}{SITE}/posts")
    page.locator("#summary").fill("Half a sentence")
    page.context.clear_cookies()
    page.locator("#summary").press("Tab")  # the form is checked
    page.get_by_text("Your session has ended.").wait_for()
    assert page.locator("#summary").input_value() == "Half a sentence"
    page.goto(f"{alice_live.url}/dashboard")
    assert "/sign-in" in page.url


def test_times_name_their_zone(alice: Tab) -> None:
    page = alice.page
    page.goto(f"{alice.url}{SITE}/posts")
    times = page.locator("time[data-at]").all_inner_texts()
    assert times
    assert all(re.search(r"(UTC|GMT[+-]\d+)$", text) for text in times)
