"""Pages of an owner with hundreds of drafts and thousands of posts: each shows a part, and leads to the rest."""

import pytest

from conftest import ON_ONE_DATABASE
from dashboard import large
from profilesvc.services.context import Services
from support.api import Site
from support.browser.dashboard import Browser

SITE = "/dashboard/sites/111"
pytestmark = [pytest.mark.in_process("fills the database"), ON_ONE_DATABASE]


@pytest.fixture
async def there(alice_there: Browser, services: Services, plugin: Site) -> Browser:
    await large.fill(services, 1, plugin.key["service_client_id"])
    return alice_there


async def test_the_posts_of_a_site_are_shown_with_a_part_of_its_drafts(there: Browser) -> None:
    page = await there.open(f"{SITE}/posts")
    assert there.answer.text.count('id="draft-') == 25
    assert f"{large.DRAFTS - 25} more drafts and scheduled posts" in page.text
    assert len(there.answer.content) < 300_000  # all drafts were 10 MB
    page = await there.open("/dashboard/drafts?site=111")
    assert f"1 to 50 of {large.DRAFTS}" in page.text
    assert "page=2" in next(link for link in page.links if "page=" in link)
    assert "site=111" in next(link for link in page.links if "page=" in link)
    assert "No draft matches." in (await there.open("/dashboard/drafts?site=112")).text
    assert f"of {large.DRAFTS}" in (await there.open("/dashboard/drafts?q=beans")).text
    assert "No draft matches." in (await there.open("/dashboard/drafts?q=beans+zebra")).text


@pytest.mark.parametrize("path", [f"{SITE}/calendar", "/dashboard/calendar"])
async def test_a_day_of_a_calendar_shows_a_few_posts_and_has_pages(there: Browser, path: str) -> None:
    page = await there.open(f"{path}?month=2026-01&zone=UTC")
    assert len(there.answer.content) < 300_000
    link = next(link for link in page.links if "day=2026-01-02" in link)
    page = await there.open(link)
    assert f"1 to 50 of {large.POSTS + large.DRAFTS}" in page.text
    assert page.text.count("Freshly roasted beans") <= 50 + 31 * 5
    page = await there.open(next(each for each in page.links if "page=2" in each))
    assert "51 to 100" in page.text
    assert (await there.open(f"{path}?month=2025-11&zone=UTC")).text.count("Freshly") == 0
