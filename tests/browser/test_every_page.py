"""Every page of the dashboard in a real Chromium: axe in light and dark at three widths, and pictures in four forms."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser.pages import EMPTY, PAGES, PUBLIC
from support.browser.tab import PICTURES, Tab
from support.program import Server, demo_token, serving

WIDTHS = {"phone": 320, "tablet": 768, "desk": 1440}
FORMS = {("desk", "light"): "light", ("desk", "dark"): "dark", ("phone", "light"): "phone"}  # of the pictures
EMAIL = "alice@example.com"
OTHER = "team@harbour.example"
_LINK = re.compile(r"/dashboard/(alerts/\w+/[\w.~=-]+)")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("pages"), "demo", "--port", "0") as server:
        demo_token(server)  # the key of the demo, with its first heartbeat to come
        yield server


def _id(tab: Tab) -> str:
    return str(tab.page.url).partition("?")[0].rpartition("/")[2]


def _key(tab: Tab) -> str:
    """Create a key and roll its secret, so that every part of its page is there."""
    page = tab.page
    page.goto(f"{tab.url}/dashboard/keys")
    page.get_by_label("Name").fill("Station site")
    page.locator("select[name=location]").select_option("locations/112")
    page.get_by_role("button", name="Create the key").click()
    client_id = str(page.get_by_label("Client id").input_value())
    check(tab, "secret")
    page.goto(f"{tab.url}/dashboard/keys/{client_id}")
    page.get_by_role("button", name="Create a new secret").click()
    page.get_by_label("Client secret").wait_for()
    return client_id


def _webhook(tab: Tab) -> tuple[str, str]:
    """Create a webhook and send a test event, which is not delivered."""
    page = tab.page
    page.goto(f"{tab.url}/dashboard/webhooks")
    page.get_by_label("URL").fill("https://hooks.harbour.example/profiles")
    page.get_by_role("button", name="Create the webhook").click()
    check(tab, "webhook-secret")
    page.get_by_role("link", name="I have copied it").click()
    webhook = _id(tab)
    page.get_by_role("button", name="Send a test event").click()
    page.wait_for_url("**/deliveries/*")
    return webhook, _id(tab)


def _alerts(tab: Tab) -> tuple[str, dict[str, str]]:
    """Switch alerts on, add an address, and return the links of the messages, which the demo shows."""
    page = tab.page
    page.goto(f"{tab.url}/dashboard/alerts")
    page.get_by_role("button", name=f"Send alerts to {EMAIL}").click()
    alert = str(page.get_by_role("link", name="Settings").get_attribute("href")).rpartition("/")[2]
    page.get_by_role("button", name="Send a test message").click()
    page.get_by_label("Address", exact=True).fill(OTHER)
    page.get_by_role("button", name="Add the address").click()
    page.get_by_text(f"A confirmation was sent to {OTHER}").wait_for()
    links: dict[str, str] = {}
    for _ in range(40):
        page.goto(f"{tab.url}/dashboard/mail")
        for path in _LINK.findall(page.content()):
            purpose, _, link = path.removeprefix("alerts/").partition("/")
            links[purpose] = link
        if len(links) == 2:
            break
        page.wait_for_timeout(500)
    return alert, links


def _connection(tab: Tab) -> tuple[str, str]:
    """Connect a login at the provider, whose page is checked too, and make a connect link."""
    page = tab.page
    page.goto(f"{tab.url}/dashboard/connections")
    page.get_by_role("link", name="Connect a login").click()
    page.get_by_role("button", name="Allow").wait_for()
    check(tab, "provider")
    page.get_by_label(EMAIL).check()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("link", name=EMAIL).click()
    connection = _id(tab)
    page.goto(f"{tab.url}/dashboard/connections")
    page.get_by_role("button", name="Make a connect link").click()
    link = str(page.locator("#link").inner_text()).rpartition("/")[2]
    return connection, link


def _drift(tab: Tab) -> None:
    """Write a post with an error, a draft, and a template of replies."""
    page = tab.page
    page.goto(f"{tab.url}/dashboard/sites/111/posts?kind=EVENT")
    page.get_by_role("button", name="Post it").click()
    page.locator("#problems").wait_for()
    check(tab, "problems")
    page.goto(f"{tab.url}/dashboard/sites/111/posts")
    page.locator("#summary").fill("Winter hours from Monday on: we open at nine and close at six.")
    page.get_by_role("button", name="Save as a draft").click()
    page.get_by_role("heading", name="Drafts and scheduled posts").wait_for()


def check(tab: Tab, name: str, *, is_empty: bool = False) -> None:
    """Find nothing with axe, in light and dark at each width, and take the pictures of a page."""
    page, found = tab.page, []
    for width, pixels in WIDTHS.items():
        page.set_viewport_size({"width": pixels, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            rules = None if scheme == "light" else ["color-contrast"]  # only this one depends on the scheme
            found += [f"{width} {scheme}: {finding}" for finding in tab.findings(rules)]
            if form := FORMS.get((width, scheme)):
                form = form if not is_empty else f"empty-{form}"
                page.screenshot(path=PICTURES / f"{name}-{form}.png", full_page=True)
    assert found == [], page.url


def _walk(tab: Tab, pages: dict[str, str], ids: dict[str, str], *, is_empty: bool = False) -> None:
    for name, path in pages.items():
        tab.page.goto(f"{tab.url}{path.format_map(ids)}")
        check(tab, name, is_empty=is_empty)


def _closed(tab: Tab) -> None:
    tab.context.close()
    assert tab.outside == []
    assert [line for line in tab.console if "Failed to load resource" not in line] == []  # the missing page


def test_pages_of_an_owner(chromium: Any, demo: Server) -> None:
    tab = Tab(chromium, demo.url, reduced_motion="reduce")
    tab.page.goto(f"{demo.url}/dashboard/sign-in/start")
    check(tab, "issuer")
    tab.sign_in("Alice Ito")
    key, (webhook, delivery), (alert, links) = _key(tab), _webhook(tab), _alerts(tab)
    connection, link = _connection(tab)
    _drift(tab)
    ids = {"key": key, "webhook": webhook, "delivery": delivery, "alert": alert, "connection": connection, "link": link}
    _walk(tab, PAGES, ids)
    _closed(tab)
    visitor = Tab(chromium, demo.url, reduced_motion="reduce")
    _walk(visitor, PUBLIC, links)
    _closed(visitor)


def test_pages_of_an_empty_account(chromium: Any, demo: Server) -> None:
    tab = Tab(chromium, demo.url, reduced_motion="reduce")
    tab.sign_in("Erin Park")
    _walk(tab, {name: PAGES[name] for name in EMPTY}, {}, is_empty=True)
    _closed(tab)


def test_pages_in_german_fit_on_a_phone(chromium: Any, demo: Server) -> None:
    """German words are longer. Times and scripts have the language of the page."""
    tab = Tab(chromium, demo.url, reduced_motion="reduce", locale="de-AT", viewport={"width": 320, "height": 900})
    page = tab.page
    page.goto(f"{demo.url}/dashboard/sign-in/start")
    page.get_by_text("Wählen Sie einen Demo-Nutzer").wait_for()
    page.get_by_role("button", name="Alice Ito").click()
    page.wait_for_url("**/dashboard")
    found = {}
    for name, path in {**PAGES, **PUBLIC}.items():
        if "{" not in path and name != "patterns":
            page.goto(f"{demo.url}{path}")
            assert page.locator("html").get_attribute("lang") == "de", name
            if findings := tab.findings():
                found[name] = findings
    assert found == {}
    page.goto(f"{demo.url}/dashboard/sites/111/posts")
    page.locator("#summary").fill("Grüße")
    assert page.locator("#summary + .counter").inner_text() == "5 von 1.500"
    page.goto(f"{demo.url}/dashboard/sites/111")
    assert re.fullmatch(r"\d+\. \w+\.? \d{4}, \d\d:\d\d .+", str(page.locator("time[data-at]").first.inner_text()))
    _closed(tab)


def test_every_picture_is_there() -> None:
    """The pictures of this run, not of an earlier one, which the walk has replaced."""
    names = {path.stem for path in Path(PICTURES).glob("*.png")}
    wanted = {f"{name}-{form}" for name in (*PAGES, *PUBLIC) for form in FORMS.values()}
    assert wanted | {f"{name}-empty-light" for name in EMPTY} <= names
