"""The dashboard in another language than English."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import ON_ONE_DATABASE, AsService, Change, Dial
from profilesvc.services.context import Services
from profilesvc.services.drafts.drafts import UNKNOWN
from profilesvc.storage.tables import drafts
from support.api import ALICE, assert_ok
from support.browser.dashboard import Browser
from support.browser.pages import PAGES, PUBLIC

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.1"}
# Words of the English pages that no German page and none of the demo's names has.
ENGLISH_WORDS = re.compile(
    r"\b(the|and|with|this|your|not|sites|keys|reviews|posts|address|settings|language|create|delete|save|"
    r"show|search|sign|yes|minutes|hours|days|ago|heartbeat|checked|switch|last|provider)\b",
    re.IGNORECASE,
)
WITH_DATA = {"site", "posts", "posts-offer", "post", "reviews"}  # which show English texts of the demo
FROM_DATA = re.compile(r"<(code|pre|option|textarea)\b.*?</\1>|<details class=.code.*?</details>", re.DOTALL)


async def test_the_language_of_the_browser_is_that_of_the_page(alice_there: Browser) -> None:
    page = await alice_there.open("/dashboard", 200, **GERMAN)
    assert '<html lang="de">' in alice_there.answer.text
    assert alice_there.answer.headers["content-language"] == "de"
    assert {"Accept-Language", "Cookie", "X-Fragment"} <= set(alice_there.answer.headers["vary"].split(", "))
    assert "5 Standorte" in page.text
    page = await alice_there.open("/dashboard")
    assert '<html lang="en">' in alice_there.answer.text
    assert alice_there.answer.headers["content-language"] == "en"
    assert "5 sites" in page.text


async def test_a_selected_language_stays_and_leads_back(alice_there: Browser, visitor: Browser) -> None:
    for browser, path in ((alice_there, "/dashboard/keys?state=all"), (visitor, "/dashboard/sign-in?next=/dashboard")):
        await browser.open(path)
        page = await browser.send("/language", language="de")
        assert str(browser.answer.url).endswith(path)
        assert '<html lang="de">' in browser.answer.text
        await browser.open(path, 200, **{"Accept-Language": "en"})
        assert '<html lang="de">' in browser.answer.text
        assert "Deutsch" not in page.text
        await browser.send("/language", language="en")
        assert '<html lang="en">' in browser.answer.text


@pytest.mark.parametrize("value", ["fr", "", "../../x", "de\r\nX-Made: up", "<b>", "x" * 3000])
@ON_ONE_DATABASE
async def test_a_made_up_language_is_ignored(alice_there: Browser, value: str) -> None:
    await alice_there.open("/dashboard")
    await alice_there.send("/language", language=value)
    assert '<html lang="en">' in alice_there.answer.text
    assert not [cookie for cookie in alice_there.http.cookies.jar if cookie.name.endswith("language")]
    if value.isalnum():
        await alice_there.open("/dashboard", Cookie=f"profilesvc_language={value}")
        assert '<html lang="en">' in alice_there.answer.text


async def test_a_page_of_another_site_cannot_select_a_language(alice_there: Browser) -> None:
    form = {"language": "de", "next": "/dashboard"}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await alice_there.http.post("/dashboard/language", data=form, headers=headers)
        assert answer.status_code == 403
    form["next"] = "https://evil.example/"
    answer = await alice_there.http.post("/dashboard/language", data=form)
    assert answer.headers["location"] == "/dashboard"


async def test_a_polled_part_has_the_language_of_its_page(alice_there: Browser) -> None:
    await alice_there.open("/dashboard", 200, **GERMAN)
    poll = re.findall(r'data-poll="([^"]*)"', alice_there.answer.text)[0].replace("&amp;", "&")
    assert (await alice_there.http.get(poll, headers={"X-Fragment": "de"})).status_code == 204
    other = await alice_there.http.get(poll, headers={"X-Fragment": "en"})  # it has rows in another language
    assert other.status_code == 200
    assert "Standorte" not in other.text
    assert '<li id="card-111" data-keep>' not in other.text
    german = await alice_there.http.get(poll.partition("&seen")[0].partition("?seen")[0], headers={"X-Fragment": "de"})
    assert "Standorte" in german.text


async def test_numbers_have_the_right_form(alice_there: Browser, as_service: AsService) -> None:
    site = await as_service()
    assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
    page = await alice_there.open("/dashboard", 200, **GERMAN)
    assert "Lebenszeichen gerade eben" in page.text
    assert re.search(r"\b1 Standorte\b|\b2 Standort\b", page.text) is None


async def test_problems_of_a_form_are_translated_and_its_text_stays(alice_there: Browser) -> None:
    alice_there.http.headers.update(GERMAN)
    await alice_there.open("/dashboard/sites/111/posts?kind=EVENT")
    page = await alice_there.send("POST /posts", 400, kind="EVENT", title="Fest")
    assert "Erster Tag: ist erforderlich" in page.text
    assert "Es gibt" in page.text
    assert page.form("POST /posts")["fields"]["title"] == ["Fest"]
    assert page.languages == []  # the response to a form cannot be requested again


async def test_pages_in_german_have_no_english(alice_there: Browser, as_service: AsService) -> None:
    alice_there.http.headers.update(GERMAN)
    site = await as_service(name="Kasse")
    names: dict[str, Any] = {"key": site.key["client_id"]}
    english = {}
    for name, path in {**PAGES, **PUBLIC}.items():
        if "{" in path.replace("{key}", "") or name == "patterns":
            continue
        answer = await alice_there.http.get(path.format(**names), follow_redirects=True)
        assert answer.headers["content-type"].startswith("text/html"), name
        assert '<html lang="de">' in answer.text, name
        body = FROM_DATA.sub("", answer.text.partition("<main")[2].partition("<footer")[0])
        text = re.sub(r"<[^>]*>", " ", body)
        words = set(map(str.lower, ENGLISH_WORDS.findall(text)))
        if found := sorted(words - ({"the", "and", "with", "this"} if name in WITH_DATA else set())):
            english[name] = found
    assert english == {}


PROBLEMS = (  # that a scheduled post can have
    "The external provider is not available; try again later.",
    "The external provider is not available.",
    "The external provider rejected the request: Too long.\nShorten it.",
    "The external provider rejected the request at summary: Too long.",
    "The quota of requests to the external provider is used up; try again later.",
    "This owner's share of the quota of requests to the external provider is used up; try again later.",
    "The limit of 10,000 updates of locations per day is used up; try again later.",
    "This owner's share of the limit of 10,000 updates of locations per day is used up; try again later.",
    "The monthly limit of 30 posts is used up. It resets on 2026-12-01.",
    UNKNOWN,
)


async def test_states_of_deliveries_keys_and_drafts_are_translated(
    alice_there: Browser, as_service: AsService, alice: httpx.AsyncClient, services: Services
) -> None:
    alice_there.http.headers.update(GERMAN)
    body = {"url": "https://93.184.216.34/x", "types": [], "format": "standard"}
    webhook = assert_ok(await alice.post("/api/v1/webhooks", json=body), 201)["id"]
    page = await alice_there.open(f"/dashboard/webhooks/{webhook}")
    assert "Alle Wartet Zugestellt Fehlgeschlagen" in page.text
    site = await as_service(name="Kasse")
    assert_ok(await alice.post(f"/api/v1/developer/credentials/{site.key['client_id']}/deactivate"))
    assert "auf Wunsch des Nutzers" in (await alice_there.open("/dashboard/keys")).text
    await alice_there.open("/dashboard/posts/new?site=111&site=112")
    assert "2 Standorte" in (await alice_there.send("/posts/new", summary="Neu", intent="preview")).text
    later = {"publish_date": "2026-01-02", "publish_time": "14:00", "zone": "Asia/Tokyo", "intent": "schedule"}
    await alice_there.open("/dashboard/sites/111/posts")
    await alice_there.send("POST /posts", summary="Bald", **later)
    for problem in PROBLEMS:
        async with services.storage.write() as session:
            await session.execute(update(drafts).values(state="failed", problem=problem))
        for path in ("/dashboard/drafts", "/dashboard/sites/111/posts"):
            assert problem.partition("\n")[0] not in (await alice_there.open(path)).text


async def test_a_link_to_the_guides_leads_to_its_section_in_each_language(
    alice_there: Browser, tmp_path: Path, services: Services, change: Change
) -> None:
    change(settings=services.settings.model_copy(update={"guides_folder": tmp_path}))
    for path in ("/dashboard/webhooks", "/dashboard/templates", "/dashboard/keys", "/dashboard/sites/111/events"):
        english = await alice_there.open(path)
        german = await alice_there.open(path, 200, **GERMAN)
        assert [link for link in german.links if "#" in link] == [link for link in english.links if "#" in link]


async def test_the_api_is_english(http: httpx.AsyncClient) -> None:
    answer, plain = [await http.get("/api/v1/api-keys/x", headers=headers) for headers in (GERMAN, {})]
    assert answer.json()["error"]["message"] == plain.json()["error"]["message"]
    assert "content-language" not in answer.headers
    assert "Accept-Language" not in answer.headers["vary"]


async def test_the_development_issuer_speaks_the_language_of_the_dashboard(visitor: Browser, dial: Dial) -> None:
    await visitor.open("/dashboard/sign-in", 200, **GERMAN)
    await visitor.send("/language", language="de")
    start = next(link for link in visitor.page.links if "/sign-in/start" in link)
    page = await visitor.open(start)
    assert '<html lang="de">' in visitor.answer.text
    assert "Wählen Sie einen Demo-Nutzer" in page.text
    assert visitor.answer.headers["content-language"] == "de"
    assert ALICE in page.text
