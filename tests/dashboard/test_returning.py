"""A session that ends while a form is filled in: the sign-in leads back, and what was typed is there."""

import re
from typing import Any

import httpx
import pytest

from conftest import BASE_URL, ON_ONE_DATABASE
from profilesvc.domain.time import FrozenClock
from support.api import ALICE, BOB, Site, assert_ok
from support.browser.dashboard import COOKIE, SUBJECTS, Browser
from support.pictures import png

SITE = "/dashboard/sites/111"
TYPED = "Fresh \u00e9clairs & <b>bread</b>"
pytestmark = ON_ONE_DATABASE


def end(browser: Browser, how: str = "dropped") -> None:
    """End the session: the browser has dropped the cookie, or the service does not accept it any more."""
    for cookie in list(browser.http.cookies.jar):
        if cookie.name.endswith(COOKIE):
            if how == "dropped":
                browser.http.cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
            else:
                cookie.value = f"{cookie.value}x"


async def send(
    browser: Browser, action: str, files: Any = None, referer: str | None = "", **changes: Any
) -> httpx.Response:
    form = browser.page.form(action)
    headers = {} if referer is None else {"Referer": referer or str(browser.answer.url)}
    data = {**form["fields"], **changes}
    return await browser.http.post(form["action"], data=data, files=files, headers=headers)


async def sign_in(browser: Browser, redirect: httpx.Response, email: str = ALICE) -> httpx.Response:
    assert redirect.status_code == 303, redirect.text
    assert redirect.headers["location"].startswith("/dashboard/sign-in?next=")
    page = await browser.open(redirect.headers["location"])
    assert "Your session has ended." in page.text
    await browser.open(next(link for link in page.links if "/sign-in/start" in link))
    fields = browser.page.forms[0]["fields"] | {"subject": SUBJECTS[email]}
    answer = await browser.http.post("/dev/issuer/authorize", data=fields, follow_redirects=True)
    browser._look(answer, 200)
    return answer


@pytest.mark.parametrize("how", ["dropped", "invalid"])
@pytest.mark.parametrize(
    ("path", "action", "typed"),
    [
        (f"{SITE}/posts", "/posts", {"summary": TYPED, "kind": "STANDARD"}),
        (f"{SITE}/profile", "/profile", {"title": TYPED}),
        (f"{SITE}/profile", "/profile", {"moreHours-x": "", "regularHours-MONDAY": "9-17", "description": TYPED * 20}),
        ("/dashboard/keys", "POST /keys", {"name": TYPED, "permissions": ["posts"]}),
        ("/dashboard/templates", "/templates", {"name": "Thanks", "text": TYPED}),
        ("/dashboard/posts/new?site=111", "/posts/new", {"summary": TYPED, "site": ["111", "112"]}),
    ],
)
async def test_a_form_is_on_the_page_after_the_sign_in_as_it_was_typed(
    alice_there: Browser, how: str, path: str, action: str, typed: dict[str, Any]
) -> None:
    await alice_there.open(path)
    end(alice_there, how)
    back = await sign_in(alice_there, await send(alice_there, action, **typed))
    assert back.url.raw_path.decode() == path
    kept = next(form for form in alice_there.page.forms if form["action"].endswith(action.removeprefix("POST ")))
    for name, values in typed.items():
        assert kept["fields"][name] == (values if isinstance(values, list) else [values])
    assert "You are signed in again" in alice_there.page.text
    assert TYPED in alice_there.page.text or TYPED not in typed.values()
    page = await alice_there.open(path)  # shown once
    assert "You are signed in again" not in page.text


async def test_the_form_can_be_sent_then(alice_there: Browser, plugin: Site) -> None:
    """Also one with a photo, which must be selected again."""
    await alice_there.open(f"{SITE}/posts")
    end(alice_there)
    sent = await send(alice_there, "/posts", {"photo_file": ("x.png", png(size=5_000_000))}, summary=TYPED)
    await sign_in(alice_there, sent)
    page = await alice_there.send("/posts")  # the first form of the page
    assert TYPED in page.text
    listed = assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))["localPosts"]
    assert [post["summary"] for post in listed].count(TYPED) == 1
    assert "media" not in listed[0]


