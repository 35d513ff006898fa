"""The overview on the first page: numbers that lead to their sites, and the chart of the days."""

import re

from profilesvc.domain.time import FrozenClock
from support.api import Site, assert_ok
from support.browser.dashboard import Browser

TILE = re.compile(r'<li><a href="(/dashboard[^"]*)"[^>]*><strong>(\d+)</strong> ([^<]+)</a>')


def tiles(browser: Browser) -> dict[str, tuple[int, str]]:
    """The numbers of the page: text, count and link."""
    section = browser.answer.text.partition('<ul class="numbers"')[2].partition("</ul>")[0]
    return {text: (int(count), link) for link, count, text in TILE.findall(section)}


async def test_each_number_leads_to_as_many_sites(alice_there: Browser, plugin: Site) -> None:
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    await alice_there.open("/dashboard")
    shown = tiles(alice_there)
    assert list(shown) == ["sites", "needs attention", "online", "offline", "without a key", "differs at the provider"]
    assert shown["online"][0] == 1
    assert shown["without a key"][0] > 0
    for count, link in shown.values():
        page = await alice_there.open(link)
        rows = len(re.findall(r'id="card-', alice_there.answer.text))
        assert (rows, f'aria-current="page"><strong>{count}<' in alice_there.answer.text) == (count, True), link
        assert ("sites match" in page.text) == ("?" in link)


def days_of(browser: Browser) -> list[int]:
    """The numbers of the table, today first."""
    table = browser.answer.text.partition('id="days"')[2].partition("</section>")[0]
    return [int(count) for count in re.findall(r"<td>\d{4}-\d\d-\d\d</td><td>(\d+)</td>", table)]


async def test_the_chart_has_the_sites_of_each_day_and_a_table(
    alice_there: Browser, plugin: Site, clock: FrozenClock
) -> None:
    await alice_there.open("/dashboard")
    assert days_of(alice_there) == []  # an account without a heartbeat has no empty chart
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    clock.advance(hours=48)
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    await alice_there.open("/dashboard")
    assert days_of(alice_there) == [1, 0, 1, *[0] * 27]
    picture = alice_there.answer.text.partition('id="days"')[2].partition("</svg>")[0]
    assert 'role="img" aria-labelledby="days-title days-text"' in picture
    assert picture.count('class="base"') == 30
    await alice_there.open("/dashboard?q=harbour")
    assert days_of(alice_there) == []


async def test_a_poll_does_not_draw_the_chart_again(alice_there: Browser, plugin: Site) -> None:
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    answer = await alice_there.http.get("/dashboard/sites/live", headers={"X-Fragment": "1"})
    assert '<section id="days" data-keep hidden>' in answer.text
    assert '<rect class="base"' not in answer.text
