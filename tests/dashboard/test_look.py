"""The design: one place for its values, contrast in light and dark, and a walk that knows every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from quart import Quart

import profilesvc
from conftest import Change
from profilesvc import look
from profilesvc.dashboard.words import help_links
from profilesvc.services import keys
from profilesvc.services.context import Services
from support.api import Site
from support.browser.dashboard import Browser
from support.browser.pages import NO_PAGE_ENDS, NO_PAGES, PAGES, PUBLIC

ROOT = Path(profilesvc.__file__).parent
STYLES = [*(ROOT / "dashboard" / "static").glob("*.css"), *(ROOT / "look").glob("*.css")]
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|oklch)a?\(")


def schemes() -> dict[str, dict[str, str]]:
    """Return the tokens in light and in dark."""
    light, _, dark = look.TOKENS.read_text("utf-8").partition("@media")
    values = dict(re.findall(r"--([a-z0-9-]+): ([^;]+);", light))
    return {"light": values, "dark": {**values, **dict(re.findall(r"--([a-z0-9-]+): ([^;]+);", dark))}}


def test_only_the_tokens_have_colours() -> None:
    found = [(file.name, COLOUR.findall(file.read_text("utf-8"))) for file in STYLES if file != look.TOKENS]
    assert [entry for entry in found if entry[1]] == []


def test_every_token_is_defined_and_used() -> None:
    used = set(re.findall(r"var\(--([a-z0-9-]+)\)", "".join(file.read_text("utf-8") for file in STYLES))) - {"icon"}
    assert used == schemes()["light"].keys()


def luminance(colour: str) -> float:
    digits = colour.strip("#")
    parts = [digits[n : n + 2] for n in (0, 2, 4)] if len(digits) == 6 else [2 * one for one in digits]
    linear = [(int(part, 16) / 255) for part in parts]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in linear)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2)."""
    darker, lighter = sorted(map(luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


TEXTS = [
    *((ink, ground) for ink in ("ink", "soft", "link") for ground in ("ground", "surface", "sunken")),
    *((ink, ink + "-ground") for ink in ("good", "idle", "bad", "still")),
    *((ink, "surface") for ink in ("good", "bad")),
    *(("on-accent", ground) for ground in ("accent", "accent-strong")),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_of_aa_and_edges_are_visible(scheme: str) -> None:
    tokens = schemes()[scheme]
    low = {pair: contrast(*(tokens[name] for name in pair)) for pair in TEXTS}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    for ground in ("surface", "ground"):
        assert contrast(tokens["edge"], tokens[ground]) >= 3
        assert contrast(tokens["accent"], tokens[ground]) >= 3  # the ring of the focus


def test_contrast_is_computed_as_by_others() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def _rules(app: Quart) -> Iterator[str]:
    for rule in app.url_map.iter_rules():
        is_page = rule.rule.startswith("/dashboard") and "GET" in (rule.methods or ())
        if is_page and rule.rule not in NO_PAGES and not rule.rule.endswith(NO_PAGE_ENDS):
            yield rule.rule


async def test_the_walk_of_the_browser_has_every_page(app: Quart) -> None:
    urls = app.url_map.bind("profiles.test")
    paths = [re.sub(r"\{\w+\}", "7", path.partition("?")[0]) for path in (*PAGES.values(), *PUBLIC.values())]
    walked = {urls.match(path, "GET", return_rule=True)[0].rule for path in paths}
    assert sorted(set(_rules(app)) - walked) == []


async def test_the_stylesheets_of_a_page_exist(alice_there: Browser) -> None:
    page = await alice_there.open("/dashboard")
    sheets = re.findall(r'rel="stylesheet" href="([^"]+)"', alice_there.answer.text)
    assert [sheet.rpartition("/")[2] for sheet in sheets] == ["tokens.css", "icons.css", "dashboard.css"]
    for sheet in sheets:
        answer = await alice_there.http.get(sheet)
        assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert page.forms


async def test_the_issuers_page_has_our_style_and_its_policy_allows_no_other(visitor: Browser) -> None:
    await visitor.open("/dashboard/sign-in")
    answer: httpx.Response = await visitor.http.get("/dashboard/sign-in/start", follow_redirects=True)
    assert "--ground" in answer.text
    assert "prefers-color-scheme: dark" in answer.text
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]


GUIDE = ROOT.parents[1] / "docs" / "dashboard.md"


def test_every_help_link_leads_to_a_heading_of_the_guide() -> None:
    headings = re.findall(r"^#{2,3} (.+)$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert set(help_links.FRAGMENTS) <= set(headings)
    for heading, fragment in help_links.FRAGMENTS.items():
        assert fragment == heading.lower().replace(" ", "-")


async def test_pages_link_to_their_part_of_the_guide_if_it_is_on_this_server(
    alice_there: Browser, services: Services, change: Change, tmp_path: Path
) -> None:
    for path, fragment in (("/keys", "keys"), ("/sites/111/reviews", "reviews"), ("/sites/111/calendar", "posts")):
        change(settings=services.settings.model_copy(update={"guides_folder": tmp_path}))
        page = await alice_there.open(f"/dashboard{path}")
        assert f"{help_links.GUIDE}#{fragment}" in page.links
        change(settings=services.settings.model_copy(update={"guides_folder": tmp_path / "none"}))
        page = await alice_there.open(f"/dashboard{path}")
        assert not any(link.startswith("/guides/") for link in page.links)


async def test_only_development_has_the_patterns(alice_there: Browser, services: Services, change: Change) -> None:
    page = await alice_there.open("/dashboard/patterns")
    assert "Every component of the dashboard" in page.text
    change(settings=services.settings.model_copy(update={"environment": "production"}))
    await alice_there.open("/dashboard/patterns", 404)


def test_the_patterns_have_every_macro() -> None:
    templates = ROOT / "dashboard" / "templates"
    named = re.findall(r"{% macro (\w+)\(", (templates / "macros.html").read_text("utf-8"))
    used = (templates / "patterns.html").read_text("utf-8") + (templates / "macros.html").read_text("utf-8")
    missing = [name for name in named if len(re.findall(rf"\b{name}\(", used)) < 2]
    assert missing == ["csrf", "shown", "kinds_of_events"]  # fields that are hidden, and a form of two pages


async def test_a_poll_of_unchanged_keys_has_no_body(alice_there: Browser, services: Services, plugin: Site) -> None:
    await alice_there.open("/dashboard/keys")
    poll = re.findall(r'id="keys-list" data-poll="([^"]+)"', alice_there.answer.text)[0].replace("&amp;", "&")
    assert (await alice_there.http.get(poll)).status_code == 204
    await keys.deactivate(services, plugin.key["client_id"], "user_requested")
    answer = await alice_there.http.get(poll)
    assert answer.status_code == 200
    assert "Deactivated" in answer.text


async def test_each_action_of_a_webhook_is_reported(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/webhooks")
    await alice_there.send("POST /webhooks", url="https://hooks.harbour.example/slack", format="slack")
    said = ["The webhook is created."]
    assert re.findall(r'<p id="notice" class="notice" role="status">([^<]+)', alice_there.answer.text) == said
    path = alice_there.answer.url.path
    for action, notice in (("/switch", "disabled"), ("/switch", "enabled")):
        await alice_there.send(path.rpartition("/")[2] + action)
        assert f'role="status">The webhook is {notice}.' in alice_there.answer.text
    await alice_there.send(path.rpartition("/")[2] + "/test")
    assert 'role="status">A test event is on its way.' in alice_there.answer.text
