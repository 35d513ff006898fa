"""Posts and forms of the dashboard, without a script."""

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.contract.json import JsonObject
from profilesvc.provider.remote import RemoteProvider
from support.api import Site, assert_ok
from support.browser.dashboard import Browser

SITE = "/dashboard/sites/111"
LISTED = "/api/v1/posts?locationId=locations/111"
EVENT = {
    "title": "Latte art",
    "summary": "Bring a\r\nfriend",
    "start_date": "2026-05-01",
    "start_time": "18:00",
    "end_date": "2026-05-01",
    "end_time": "20:30",
    "language": "en-GB",
}


async def test_a_post_is_changed_in_the_form_that_wrote_it(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SITE}/posts?kind=EVENT")
    page = await alice_there.send("/posts", **EVENT)
    assert "The post was sent to the provider." in page.text
    before = assert_ok(await plugin.http.get(LISTED))["localPosts"][0]
    assert before["summary"] == "Bring a\nfriend"
    assert before["languageCode"] == "en-GB"
    edit = next(link for link in page.links if link.endswith(f"{before['name'].rpartition('/')[2]}/edit"))
    page = await alice_there.open(edit)
    shown = page.form("/edit")["fields"]
    assert {name: shown[name][0].replace("\n", "\r\n") for name in EVENT} == EVENT
    page = await alice_there.send("/edit")
    assert "Nothing was changed" in page.text
    await alice_there.open(edit)
    await alice_there.send("/edit", kind="OFFER", coupon="KEPT")
    offer = assert_ok(await plugin.http.get(LISTED))["localPosts"][0]
    assert (offer["topicType"], offer["offer"], offer["event"]["title"]) == (
        "OFFER",
        {"couponCode": "KEPT"},
        "Latte art",
    )


async def test_a_refused_change_stays_in_its_form(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(f"{SITE}/posts/11101/edit")
    page = await alice_there.send("/edit", 400, summary="", title="Kept")
    assert page.form("/edit")["fields"]["title"] == ["Kept"]
    assert 'href="#summary"' in alice_there.answer.text
    await alice_there.send("/edit", summary="Changed", kind="STANDARD")
    found = {post["name"]: post for post in assert_ok(await plugin.http.get(LISTED))["localPosts"]}
    assert found["locations/111/localPosts/11101"]["summary"] == "Changed"


@pytest.mark.in_process("replaces an operation of the provider")
@pytest.mark.parametrize("missing", ["topicType", "state", "callToAction.actionType", "createTime"])
@ON_ONE_DATABASE
async def test_a_post_without_a_field_is_listed(
    alice_there: Browser, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    name, action = "accounts/1/locations/111/localPosts/9", {"actionType": "CALL", "url": "https://harbour.example"}
    document: JsonObject = {
        "name": name,
        "topicType": "STANDARD",
        "state": "LIVE",
        "summary": "Old news",
        "createTime": "2019-01-01T00:00:00Z",
        "callToAction": action,
    }
    field, _, nested = missing.partition(".")
    del (action if nested else document)[nested or field]

    async def posts(*_: object) -> list[JsonObject]:
        return [document]

    monkeypatch.setattr(RemoteProvider, "posts", posts)
    page = await alice_there.open(f"{SITE}/posts")
    assert "Old news" in page.text
    assert f"{SITE}/posts/9/edit" in page.links


async def test_back_to_a_form_with_problems_is_possible(alice_there: Browser) -> None:
    await alice_there.open(f"{SITE}/posts")
    assert alice_there.answer.headers["cache-control"] == "no-store"
    await alice_there.send("/posts", 400)
    assert alice_there.answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("action", "page"),
    [("/sites/111/posts/11101/delete", "/sites/111/posts"), ("/sites/111/switch", "/sites/111"), ("/sign-out", "")],
)
@ON_ONE_DATABASE
async def test_the_address_of_an_action_shows_its_page(alice_there: Browser, action: str, page: str) -> None:
    answer: httpx.Response = await alice_there.http.get(f"/dashboard{action}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dashboard{page}")


async def test_a_notice_has_no_words_of_its_address(alice_there: Browser) -> None:
    page = await alice_there.open(f"{SITE}?notice=You+won")
    assert "You won" not in page.text
    assert 'id="notice"' not in alice_there.answer.text
