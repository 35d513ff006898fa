"""Signing in and out, and what a session is: our own user token in a cookie that no script reads."""

import httpx
import pytest
from itsdangerous import URLSafeSerializer
from quart import Quart

from conftest import BASE_URL, ON_ONE_DATABASE, Change
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import ALICE, BOB, Site
from support.browser.dashboard import COOKIE, SIGN_IN, Browser, SignIn


async def test_a_signed_in_user_sees_their_sites(alice_there: Browser) -> None:
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


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard",
        "/dashboard/keys",
        "/dashboard/alerts",
        "/dashboard/webhooks",
        "/dashboard/plan",
        "/dashboard/account",
        "/dashboard/sites/111",
        "/dashboard?state=online&q=harbour+caf%C3%A9",
    ],
)
async def test_a_visitor_signs_in_and_returns_to_the_page(visitor: Browser, path: str) -> None:
    await visitor.open(path)
    assert visitor.answer.url.path == "/dashboard/sign-in"
    assert visitor.answer.url.params["next"] == path
    await visitor.open(next(link for link in visitor.page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    back = await visitor.http.post("/dev/issuer/authorize", data=fields, follow_redirects=True)
    assert back.url.raw_path.decode() == path


@pytest.mark.parametrize(
    "where",
    [
        *("//evil.example", "https://evil.example/dashboard", "/dashboard/../x", "/dashboard\\x"),
        *("/dashboard?x=//evil", "/dashboard?\r\nX: y", "/dashboard?<b>", f"/dashboard?q={'x' * 2000}"),
    ],
)
@ON_ONE_DATABASE
async def test_a_sign_in_ends_at_the_dashboard_and_nowhere_else(visitor: Browser, where: str) -> None:
    answer = await visitor.http.get("/dashboard/sign-in", params={"next": where})
    assert 'next=/dashboard"' in answer.text


async def test_a_response_in_another_browser_is_rejected(visitor: Browser, alice_there: Browser) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-2"}
    back = (await visitor.http.post("/dev/issuer/authorize", data=fields)).headers["location"]
    await alice_there.open(back, 401)
    assert "not started in this browser" in alice_there.page.text
    visitor.http.cookies.clear()
    await visitor.open(back, 401)


@pytest.mark.parametrize("change", [{"state": "x"}, {"iss": "https://evil.example"}, {"code": "x"}, {"code": None}])
@ON_ONE_DATABASE
async def test_a_changed_response_does_not_sign_in(visitor: Browser, change: dict[str, str | None]) -> None:
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/start" in link))
    fields = visitor.page.forms[0]["fields"] | {"subject": "demo-1"}
    location = (await visitor.http.post("/dev/issuer/authorize", data=fields)).headers["location"]
    path, _, query = location.partition("?")
    given = dict(pair.split("=") for pair in query.split("&")) | change
    await visitor.open(path + "?" + "&".join(f"{name}={value}" for name, value in given.items() if value), 401)
    assert COOKIE not in visitor.http.cookies


async def begun(browser: Browser) -> str:
    """The address that a sign-in comes back to; its cookie is set."""
    page = await browser.open("/dashboard/sign-in")
    await browser.open(next(link for link in page.links if "/start" in link))
    fields = browser.page.forms[0]["fields"] | {"subject": "demo-1"}
    return str((await browser.http.post("/dev/issuer/authorize", data=fields)).headers["location"])


async def test_the_cookie_of_a_sign_in_that_we_did_not_make_is_rejected(visitor: Browser) -> None:
    back = await begun(visitor)
    value = visitor.http.cookies[SIGN_IN]
    content, _, signature = value.rpartition(".")
    unsigned = ".".join(["0" * 44, "1" * 44, "2" * 44, b"/dashboard".hex()])  # as it was once
    foreign = URLSafeSerializer("", salt="sign-in").dumps(["s", "n", "v", "/dashboard", 2**53])
    forged = ["", "x", "ü", ".", content, f"{content}.", f".{signature}", value[1:], value[:-1], unsigned, foreign]
    for cookie in forged:
        answer = await visitor.http.get(back, headers=[(b"Cookie", f"{SIGN_IN}={cookie}".encode())])
        assert answer.status_code == 401, cookie
        assert "not started in this browser" in answer.text
    assert COOKIE not in visitor.http.cookies
    await visitor.open(back)  # with the one that we made


async def test_a_sign_in_ends_in_time(visitor: Browser, clock: FrozenClock) -> None:
    back = await begun(visitor)
    clock.advance(minutes=10)  # the browser would have dropped the cookie; this one did not
    visitor.http.cookies.set(SIGN_IN, visitor.http.cookies[SIGN_IN], path="/dashboard")
    await visitor.open(back, 401)
    assert "it has expired" in visitor.page.text


async def test_a_sign_in_goes_on_while_the_signing_key_changes(
    visitor: Browser, services: Services, clock: FrozenClock
) -> None:
    back = await begun(visitor)
    before = services.signer.keyring.refresh.active(services.clock.now()).kid
    await services.signing_keys.rotate("HS256", at_once=True)
    clock.advance(seconds=30)
    assert services.signer.keyring.refresh.active(services.clock.now()).kid != before
    await visitor.open(back)
    assert "Alice Ito" in visitor.page.text


@pytest.mark.in_process("serves https to itself")
async def test_over_tls_the_cookies_are_bound_to_this_host(settings: Settings, clock: FrozenClock) -> None:
    secure = settings.model_copy(update={"base_url": "https://profiles.test"})
    app = create_app(secure, Runtime(clock, SeededEntropy("tls")))
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    async with app.test_app(), httpx.AsyncClient(transport=transport, base_url=secure.base_url) as client:
        browser, lines = Browser(client), list[str]()

        async def keep(answer: httpx.Response) -> None:
            lines.extend(answer.headers.get_list("set-cookie"))

        client.event_hooks["response"] = [keep]
        await browser.sign_in(ALICE)
        assert "Alice Ito" in browser.page.text
        await browser.send("/sign-out")
        names = [line.partition("=")[0] for line in lines]
        assert names == [f"__Host-{name}" for name in (SIGN_IN, COOKIE, SIGN_IN, COOKIE)]  # two set, two ended
        for line in lines:  # RFC 6265bis §4.1.3.2; a browser refuses the prefix without them
            attributes = {part.partition("=")[0].lower(): part for part in line.split("; ")[1:]}
            assert {"secure", "httponly"} <= set(attributes)
            assert "domain" not in attributes
            assert (attributes["path"], attributes["samesite"]) == ("Path=/", "SameSite=Lax")


async def test_the_same_response_signs_in_once(visitor: Browser) -> None:
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


async def test_a_suspension_takes_effect_at_once(alice_there: Browser, services: Services) -> None:
    await operator.suspend(services, ALICE)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard/sign-in"


async def test_a_session_ends_by_itself(alice_there: Browser, clock: FrozenClock) -> None:
    clock.advance(days=8)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard/sign-in"
    live = await alice_there.http.get("/dashboard/sites/live", headers={"X-Fragment": "1"})
    assert (live.status_code, live.headers["X-Go-To"].partition("?")[0]) == (204, "/dashboard/sign-in")


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
@ON_ONE_DATABASE
async def test_a_form_of_another_page_is_rejected(alice_there: Browser, headers: dict[str, str]) -> None:
    fields = alice_there.page.form("/sign-out")["fields"]
    answer = await alice_there.http.post("/dashboard/sign-out", data=fields, headers=headers)
    assert answer.status_code == 403
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard"


@pytest.mark.parametrize("base_url", ["http://Profiles.TEST", "http://profiles.test:80", "http://profiles.test"])
@pytest.mark.in_process("changes a setting of the running service")
@ON_ONE_DATABASE
async def test_the_origin_of_a_browser_is_that_of_the_base_url_in_any_form(
    alice_there: Browser, services: Services, change: Change, base_url: str
) -> None:
    change(settings=services.settings.model_copy(update={"base_url": base_url}))
    fields = alice_there.page.form("/sign-out")["fields"]
    for origin, status in (("http://profiles.test:81", 403), ("http://profiles.test", 303)):
        headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
        answer = await alice_there.http.post("/dashboard/sign-out", data=fields, headers=headers)
        assert answer.status_code == status


@pytest.mark.parametrize("token", [None, "", "x", "ü", "0" * 64])
@ON_ONE_DATABASE
async def test_a_form_without_the_sessions_token_is_rejected(alice_there: Browser, token: str | None) -> None:
    await alice_there.send("/sign-out", 403, csrf=token)
    await alice_there.open("/dashboard")
    assert alice_there.answer.url.path == "/dashboard"


async def test_the_token_of_another_session_is_rejected(alice_there: Browser, signed_in: SignIn) -> None:
    bob = await signed_in(BOB)
    csrf = bob.page.form("/sign-out")["fields"]["csrf"]
    await alice_there.send("/sign-out", 403, csrf=csrf)


async def test_pages_load_nothing_from_other_origins(alice_there: Browser, app: Quart) -> None:
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
    assert "Page not found." in alice_there.page.text
    assert "trace-12345678" in alice_there.page.text