async def test_another_user_does_not_see_what_was_typed(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/templates")
    end(alice_there)
    sent = await send(alice_there, "/templates", name="Thanks", text=TYPED)
    back = await sign_in(alice_there, sent, BOB)
    assert back.url.path == "/dashboard/templates"
    assert "&amp; &lt;b&gt;bread" not in back.text


async def test_secrets_and_confirmations_are_not_kept(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/webhooks")
    end(alice_there)
    sent = await send(
        alice_there, "POST /webhooks", url="https://hooks.slack.com/services/T0/B0/secret", description=TYPED
    )
    back = await sign_in(alice_there, sent)
    assert "B0/secret" not in back.text
    assert alice_there.page.forms[1]["fields"]["description"] == [TYPED]
    await alice_there.open("/dashboard/account/delete")
    end(alice_there)
    back = await sign_in(alice_there, await send(alice_there, "POST /account/delete", email="x@example.com", sure="on"))
    assert "sure" not in alice_there.page.forms[1]["fields"]


@pytest.mark.parametrize("lines", [2_000])
async def test_a_form_that_is_too_long_is_shown_before_the_sign_in(alice_there: Browser, lines: int) -> None:
    """Cookies have room for 6,000 characters, compressed."""
    text = " ".join(f"{number * 7919 % 10007:x}" for number in range(lines))
    await alice_there.open("/dashboard/templates")
    end(alice_there)
    sent = await send(alice_there, "/templates", name="Thanks", text=text)
    assert sent.status_code == 401
    assert f">{text}</textarea>" in sent.text
    assert "next=/dashboard/templates" in sent.text


async def test_a_kept_form_is_forgotten_in_time(alice_there: Browser, clock: FrozenClock) -> None:
    await alice_there.open("/dashboard/templates")
    end(alice_there)
    sent = await send(alice_there, "/templates", name="Thanks", text=TYPED)
    clock.advance(minutes=16)
    for cookie in alice_there.http.cookies.jar:
        cookie.expires = None
    await sign_in(alice_there, sent)
    assert "You are signed in again" not in alice_there.page.text


@pytest.mark.parametrize("csrf", [None, "", "x", "forged"])
async def test_nothing_is_kept_of_a_form_that_no_page_has_made(alice_there: Browser, csrf: str | None) -> None:
    await alice_there.open("/dashboard/templates")
    end(alice_there)
    made = alice_there.page.form("/templates")["fields"]["csrf"][0]
    changes = {"csrf": made[:-3] if csrf == "forged" else csrf}
    form = {**alice_there.page.form("/templates")["fields"], "text": TYPED, **changes}
    answer = await alice_there.http.post("/dashboard/templates", data={k: v for k, v in form.items() if v is not None})
    assert answer.status_code == 303
    assert "profilesvc_typed" not in str(answer.headers.get_list("set-cookie"))


@pytest.mark.parametrize(
    ("referer", "expected"),
    [
        (f"{BASE_URL}/dashboard/sites/111/posts?kind=EVENT", "/dashboard/sites/111/posts?kind=EVENT"),
        (f"{BASE_URL}/dashboard/alerts", "/dashboard/alerts"),
        (None, "/dashboard/sites/111/posts"),
        ("https://evil.example/dashboard/alerts", "/dashboard/sites/111/posts"),
        (f"{BASE_URL}:81/dashboard/alerts", "/dashboard/sites/111/posts"),
        (f"{BASE_URL}/api/v1/posts", "/dashboard/sites/111/posts"),
        (f"{BASE_URL}//evil.example", "/dashboard/sites/111/posts"),
        (f"{BASE_URL}/dashboard/nothing", "/dashboard/sites/111/posts"),
        ("http://[", "/dashboard/sites/111/posts"),
        (f"{BASE_URL}/dashboard/sites/111/posts?x=//evil", "/dashboard"),
    ],
)
async def test_the_sign_in_leads_to_the_page_of_the_form(
    alice_there: Browser, referer: str | None, expected: str
) -> None:
    await alice_there.open(f"{SITE}/posts")
    end(alice_there)
    answer = await send(alice_there, "/posts", referer=referer)
    found = re.search("next=([^&]*)", answer.headers["location"])
    assert found is not None
    assert httpx.URL(answer.headers["location"]).params["next"] == expected


@pytest.mark.parametrize("how", ["dropped", "invalid"])
async def test_a_button_leads_back_without_being_pressed(alice_there: Browser, how: str) -> None:
    await alice_there.open(SITE)
    end(alice_there, how)
    answer = await send(alice_there, "/switch")
    assert httpx.URL(answer.headers["location"]).params["next"] == SITE
    assert "profilesvc_typed" not in str(answer.headers.get_list("set-cookie"))


async def test_a_part_of_a_page_leads_back_to_the_page(alice_there: Browser) -> None:
    end(alice_there)
    headers = {"X-Fragment": "en", "Referer": f"{BASE_URL}/dashboard/keys?q=x"}
    answer = await alice_there.http.get("/dashboard/keys/live", headers=headers)
    assert httpx.URL(answer.headers["x-go-to"]).params["next"] == "/dashboard/keys?q=x"


HIDDEN = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (HIDDEN, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({}, 303),
        ({"Origin": BASE_URL}, 303),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": BASE_URL, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
async def test_a_form_whose_origin_the_browser_hides_is_accepted_if_it_is_ours(
    alice_there: Browser, visitor: Browser, headers: dict[str, str], status: int
) -> None:
    fields = alice_there.page.form("/sign-out")["fields"]
    answer = await visitor.http.post("/dashboard/language", data={"language": "de"}, headers=headers)
    assert answer.status_code == status
    if status == 403:
        assert f"{BASE_URL}/dashboard" in answer.text
        assert "API key" not in answer.text
    answer = await alice_there.http.post("/dashboard/sign-out", data={**fields, "csrf": "x"}, headers=headers)
    assert answer.status_code == 403  # the token is checked in any case
    answer = await alice_there.http.post("/dashboard/sign-out", data=fields, headers=headers)
    assert answer.status_code == status
