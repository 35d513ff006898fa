"""A browser at the bundled issuer's login page, and the OpenID client that sent it there."""

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import httpx

from conftest import BASE_URL
from profilesvc.dev_issuer.provider import s256

ISSUER = f"{BASE_URL}/dev/issuer"
CALLBACK = "http://127.0.0.1:9999/callback"
VERIFIER = "v" * 43
REQUEST = {
    "response_type": "code",
    "client_id": "dashboard",
    "redirect_uri": CALLBACK,
    "scope": "openid email",
    "state": "s-1",
    "nonce": "n-1",
    "code_challenge": s256(VERIFIER),
    "code_challenge_method": "S256",
}


class Form(HTMLParser):
    """The hidden fields and the buttons of the login page, as a browser would send them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}
        self.subjects: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "style") for name in given)
        if tag == "input":
            self.hidden[given["name"]] = given["value"]
        if tag == "button":
            self.subjects.append(given["value"])


async def picked(http: httpx.AsyncClient, subject: str = "demo-1", **changes: str) -> dict[str, str]:
    """The parameters that the client gets after someone has selected a user on the page."""
    page = await http.get("/dev/issuer/authorize", params={**REQUEST, **changes})
    assert page.status_code == 200, page.text
    form = Form(page.text)
    answer = await http.post("/dev/issuer/authorize", data={**form.hidden, "subject": subject})
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(CALLBACK + "?")
    return returned(answer)


def returned(answer: httpx.Response) -> dict[str, str]:
    query = parse_qs(urlsplit(answer.headers["location"]).query, strict_parsing=True)
    assert all(len(values) == 1 for values in query.values())
    return {name: values[0] for name, values in query.items()}


async def redeemed(http: httpx.AsyncClient, good: str, **changes: str) -> httpx.Response:
    form = {
        "grant_type": "authorization_code",
        "code": good,
        "redirect_uri": CALLBACK,
        "client_id": "dashboard",
        "code_verifier": VERIFIER,
        **changes,
    }
    return await http.post("/dev/issuer/token", data=form)


def assert_oauth_error(answer: httpx.Response, error: str) -> None:
    assert answer.status_code == 400
    assert answer.json()["error"] == error
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"
