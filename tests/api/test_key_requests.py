"""The requests of a key are counted per day. Failed ones are logged, without what the caller wrote (D-116)."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from quart import Quart

from api.request_log import stored
from conftest import ON_ONE_DATABASE, AsService, AsUser, Dial, client_of
from profilesvc.contract.names import is_documented
from profilesvc.contract.requests import MAX_DAYS
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.operations.housekeeping import RETENTION
from profilesvc.services import keys as key_service
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.storage.tables import insight as log_tables
from support.api import ALICE, BOB, Site, assert_error, assert_ok
from support.database.partitions import recorded
from support.tokens import PATH as TOKEN
from support.tokens import grant, refresh

KEYS = "/api/v1/developer/credentials"
HEARTBEAT, POSTS, LOCATION = "/api/v1/api-keys/heartbeat", "/api/v1/posts", "/api/v1/external-business/locations"
OF_PROCESS = pytest.mark.in_process("reads what the process has not written yet")


def path(site: Site) -> str:
    return f"{KEYS}/{site.key['client_id']}/requests"


async def read(owner: httpx.AsyncClient, site: Site, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = assert_ok(await owner.get(path(site), params=query))
    return found


async def errors(owner: httpx.AsyncClient, site: Site) -> list[tuple[Any, ...]]:
    """Status, code, reason and field of each logged error, the oldest first."""
    found = (await read(owner, site, errors_only="true"))["requests"][::-1]
    return [(one["status"], one["code"], one["reason"], one["field"]) for one in found]


async def test_each_request_is_counted_on_its_day(alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock) -> None:
    for _ in range(3):
        assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    assert_error(await plugin.http.get(f"{LOCATION}/211"), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await alice.get(f"{LOCATION}/111"))  # of the user, not of the key
    clock.advance(days=2)
    assert_error(await plugin.http.get("/api/v1/businesses"), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    found = await read(alice, plugin, days=3)
    assert found["usage"] == [
        {"day": "2026-01-04", "requests": 1, "client_errors": 1, "server_errors": 0},
        {"day": "2026-01-03", "requests": 0, "client_errors": 0, "server_errors": 0},
        {"day": "2026-01-02", "requests": 5, "client_errors": 1, "server_errors": 0},  # the grant is one, too
    ]
    assert len((await read(alice, plugin))["usage"]) == 7
    assert len((await read(alice, plugin, days=999_999))["usage"]) == 30


async def test_a_failure_of_the_provider_is_no_error_of_the_caller(
    alice: httpx.AsyncClient, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    body = {
        "kind": "status",
        "times": 9,
        "status": 400,
        "reason": "INVALID",
        "message": plugin.tokens["access_token"],
    }
    assert (await emulator.post("/__emulator/faults", json=body)).is_success
    answer = await plugin.http.post(POSTS, params={"locationId": "111"}, json={"summary": "Fresh bread"})
    assert_error(answer, 502, "PROVIDER_API_ERROR")
    found = await read(alice, plugin)
    assert [found["usage"][0][name] for name in ("client_errors", "server_errors")] == [0, 1]
    assert await errors(alice, plugin) == [(502, "PROVIDER_API_ERROR", "rejected", None)]


@OF_PROCESS
async def test_no_request_waits_for_a_statement_of_the_log(plugin: Site, services: Services) -> None:
    await services.part(RequestLog).write(services)
    with recorded(services) as statements:
        for _ in range(20):
            assert_ok(await plugin.http.post(HEARTBEAT, json={}))
            assert_ok(await plugin.http.get(POSTS, params={"locationId": "111"}))
        assert not [each for each in statements if "key_usage" in each or "request_log" in each]
        await services.part(RequestLog).write(services)
    assert [each for each in statements if "INTO key_usage" in each]


@OF_PROCESS
async def test_errors_of_every_kind_are_logged_with_their_reason(
    alice: httpx.AsyncClient, plugin: Site, as_service: AsService, http: httpx.AsyncClient
) -> None:
    reader = await as_service(permissions=["business.read"], primary_domain="harbour.example")
    at: dict[str, Any] = {"params": {"locationId": "111"}}
    assert_error(await reader.http.post(POSTS, json={}, **at), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    page = {"Origin": "https://other.example"}
    assert_error(await reader.http.get(POSTS, headers=page, **at), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    body = {"summary": "Open", "callToAction": {"actionType": "NO_SUCH", "url": "x"}}
    assert_error(await plugin.http.post(POSTS, json=body, **at), 400, "VALIDATION_ERROR")
    assert_error(await plugin.http.delete(f"{POSTS}/a b", **at), 400, "VALIDATION_ERROR")
    assert_error(await plugin.http.post(POSTS, content=b"{", **at), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert_error(await plugin.http.get("/api/v1/nothing"), 404, "NOT_FOUND")
    assert_error(await plugin.http.put(HEARTBEAT, json={}), 405, "METHOD_NOT_ALLOWED")
    assert_error(await plugin.http.post(HEARTBEAT, json={"x": "x" * 300_000}), 413, "PAYLOAD_TOO_LARGE")
    assert [each[:3] for each in await errors(alice, reader)] == [
        (403, "AUTH_INSUFFICIENT_PERMISSIONS", "permission_missing"),
        (403, "AUTH_INSUFFICIENT_PERMISSIONS", "origin_not_allowed"),
    ]
    assert await errors(alice, plugin) == [
        (400, "VALIDATION_ERROR", None, "callToAction.actionType"),
        (400, "VALIDATION_ERROR", None, "postId"),
        (415, "UNSUPPORTED_MEDIA_TYPE", None, None),
        (404, "NOT_FOUND", None, None),
        (405, "METHOD_NOT_ALLOWED", None, None),
        (413, "PAYLOAD_TOO_LARGE", None, None),
    ]
    one = (await read(alice, plugin, errors_only="true"))["requests"][-2]
    assert (one["method"], one["path"], one["at"]) == (
        "DELETE",
        "/api/v1/posts/{postId}",
        "2026-01-02T03:04:05.678Z",
    )
    assert one["ip_prefix"] is None or one["ip_prefix"].endswith("/24")


@OF_PROCESS
async def test_wrong_credentials_are_logged_for_the_key_that_they_name(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    assert_error(await http.post(TOKEN, json=grant(plugin, client_secret="A" * 64)), 401, "AUTH_INVALID_TOKEN")
    form = {"grant_type": "client_credentials", "client_id": plugin.key["client_id"], "client_secret": "B" * 64}
    assert (await http.post("/oauth2/token", data=form)).status_code == 401
    assert_ok(await http.post(TOKEN, json=refresh(plugin)))
    clock.advance(seconds=31)
    assert_error(await http.post(TOKEN, json=refresh(plugin)), 401, "AUTH_INVALID_TOKEN")  # was exchanged
    assert [each[:2] for each in await errors(alice, plugin)] == [
        (401, "AUTH_INVALID_TOKEN"),
        (401, "invalid_client"),
        (401, "AUTH_INVALID_TOKEN"),
    ]


@OF_PROCESS
async def test_revoked_tokens_are_logged_for_their_key(
    alice: httpx.AsyncClient, as_service: AsService, http: httpx.AsyncClient
) -> None:
    ended = await as_service()
    assert_ok(await alice.delete(f"{KEYS}/{ended.key['client_id']}"))
    assert_error(await ended.http.post(HEARTBEAT, json={}), 401, "AUTH_INVALID_TOKEN")
    assert_error(await http.post(TOKEN, json=refresh(ended)), 401, "AUTH_INVALID_TOKEN")
    assert [each[2] for each in await errors(alice, ended)] == ["revoked", None]


@OF_PROCESS
async def test_expired_tokens_are_logged_for_their_key(
    plugin: Site, dial: Dial, services: Services, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    clock.advance(days=91)
    assert_error(await plugin.http.post(HEARTBEAT, json={}), 401, "AUTH_INVALID_TOKEN")
    assert_error(await http.post(TOKEN, json=refresh(plugin)), 401, "AUTH_INVALID_TOKEN")
    alice = dial(await tokens.user_token(services, ALICE))
    assert await errors(alice, plugin) == [
        (401, "AUTH_INVALID_TOKEN", "expired", None),
        (401, "AUTH_INVALID_TOKEN", None, None),
    ]
    assert (await read(alice, plugin))["usage"][0]["client_errors"] == 2


async def test_the_errors_of_a_deactivated_key_name_the_cause(
    alice: httpx.AsyncClient, plugin: Site, services: Services, http: httpx.AsyncClient
) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
    assert_error(await plugin.http.post(HEARTBEAT, json={}), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_error(await http.post(TOKEN, json=grant(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert await errors(alice, plugin) == [(403, "AUTH_INSUFFICIENT_PERMISSIONS", "billing_issue", None)] * 2


@OF_PROCESS
async def test_the_errors_of_unknown_callers_are_not_logged(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await services.part(RequestLog).write(services)
    before = await stored(services)
    unknown = {"grant_type": "client_credentials", "client_id": "svcid_1_1_nobody", "client_secret": "A" * 64}
    assert_error(await http.post(TOKEN, json=unknown), 401, "AUTH_INVALID_TOKEN")
    for token in ("", "x.y.z", plugin.tokens["access_token"][:-9] + "AAAAAAAAA"):
        answer = await http.get(f"{LOCATION}/111", headers={"Authorization": f"Bearer {token}"})
        assert_error(answer, 401, "AUTH_INVALID_TOKEN")
    assert_error(await http.get("/api/v1/nothing"), 404, "NOT_FOUND")
    assert_ok(await alice.get(f"{LOCATION}/111"))
    await services.part(RequestLog).write(services)
    assert await stored(services) == before


@OF_PROCESS
async def test_a_secret_or_token_is_never_logged_wherever_a_caller_writes_it(
    alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, services: Services
) -> None:
    secret, token = plugin.credentials["client_secret"], plugin.tokens["access_token"]
    plain = "".join(letter if letter.isalnum() else "-" for letter in secret)  # in a path and as a request id
    at: dict[str, Any] = {"params": {"locationId": "111"}}
    for text in (secret, token, plain, token.split(".")[1], token.split(".")[2]):
        site, named = plugin.http, quote(text, safe="")
        answers = [
            await site.get(f"/api/v1/{named}"),
            await site.get(f"{POSTS}/{named[:60]}", **at),
            await site.get(f"{LOCATION}/{named[:60]}"),
            await site.get(POSTS, params={"locationId": text, text: text}),
            await site.get(POSTS, params={"locationId": "111", "pageToken": text, f"pageToken[{text}]": "1"}),
            await site.post(POSTS, json={text: text, "summary": text, "media": [{text: text}]}, **at),
            await site.post(POSTS, json={"callToAction": {text: text, "actionType": text}}, **at),
            await site.post(POSTS, json={"summary": text, "event": {"schedule": {text: {text: 1}}}}, **at),
            await site.post("/api/v1/sync/111", json={text: text, "attributes": [{"name": text}]}),
            await site.post("/api/v1/sync/111", json={"regularHours": {text: text}, "labels": {text: text}}),
            await site.post(HEARTBEAT, json={"plugin_version": {text: text}, "detected_plugins": [text]}),
            await site.post(HEARTBEAT, content=text.encode()),
            await site.post(HEARTBEAT, json={}, headers={"X-Request-Id": text, "User-Agent": text}),
            await site.get(f"{LOCATION}/211", headers={"X-Request-Id": text, "Origin": f"https://{text[:60]}"}),
            await site.post(POSTS, json={}, headers={"X-Idempotency-Key": f"{text} {text}"}, **at),
            await site.get(f"{LOCATION}/211", headers={"Content-Type": text, "X-Forwarded-For": text}),
            await http.post(TOKEN, json=grant(plugin, client_secret=text, permissions=[text])),
            await http.post(TOKEN, json={"grant_type": text, "client_id": plugin.key["client_id"], text: text}),
            await http.post("/oauth2/token", data={**grant(plugin), "scope": text, text: text}),
            await http.post("/oauth2/introspect", data={**plugin.credentials, "token": text, "client_secret": text}),
        ]
        assert sum(answer.status_code >= 400 for answer in answers) >= 12
    await services.part(RequestLog).write(services)
    rows = await stored(services)
    assert "permission" not in rows or "VALIDATION_ERROR" in rows
    assert rows.count("VALIDATION_ERROR") > 10
    assert rows.count("/api/v1/api-keys/heartbeat") >= 5
    parts = (secret, plain, plugin.tokens["refresh_token"], *token.split("."))
    for text in parts:
        for start in range(0, len(text) - 12, 6):
            assert text[start : start + 12] not in rows, text


def test_only_documented_names_of_fields_are_logged() -> None:
    for name in ("callToAction.url", "media.0.sourceUrl", "permissions.3", "locationId", "X-Idempotency-Key"):
        assert is_documented(name), name
    for name in ("", "hunter2", "summary.hunter2", "media.12345", "media..0", "callToAction.url "):
        assert not is_documented(name), name


@OF_PROCESS
async def test_every_route_fits_into_its_column_of_the_log(app: Quart) -> None:
    widths = {column.name: column.type.length for column in log_tables.request_log.c if hasattr(column.type, "length")}
    assert max(len(rule.rule) for rule in app.url_map.iter_rules()) <= widths["route"]


@OF_PROCESS
async def test_the_pages_of_requests_follow_each_other(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    for number in range(7):
        clock.advance(seconds=number % 2)
        where = "211" if number % 3 == 0 else "111"
        await plugin.http.get(f"{LOCATION}/{where}")
    everything = (await read(alice, plugin))["requests"]
    assert len(everything) == 8
    assert everything[-1]["path"] == TOKEN
    assert [one["at"] for one in everything] == sorted((one["at"] for one in everything), reverse=True)
    for query, wanted in (
        ({}, everything),
        ({"errors_only": "true"}, [one for one in everything if one["code"]]),
    ):
        found, before = list[Any](), dict[str, str]()
        while True:
            page = await read(alice, plugin, limit=2, **query, **before)
            assert len(page["requests"]) <= page["limit"] == 2
            found += page["requests"]
            if page["next_before"] is None:
                break
            before = {"before": page["next_before"]}
        assert found == wanted


async def test_logged_requests_are_listed_for_7_days(
    dial: Dial, services: Services, plugin: Site, clock: FrozenClock
) -> None:
    assert_error(await plugin.http.get(f"{LOCATION}/211"), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    clock.advance(days=6, hours=23)
    alice = dial(await tokens.user_token(services, ALICE))
    assert len(await errors(alice, plugin)) == 1
    clock.advance(hours=2)
    alice = dial(await tokens.user_token(services, ALICE))
    found = await read(alice, plugin, days=30)
    assert found["requests"] == []
    assert sum(day["client_errors"] for day in found["usage"]) == 1


@pytest.mark.parametrize(
    "query",
    ["days=0", "days=x", "days=1&days=2", "limit=0", "errors_only=yes", "before=x", "before=1-", "before=1-zz",
     "before=" + "9" * 16 + "-0", "errorsOnly=&errors_only=TRUE", "before=1%00-0", "limit=%EF%BC%91"],
)  # fmt: skip
@ON_ONE_DATABASE
async def test_bad_values_of_the_query_are_rejected(alice: httpx.AsyncClient, plugin: Site, query: str) -> None:
    assert_error(await alice.get(f"{path(plugin)}?{query}"), 400, "VALIDATION_ERROR")


async def test_only_the_owner_reads_the_requests_of_a_key(
    as_user: AsUser, plugin: Site, http: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    bob = await as_user(BOB)
    foreign, missing = await bob.get(path(plugin)), await bob.get(f"{KEYS}/svcid_1_1_x/requests")
    assert_error(foreign, 404, "NOT_FOUND")
    assert foreign.content == missing.content
    assert_error(await plugin.http.get(path(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_error(await http.get(path(plugin)), 401, "AUTH_INVALID_TOKEN")


async def test_days_are_kept_as_long_as_they_can_be_read(
    plugin: Site, dial: Dial, services: Services, clock: FrozenClock
) -> None:
    assert RETENTION["key_usage"] == (MAX_DAYS + 1) * DAY
    clock.advance(days=29)
    alice = dial(await tokens.user_token(services, ALICE))
    assert sum(day["requests"] for day in (await read(alice, plugin, days=30))["usage"]) == 1


@OF_PROCESS
async def test_requests_of_another_process_are_read(app: Quart, plugin: Site, alice: httpx.AsyncClient) -> None:
    """A reader sees what this process has answered a moment ago."""
    async with client_of(app, plugin.tokens["access_token"]) as site:
        for number in range(3):
            assert_ok(await site.post(HEARTBEAT, json={}))
            assert (await read(alice, plugin))["usage"][0]["requests"] == number + 2
