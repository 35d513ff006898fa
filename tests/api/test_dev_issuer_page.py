"""The login page of the bundled development issuer, and the addresses that it sends people back to."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import BASE_URL, ON_ONE_DATABASE, make_settings
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.time import FrozenClock
from support.identity.dev_issuer import ISSUER, REQUEST, Form, returned


async def test_the_login_page_is_plain_and_loads_nothing(http: httpx.AsyncClient) -> None:
    page = await http.get("/dev/issuer/authorize", params={**REQUEST, "state": '"><script>alert(1)</script>'})
    form = Form(page.text)
    assert form.tags <= {
        *("html", "head", "meta", "title", "style", "body", "main"),
        *("h1", "p", "form", "input", "button", "small"),
    }
    assert form.hidden["state"] == '"><script>alert(1)</script>'
    assert form.subjects == ["demo-1", "demo-2", "demo-3"]
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "form-action 'self' http://127.0.0.1:9999;" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"


async def test_the_login_page_without_users_shows_how_to_add_them(tmp_path: Path, clock: FrozenClock) -> None:
    app = create_app(make_settings(tmp_path), Runtime(clock))
    async with app.test_app():
        answer = await app.test_client().get("/dev/issuer/authorize", query_string=REQUEST)
        assert "db seed" in await answer.get_data(as_text=True)


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    "redirect_uri",
    [
        "",
        "https://evil.example/cb",
        "http://evil.example/cb",
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.1@evil.example/",
        "http://evil.example@127.0.0.1/",
        "http://127.0.0.1\\@evil.example/",
        "http://[::1].evil.example/",
        "http://[::1]evil.example:80/",
        "https://127.0.0.1/cb",
        "//127.0.0.1/cb",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/cb#part",
        "http://127.0.0.1/c b",
        "http://127.0.0.1/cb\r\nSet-Cookie: a=b",
        "javascript:alert(1)//127.0.0.1",
        "data:text/html,x",
        "myapp://callback",
        f"{BASE_URL}.evil.example/cb",
        f"{BASE_URL}:81/cb",
    ],
)
async def test_the_login_page_does_not_redirect_to_other_hosts(http: httpx.AsyncClient, redirect_uri: str) -> None:
    asked = {**REQUEST, "redirect_uri": redirect_uri}
    for answer in (
        await http.get("/dev/issuer/authorize", params=asked),
        await http.post("/dev/issuer/authorize", data={**asked, "subject": "demo-1"}),
    ):
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "form-action 'self';" in answer.headers["content-security-policy"]


async def test_the_login_page_redirects_to_this_machine_and_to_the_service(http: httpx.AsyncClient) -> None:
    for good in ("http://localhost:5/a?b=c", "http://[::1]/", f"{BASE_URL}/dashboard/", f"{BASE_URL}:80/x"):
        answer = await http.post("/dev/issuer/authorize", data={**REQUEST, "redirect_uri": good, "subject": "demo-1"})
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(f"{good}{'&' if '?' in good else '?'}code=")


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": ""}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge": "x" * 42}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": ""}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"nonce": "n" * 513}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
    ],
)
async def test_errors_of_a_request_are_returned_to_the_client(
    http: httpx.AsyncClient, changes: dict[str, str], error: str
) -> None:
    back = returned(await http.get("/dev/issuer/authorize", params={**REQUEST, **changes}))
    assert (back["error"], back["state"], back["iss"]) == (error, "s-1", ISSUER)
    assert "code" not in back


async def test_a_choice_that_is_not_on_the_page_is_rejected(http: httpx.AsyncClient) -> None:
    answer = await http.post("/dev/issuer/authorize", data={**REQUEST, "subject": "demo-9"})
    assert returned(answer)["error"] == "access_denied"


async def test_opening_a_link_does_not_sign_in(http: httpx.AsyncClient) -> None:
    answer = await http.get("/dev/issuer/authorize", params={**REQUEST, "subject": "demo-1"})
    assert answer.status_code == 200


async def test_an_unknown_client_or_a_parameter_twice_is_rejected_without_a_redirect(http: httpx.AsyncClient) -> None:
    asked: Any
    for asked in ({**REQUEST, "client_id": "other"}, [*REQUEST.items(), ("scope", "openid")]):
        answer = await http.get("/dev/issuer/authorize", params=asked)
        assert answer.status_code == 400
        assert "location" not in answer.headers
