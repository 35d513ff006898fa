"""Signing in and out, and what a session is: our own user token in a cookie that no script reads."""

import pytest
from quart import Quart

from conftest import BASE_URL
from dashboard_browser import COOKIE, Browser, SignIn
from profilesvc.domain.world import FrozenClock
from profilesvc.services import operator
from profilesvc.services.context import Services
from support import ALICE, BOB, Site


async def test_who_has_signed_in_sees_their_sites(alice_there: Browser) -> None:
    assert str(alice_there.answer.url) == f"{BASE_URL}/dashboard"
    assert "Alice Ito" in alice_there.page.text
    assert "Harbour Coffee, Pier" in alice_there.page.text
    assert "Marsh" not in alice_there.page.text


async def test_the_session_is_a_user_token_that_no_script_reads(visitor: Browser) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    back = await visitor.http.post("/dev/issuer/authorize", data=fields)
    answer = await visitor.http.get(back.headers["location"])
    cookie = next(line for line in answer.headers.get_list("set-cookie") if line.startswith(COOKIE))
    assert {"HttpOnly", "SameSite=Lax", "Path=/dashboard"} <= set(cookie.split("; "))
    assert "Secure" not in cookie  # plain http in this test
    token = {"Authorization": f"Bearer {visitor.token}"}
    assert (await visitor.http.get("/api/v1/businesses", headers=token)).status_code == 200


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/keys", "/dashboard/plan", "/dashboard/sites/111"])
async def test_nobody_is_asked_to_sign_in_and_comes_back_to_the_page(visitor: Browser, path: str) -> None:
    await visitor.open(path)
    assert visitor.answer.url.path == "/dashboard/sign-in"
    assert visitor.answer.url.params["next"] == path
    await visitor.open(next(link for link in visitor.page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    back = await visitor.http.post("/dev/issuer/authorize", data=fields, follow_redirects=True)
    assert back.url.path == path


@pytest.mark.parametrize(
    "where", ["//evil.example", "https://evil.example/dashboard", "/dashboard/../x", "/dashboard\\x"]
)
async def test_a_sign_in_ends_at_the_dashboard_and_nowhere_else(visitor: Browser, where: str) -> None:
    answer = await visitor.http.get("/dashboard/sign-in", params={"next": where})
    assert 'next=/dashboard"' in answer.text


async def test_an_answer_of_another_browser_is_refused(visitor: Browser, alice_there: Browser) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-2"}
    back = (await visitor.http.post("/dev/issuer/authorize", data=fields)).headers["location"]
    await alice_there.open(back, 401)
    assert "not begun in this browser" in alice_there.page.text
    visitor.http.cookies.clear()
    await visitor.open(back, 401)


@pytest.mark.parametrize("change", [{"state": "x"}, {"iss": "https://evil.example"}, {"code": "x"}, {"code": None}])
async def test_a_changed_answer_signs_nobody_in(visitor: Browser, change: dict[str, str | None]) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    location = (await visitor.http.post("/dev/issuer/authorize", data=fields)).headers["location"]
    path, _, query = location.partition("?")
    given = dict(pair.split("=") for pair in query.split("&")) | change
    await visitor.open(path + "?" + "&".join(f"{name}={value}" for name, value in given.items() if value), 401)
    assert COOKIE not in visitor.http.cookies


async def test_the_same_answer_signs_in_once(visitor: Browser) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    kept = dict(visitor.http.cookies)
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    location = (await visitor.http.post("/dev/issuer/authorize", data=fields)).headers["location"]
    await visitor.open(location)
    visitor.http.cookies.clear()
    visitor.http.cookies.update(kept)
    await visitor.open(location, 401)


async def test_signing_out_ends_the_session_everywhere(alice_there: Browser) -> None:
    token = alice_there.token
    await alice_there.send("/sign-out")
    assert alice_there.answer.url.path == "/dashboard/sign-in"
    assert COOKIE not in alice_there.http.cookies
    assert (
        await alice_there.http.get("/api/v1/businesses", headers={"Authorization": f"Bearer {token}"})
    ).status_code == 401
    alice_there.http.cookies.set(COOKIE, token, path="/dashboard")
    await alice_there.open("/dashboard")
    assert "Your session has ended" in alice_there.page.text


async def test_a_suspension_holds_at_once(alice_there: Browser, services: Services) -> None:
    await operator.suspend(services, ALICE)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard/sign-in"


async def test_a_session_ends_by_itself(alice_there: Browser, clock: FrozenClock) -> None:
    clock.advance(days=8)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard/sign-in"
    live = await alice_there.http.get("/dashboard/sites/live", headers={"HX-Request": "true"})
    assert (live.status_code, live.headers["HX-Redirect"].partition("?")[0]) == (204, "/dashboard/sign-in")


async def test_a_keys_token_is_no_session(visitor: Browser, plugin: Site) -> None:
    visitor.http.cookies.set(COOKIE, plugin.tokens["access_token"], path="/dashboard")
    await visitor.open("/dashboard")
    assert visitor.answer.url.path == "/dashboard/sign-in"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_form_of_another_page_is_refused(alice_there: Browser, headers: dict[str, str]) -> None:
    fields = alice_there.page.form("/sign-out")["fields"]
    answer = await alice_there.http.post("/dashboard/sign-out", data=fields, headers=headers)
    assert answer.status_code == 403
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard"


@pytest.mark.parametrize("token", [None, "", "x", "ü", "0" * 64])
async def test_a_form_without_the_sessions_token_is_refused(alice_there: Browser, token: str | None) -> None:
    await alice_there.send("/sign-out", 403, csrf=token)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard"


async def test_the_token_of_another_session_is_refused(alice_there: Browser, signed_in: SignIn) -> None:
    bob = await signed_in(BOB)
    csrf = bob.page.form("/sign-out")["fields"]["csrf"]
    await alice_there.send("/sign-out", 403, csrf=csrf)


async def test_pages_keep_to_themselves(alice_there: Browser, app: Quart) -> None:
    for path in ("/dashboard", "/dashboard/sign-in", "/dashboard/nothing", "/dashboard/static/dashboard.css"):
        headers = (await alice_there.http.get(path)).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert (await alice_there.http.get("/dashboard")).headers["cache-control"] == "no-store"


async def test_errors_are_words_with_the_request_id(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/nothing", 404, **{"X-Request-Id": "trace-12345678"})
    assert "There is no such page." in alice_there.page.text
    assert "trace-12345678" in alice_there.page.text
