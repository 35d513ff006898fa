"""The requests of a key on its page: days, last errors in words, the log and its file."""

import csv
import io
import re

import httpx
import pytest

from conftest import AsService
from profilesvc.contract.errors import CATALOGUE, Forbidden
from profilesvc.contract.requests import LoggedRequest, UsageDay
from profilesvc.dashboard.keys import requests as key_requests
from profilesvc.dashboard.words import requests as request_words
from profilesvc.domain.time import FrozenClock
from profilesvc.services import keys
from profilesvc.services.context import Services
from support.api import BOB, Site
from support.browser.dashboard import Browser, SignIn

HEARTBEAT, LOCATION = "/api/v1/api-keys/heartbeat", "/api/v1/external-business/locations"


def page_of(site: Site, what: str = "") -> str:
    return f"/dashboard/keys/{site.key['client_id']}{what}"


async def test_the_page_of_a_key_has_its_days_and_last_errors(
    alice_there: Browser, plugin: Site, clock: FrozenClock
) -> None:
    page = await alice_there.open(page_of(plugin))
    assert "1 request, no error" in page.text
    assert "No error in the last 7 days." in page.text
    clock.advance(days=1)
    for number in range(8):
        await plugin.http.post(HEARTBEAT, json={"plugin_version": number if number else "1.0"})
    await plugin.http.get(f"{LOCATION}/211")
    page = await alice_there.open(page_of(plugin))
    assert "9 requests, 8 errors" in page.text  # of today
    assert page.text.count("10 requests, 8 errors") == 2  # of 7 and of 30 days
    assert "2026-01-03 9 8" in page.text
    assert "2026-01-02 1 0" in page.text
    assert page.text.count("The plugin sent something that is not valid. The field: ") == 4
    assert "The plugin asked for another location than that of the key." in page.text
    assert "Create a key for that location" in page.text
    assert page_of(plugin, "/requests") in page.links
    bars = re.findall(
        r'<path class="(online|offline)" d="([^"]*)"', alice_there.answer.text.partition("usage-title")[2]
    )
    assert [(name, path.count("M")) for name, path in bars[:2]] == [("online", 2), ("offline", 1)]
    assert " style=" not in alice_there.answer.text


async def test_an_error_on_the_page_of_a_key_leaves_the_usage(alice_there: Browser, plugin: Site) -> None:
    await alice_there.open(page_of(plugin))
    await alice_there.send("/deactivate", 400, sure=None)
    assert "1 request, no error" in alice_there.page.text


async def test_the_log_has_pages_a_filter_and_a_file(alice_there: Browser, plugin: Site, clock: FrozenClock) -> None:
    for number in range(75):
        clock.advance(minutes=4)
        await plugin.http.get(f"{LOCATION}/{211 if number % 5 == 0 else 111}")
    path: str | None = page_of(plugin, "/requests")
    seen, pages = 0, 0
    while path is not None:
        page = await alice_there.open(path)
        seen += alice_there.answer.text.count('data-label="Result"')
        pages += 1
        path = next((link for link in page.links if "before=" in link), None)
    assert (seen, pages) == (76, 2)
    assert "Newest requests" in page.text
    await alice_there.open(page_of(plugin, "/requests?show=errors"))
    assert alice_there.answer.text.count('data-label="Result"') == 15
    assert alice_there.answer.text.count("another location") == 15
    rows = await table(alice_there, page_of(plugin, "/requests.csv?show=errors"))
    assert len(rows) == 15
    assert rows[0]["Path"] == f"{LOCATION}/{{locationId}}"
    assert (rows[0]["Status"], rows[0]["Reason"]) == ("403", "other_location")
    assert rows[0]["What happened"].startswith("The plugin asked for another location")
    assert len(await table(alice_there, page_of(plugin, "/requests.csv"))) == 76
    await alice_there.open(page_of(plugin, "/requests?before=evil"), 400)


async def table(browser: Browser, path: str) -> list[dict[str, str]]:
    answer = await browser.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="requests-2026-')
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


