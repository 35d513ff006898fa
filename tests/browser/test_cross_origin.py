"""The Origin rule as a browser applies it: which page may call, and which gets to see the answer (D-30, D-31)."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from profilesvc.lab import Lab, open_lab

FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    const shown = ['x-request-id', 'idempotency-replayed', 'content-type', 'server'];
    const headers = Object.fromEntries(shown.map(name => [name, answer.headers.get(name)]));
    return {status: answer.status, headers, body: await answer.json()};
  } catch (error) {
    return {error: error.name};
  }
}"""
BLOCKED = {"error": "TypeError"}


class _Page(BaseHTTPRequestHandler):
    """An empty page, whatever it is called."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The server of the pages of all sites."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab() as opened:
        yield opened


class Browser:
    """Opens pages of sites; without request routing, under which Playwright answers preflights by itself."""

    def __init__(self, context: Any, port: int, lab: Lab) -> None:
        self._context, self.port, self._lab = context, port, lab

    def fetch(self, site: str, method: str, path: str, token: str, **options: Any) -> Any:
        """The response of the API to a script in a page of `http://site:port/`."""
        page = self._context.new_page()
        page.goto(f"http://{site}:{self.port}/")
        headers = {"Authorization": token, **options.pop("headers", {})}
        given = {"method": method, "headers": headers, **options}
        answer = page.evaluate(FETCH, [f"{self._lab.url}{path}", given])
        page.close()
        return answer


@pytest.fixture
def browser(chromium: Any, port: int, lab: Lab) -> Iterator[Browser]:
    context = chromium.new_context()
    yield Browser(context, port, lab)
    context.close()


def key_of(lab: Lab, **members: Any) -> dict[str, Any]:
    body = {"name": "Plugin", "business_id": lab.business_id, "assigned_location_id": lab.location, **members}
    data: dict[str, Any] = lab.user("alice").post("/api/v1/developer/credentials", json=body).json()["data"]
    return data


LOCATIONS = "/api/v1/external-business/locations"
JSON = {"Content-Type": "application/json"}


def test_A123_a_page_of_the_keys_domain_reads_and_one_of_another_does_not(browser: Browser, lab: Lab) -> None:
    key = key_of(lab, primary_domain=f"shop.example:{browser.port}")
    token = lab.service(key).headers["Authorization"]
    read = browser.fetch("shop.example", "GET", LOCATIONS, token)
    assert read["status"] == 200
    assert read["body"]["status"] == "ok"
    assert read["headers"]["x-request-id"]
    assert browser.fetch("www.shop.example", "GET", LOCATIONS, token)["status"] == 200
    for site in ("evil.example", "shop.example.evil.example", "xshop.example", "sub.shop.example"):
        assert browser.fetch(site, "GET", LOCATIONS, token) == BLOCKED


def test_A124_a_page_of_another_site_cannot_even_send(browser: Browser, lab: Lab) -> None:
    key = key_of(lab, primary_domain=f"shop.example:{browser.port}")
    token, status = lab.service(key).headers["Authorization"], f"/api/v1/api-keys/{key['client_id']}/status"
    beat = {"body": "{}", "headers": JSON}
    assert browser.fetch("evil.example", "POST", "/api/v1/api-keys/heartbeat", token, **beat) == BLOCKED
    assert lab.user("alice").get(status).json()["data"]["last_heartbeat_at"] is None
    assert browser.fetch("shop.example", "POST", "/api/v1/api-keys/heartbeat", token, **beat)["status"] == 200
    assert lab.user("alice").get(status).json()["data"]["last_heartbeat_at"] is not None


def test_D31_methods_headers_and_errors_are_open_to_an_allowed_page(browser: Browser, lab: Lab) -> None:
    token = lab.service(key_of(lab, primary_domain=f"shop.example:{browser.port}")).headers["Authorization"]
    sync = f"/api/v1/sync/{lab.location.removeprefix('locations/')}"
    push = {"body": '{"title": "Harbour Coffee"}', "headers": {**JSON, "X-Idempotency-Key": "once"}}
    first, again = (browser.fetch("shop.example", "POST", sync, token, **push) for _ in range(2))
    assert (first["status"], again["status"], first["body"]) == (200, 200, again["body"])
    assert (first["headers"]["idempotency-replayed"], again["headers"]["idempotency-replayed"]) == (None, "true")
    for method in ("PATCH", "DELETE"):
        missing = browser.fetch("shop.example", method, f"/api/v1/posts/nothing?locationId={lab.location}", token)
        assert missing["body"]["status"] == "error", method


def test_a_key_without_domains_serves_every_page(browser: Browser, lab: Lab) -> None:
    token = lab.service(key_of(lab)).headers["Authorization"]
    assert browser.fetch("any.example", "GET", LOCATIONS, token)["status"] == 200


def test_D31_user_tokens_are_for_dashboards(browser: Browser, lab: Lab) -> None:
    token = lab.user("alice").headers["Authorization"]
    assert browser.fetch("localhost", "GET", LOCATIONS, token)["status"] == 200
    assert browser.fetch("evil.example", "GET", LOCATIONS, token) == BLOCKED