async def test_an_empty_log_says_so(alice_there: Browser, plugin: Site, clock: FrozenClock) -> None:
    clock.advance(days=6)
    await alice_there.sign_in("alice@example.com")
    clock.advance(days=2)
    assert "No request in the last 7 days." in (await alice_there.open(page_of(plugin, "/requests"))).text
    assert "No error in the last 7 days." in (await alice_there.open(page_of(plugin, "/requests?show=errors"))).text


async def test_a_revoked_key_keeps_its_log(alice_there: Browser, plugin: Site, services: Services) -> None:
    await keys.revoke(services, None, plugin.key["client_id"])
    await plugin.http.post(HEARTBEAT, json={})
    assert "its secret replaced" in (await alice_there.open(page_of(plugin))).text
    assert "Heartbeat" in (await alice_there.open(page_of(plugin, "/requests"))).text


async def test_another_users_requests_are_not_shown(
    signed_in: SignIn, plugin: Site, visitor: Browser, as_service: AsService
) -> None:
    bob = await signed_in(BOB)
    for what in ("/requests", "/requests.csv"):
        await bob.open(page_of(plugin, what), 404)
        answer = await visitor.http.get(page_of(plugin, what))
        assert (answer.status_code, answer.text) == (303, "")


async def test_the_page_has_nothing_that_callers_send(
    alice_there: Browser, plugin: Site, http: httpx.AsyncClient
) -> None:
    evil = "<script>alert(1)</script>"
    await plugin.http.get("/api/v1/posts", params={"locationId": evil}, headers={"User-Agent": evil})
    await plugin.http.post("/api/v1/posts", params={"locationId": "111"}, json={"media": [{evil: evil}]})
    await plugin.http.get(f"/api/v1/{evil}")
    for what in ("", "/requests"):
        await alice_there.open(page_of(plugin, what))
        assert "alert(1)" not in alice_there.answer.text


def logged(code: str | None, reason: str | None = None, path: str = HEARTBEAT) -> LoggedRequest:
    return LoggedRequest(
        at="2026-01-02T03:04:05.678Z", method="POST", path=path, status=400 if code else 200, code=code, reason=reason,
        field=None, duration_ms=1, request_id=None, ip_prefix=None,
    )  # fmt: skip


REASONS = [
    reason.value
    for reason in Forbidden
    if reason.value not in ("no_user", "user_token_required", "service_token_required")
]


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_each_code_has_words_and_a_guide(code: str) -> None:
    explained = request_words.explained(logged(code))
    developer = {"METHOD_NOT_ALLOWED", "UNSUPPORTED_MEDIA_TYPE", "IDEMPOTENCY_KEY_REUSED", "HEADERS_TOO_LARGE"}
    assert (explained.what == "The request was rejected.") is (code in developer)
    assert explained.do
    assert request_words.guide(logged(code)) == f"/guides/docs/errors.html#{code.lower()}"


@pytest.mark.parametrize("reason", REASONS)
def test_each_refusal_of_a_site_has_words_of_its_own(reason: str) -> None:
    assert request_words.explained(logged("AUTH_INSUFFICIENT_PERMISSIONS", reason)).what != "The key may not do this."


def test_codes_of_the_standard_paths_lead_to_their_page() -> None:
    assert request_words.guide(logged("invalid_client")) == "/guides/docs/oauth.html#errors"
    assert request_words.explained(logged("invalid_client")).what == "The secret or the token was wrong."
    assert request_words.operation(logged(None, path="/oauth2/token")) == "Token"
    assert request_words.operation(logged(None, path="unknown")) == "Another request"
    assert request_words.operation(logged(None, path="/api/v1/sync/{locationId}")) == "Sync"


def test_a_single_error_among_thousands_is_seen() -> None:
    days = [UsageDay(day="2026-01-02", requests=100_000, client_errors=1, server_errors=0)]
    quiet = UsageDay(day="2026-01-01", requests=0, client_errors=0, server_errors=0)
    assert key_requests._bars([*days, quiet]) == {"offline": "M10 39h8v1h-8z", "online": "M10 0h8v40h-8z"}
    assert key_requests._bars([quiet]) == {"online": "", "offline": ""}
