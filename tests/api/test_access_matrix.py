"""Every route, kind of caller and kind of target, by a policy that is independent of the code."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import AsService, make_settings
from profilesvc.bootstrap import create_app
from profilesvc.domain.time import DAY
from profilesvc.services import keys as key_service
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage import users
from support.api import ALICE, BOB, assert_error
from support.provider.consent import connect_by_token

MESSAGES = {
    "path": "There is no such location.",
    "query": "There is no such location.",
    "key": "There is no such API key.",
    "webhook": "There is no such webhook.",
    "delivery": "There is no such webhook.",
    "alert": "There is no such alert.",
    "connection": "There is no such connection.",
}
EMPTY: dict[str, Any] = {}
SENT = {
    "POST /api/v1/provider-connections/<connection_id>/import": {"locations": []},  # read before the id
    "POST /api/v1/webhooks/<webhook_id>/recover": {"since": "2026-01-02T00:00:00Z"},  # read before the id
    "PATCH /api/v1/developer/credentials/<client_id>": {"name": "Renamed"},
    "POST /api/v1/alerts": {"address": "nobody"},  # an empty body would create one
}


@dataclass(frozen=True)
class Row:
    """The rule of a route; `reached` is the status for an authorised caller with an empty body."""

    who: str  # public, user, service, read, write
    target: str  # "", path, query, key, webhook, delivery, alert
    reached: int


# The rule of each route (D-17). A route that ends a key comes after those that read it.
POLICY: dict[str, Row] = {
    "POST /api/v1/developer/credentials": Row("user", "", 400),
    "GET /api/v1/developer/credentials": Row("user", "", 200),
    "GET /api/v1/api-keys/<client_id>/status": Row("user", "key", 200),
    "GET /api/v1/developer/credentials/<client_id>/audit": Row("user", "key", 200),
    "GET /api/v1/developer/credentials/<client_id>/requests": Row("user", "key", 200),
    "GET /api/v1/developer/credentials/<client_id>/alerts": Row("user", "key", 200),
    "PATCH /api/v1/developer/credentials/<client_id>/alerts": Row("user", "key", 200),
    "GET /api/v1/audit": Row("user", "", 200),
    "GET /api/v1/events": Row("user", "", 200),
    "POST /api/v1/alerts": Row("user", "", 400),
    "GET /api/v1/alerts": Row("user", "", 200),
    "GET /api/v1/alerts/<alert_id>": Row("user", "alert", 200),
    "PATCH /api/v1/alerts/<alert_id>": Row("user", "alert", 200),
    "POST /api/v1/alerts/<alert_id>/test": Row("user", "alert", 200),
    "DELETE /api/v1/alerts/<alert_id>": Row("user", "alert", 200),
    "POST /api/v1/provider-connections": Row("user", "", 200),
    "POST /api/v1/provider-connection-links": Row("user", "", 200),
    "GET /api/v1/provider-connections": Row("user", "", 200),
    "GET /api/v1/provider-connections/<connection_id>": Row("user", "connection", 200),
    "POST /api/v1/provider-connections/<connection_id>/import": Row("user", "connection", 200),
    "GET /api/v1/provider-connections/<connection_id>/export": Row("user", "connection", 200),
    "DELETE /api/v1/provider-connections/<connection_id>": Row("user", "connection", 200),
    "POST /api/v1/webhooks": Row("user", "", 400),
    "GET /api/v1/webhooks": Row("user", "", 200),
    "GET /api/v1/webhooks/<webhook_id>": Row("user", "webhook", 200),
    "PATCH /api/v1/webhooks/<webhook_id>": Row("user", "webhook", 200),
    "POST /api/v1/webhooks/<webhook_id>/roll": Row("user", "webhook", 200),
    "POST /api/v1/webhooks/<webhook_id>/test": Row("user", "webhook", 200),
    "GET /api/v1/webhooks/<webhook_id>/deliveries": Row("user", "webhook", 200),
    "POST /api/v1/webhooks/<webhook_id>/deliveries/<delivery_id>/resend": Row("user", "delivery", 200),
    "POST /api/v1/webhooks/<webhook_id>/recover": Row("user", "webhook", 200),
    "DELETE /api/v1/webhooks/<webhook_id>": Row("user", "webhook", 200),
    "GET /api/v1/developer/credentials/<client_id>": Row("user", "key", 200),
    "PATCH /api/v1/developer/credentials/<client_id>": Row("user", "key", 200),
    "POST /api/v1/developer/credentials/<client_id>/end-previous-secret": Row("user", "key", 200),
    "POST /api/v1/developer/credentials/<client_id>/roll": Row("user", "key", 200),
    "POST /api/v1/developer/credentials/<client_id>/deactivate": Row("user", "key", 200),
    "POST /api/v1/developer/credentials/<client_id>/reactivate": Row("user", "key", 200),
    "DELETE /api/v1/developer/credentials/<client_id>": Row("user", "key", 200),
    "GET /api/v1/businesses": Row("user", "", 200),
    "POST /api/v1/api-keys/heartbeat": Row("service", "", 200),
    "POST /api/v1/auth/token": Row("public", "", 400),
    "POST /api/v1/auth/validate-service-credentials": Row("public", "", 400),
    "GET /api/v1/posts": Row("read", "query", 200),
    "POST /api/v1/posts": Row("write", "query", 400),
    "PATCH /api/v1/posts/<post:postId>": Row("write", "query", 400),
    "DELETE /api/v1/posts/<post:postId>": Row("write", "query", 404),
    "GET /api/v1/reviews": Row("read", "query", 200),
    "GET /api/v1/reviews/<review:reviewId>": Row("read", "query", 404),
    "PUT /api/v1/reviews/<review:reviewId>/reply": Row("write", "query", 400),
    "DELETE /api/v1/reviews/<review:reviewId>/reply": Row("write", "query", 404),
    "GET /api/v1/external-business/locations": Row("read", "", 200),
    "GET /api/v1/external-business/locations/<location:locationId>": Row("read", "path", 200),
    "PATCH /api/v1/external-business/locations/<location:locationId>/sync": Row("write", "path", 400),
    "POST /api/v1/external-business/locations/<location:locationId>/refresh-verification": Row("write", "path", 200),
    "GET /api/v1/external-business/locations/<location:locationId>/google-updated": Row("read", "path", 200),
    "POST /api/v1/external-business/locations/<location:locationId>/google-updated/accept": Row("write", "path", 400),
    "POST /api/v1/external-business/locations/<location:locationId>/google-updated/reject": Row("write", "path", 400),
    "GET /api/v1/sync/comparison/<location:locationId>": Row("read", "path", 200),
    "POST /api/v1/sync/<location:locationId>": Row("write", "path", 400),
    "GET /api/v1/sync/history/<location:locationId>": Row("read", "path", 200),
}

# The response to a caller who is rejected by every route with a token, whatever the target.
REFUSED: dict[str, str] = {
    "nobody": "401 missing",
    "garbage": "401 malformed",
    "forged": "401 invalid",
    "refresh token": "401 invalid",
    "expired": "401 expired",
    "revoked": "401 revoked",
    "logged out": "401 revoked",
    "deactivated user_requested": "403 user_requested",
    "deactivated billing_issue": "403 billing_issue",
    "deactivated plan_downgrade": "403 plan_downgrade",
    "deactivated security_concern": "403 security_concern",
}
# The response to an active caller, by the rule of the route.
STANDING: dict[str, dict[str, str]] = {
    "owner": {"user": "in", "service": "403 kind", "read": "in", "write": "in"},
    "other user": {"user": "in", "service": "403 kind", "read": "in", "write": "in"},
    "key rw": {"user": "403 kind", "service": "in", "read": "in", "write": "in"},
    "key r": {"user": "403 kind", "service": "in", "read": "in", "write": "403 permission"},
    "key w": {"user": "403 kind", "service": "in", "read": "403 permission", "write": "in"},
    "key rw, narrow token": {"user": "403 kind", "service": "in", "read": "in", "write": "403 permission"},
    "key of another location": {"user": "403 kind", "service": "in", "read": "in", "write": "in"},
}
# The response to an admitted caller by the location: own is locations/111, foreign is Carol's, missing does not exist.
LOCATIONS: dict[str, dict[str, str]] = {
    "owner": {"own": "in", "foreign": "404", "missing": "404", "malformed": "400"},
    "other user": {"own": "404", "foreign": "404", "missing": "404", "malformed": "400"},
    "key of another location": {"own": "403 location", "foreign": "403 location", "missing": "403 location"},
}
OWN_KEY = {"own": "in", "foreign": "403 location", "missing": "403 location", "malformed": "400"}
NAMES = {"own": "locations/111", "foreign": "locations/311", "missing": "locations/999", "malformed": "a b"}
KEYS: dict[str, dict[str, str]] = {
    "owner": {"foreign": "404", "missing": "404", "malformed": "404", "own": "in"},
    "other user": {"foreign": "404", "missing": "404", "malformed": "404", "own": "404"},
}


def expected(row: Row, caller: str, target: str) -> str:
    if row.who == "public":
        return "in"
    standing = REFUSED[caller] if caller in REFUSED else STANDING[caller][row.who]
    if standing != "in" or not row.target:
        return standing
    if row.target in ("key", "webhook", "delivery", "alert", "connection"):
        return KEYS[caller][target]
    return LOCATIONS.get(caller, OWN_KEY).get(target, "400")


def cells() -> Iterator[tuple[str, str, str]]:
    """(route, caller, target); the target `own` comes last, because an allowed request may end it."""
    for route, row in POLICY.items():
        for target in ("missing", "malformed", "foreign", "own") if row.target else ("",):
            for caller in [*REFUSED, *(name for name in STANDING if name != "owner"), "owner"]:
                yield route, caller, target


def check(row: Row, outcome: str, response: httpx.Response) -> None:
    """Check the response against the policy, with its reason and headers."""
    status, _, reason = outcome.partition(" ")
    if outcome == "in":
        assert response.status_code == row.reached, response.text
        if row.reached == 400:
            assert response.json()["error"]["details"]["errors"][0]["in"] == "body"
        elif row.reached == 404:
            message = response.json()["error"]["message"]
            assert message.startswith(("There is no such post", "There is no such review"))
    elif status == "401":
        assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": reason}
        assert response.headers["www-authenticate"].startswith("Bearer")
    elif status == "400":
        assert_error(response, 400, "VALIDATION_ERROR")
        assert response.json()["error"]["details"]["errors"][0]["in"] in ("path", "query")
    elif status == "404":
        assert_error(response, 404, "NOT_FOUND")
        assert response.json()["error"]["message"] == MESSAGES[row.target]
    else:
        _check_forbidden(reason, assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS"), response)


def _check_forbidden(reason: str, details: dict[str, Any], response: httpx.Response) -> None:
    if reason == "kind":
        assert details in ({"reason": "user_token_required"}, {"reason": "service_token_required"})
    elif reason == "location":
        assert details == {"reason": "other_location"}
    elif reason == "permission":
        assert set(details) == {"reason", "required"}
        assert details["reason"] == "permission_missing"
        assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    else:
        assert set(details) == {"deactivation_reason", "deactivated_at", "upgrade_url"}
        assert details["deactivation_reason"] == reason


@pytest.fixture
def database() -> str:
    """One database, because a policy does not depend on it. The tests of a deployment import the test with another."""
    return "sqlite"


@pytest.fixture
async def callers(as_service: AsService, alice: httpx.AsyncClient, services: Services) -> dict[str, str | None]:
    """The Authorization header of every caller."""
    headers: dict[str, str | None] = {"nobody": None, "garbage": "Bearer garbage"}
    sites = {
        "key rw": await as_service(),
        "key r": await as_service(permissions=["business.read"]),
        "key w": await as_service(permissions=["business.write"]),
        "key rw, narrow token": await as_service(requested=["business.read"]),
        "key of another location": await as_service("locations/112"),
        "revoked": await as_service(),
        **{name: await as_service() for name in REFUSED if name.startswith("deactivated")},
    }
    for name, site in sites.items():
        headers[name] = site.http.headers["Authorization"]
        if name.startswith("deactivated"):
            await key_service.deactivate(services, site.key["client_id"], name.split()[1])
    assert (await alice.delete(f"/api/v1/developer/credentials/{sites['revoked'].key['client_id']}")).is_success
    good = sites["key rw"]
    headers["refresh token"] = f"Bearer {good.tokens['refresh_token']}"
    header, payload, signature = good.tokens["access_token"].split(".")
    headers["forged"] = f"Bearer {header}.{payload}.{signature[:-8]}AAAAAAAA"
    now = services.clock.now()
    claims = services.signer.verify(good.tokens["access_token"], "at+jwt", now)
    rest = {name: value for name, value in claims.items() if name not in ("iat", "exp")}
    headers["expired"] = f"Bearer {services.signer.issue('at+jwt', rest, now - DAY, 60)}"
    return headers | {"logged out": alice.headers["Authorization"]} | await _users(services)


async def _users(services: Services) -> dict[str, str | None]:
    """Log Alice out, which ends her tokens, and sign her in again."""
    async with services.storage.write() as session:
        await users.raise_user_epoch(session, 1)
    emails = {"owner": ALICE, "other user": BOB}
    return {name: f"Bearer {await tokens.user_token(services, email)}" for name, email in emails.items()}


def test_every_route_has_one_row(tmp_path: Path) -> None:
    app = create_app(make_settings(tmp_path))
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/")]
    declared = {f"{vars(app.view_functions[rule.endpoint])['endpoint'].method} {rule.rule}" for rule in rules}
    assert declared - set(POLICY) == set(), "routes without a row in POLICY of this file"
    assert set(POLICY) - declared == set(), "rows of POLICY without a route"
    assert len(list(cells())) >= 800


@pytest.mark.slow
async def test_every_response_is_the_one_of_the_policy(
    http: httpx.AsyncClient, callers: dict[str, str | None], services: Services
) -> None:
    client_ids = await _client_ids(services, http, callers)
    webhook_ids, delivery_id = await _webhook_ids(services, http, callers)
    alert_ids = await _alert_ids(services, http, callers)
    connection_ids = await _connection_ids(services, http, callers)
    wrong = []
    for route, caller, target in cells():
        method, path = route.split(" ")
        row, query = POLICY[route], {}
        location = NAMES.get(target, "")
        path = path.replace("<location:locationId>", location).replace("<post:postId>", "nopost")
        path = path.replace("<review:reviewId>", "noreview")
        path = path.replace("<client_id>", client_ids.get(target, ""))
        path = path.replace("<webhook_id>", webhook_ids.get(target, "")).replace("<delivery_id>", delivery_id)
        path = path.replace("<alert_id>", alert_ids.get(target, ""))
        path = path.replace("<connection_id>", connection_ids.get(target, ""))
        if row.target == "query":
            query = {"locationId": location}
        authorization = callers[caller]
        headers = {} if authorization is None else {"Authorization": authorization}
        body = None if method == "GET" else SENT.get(route, EMPTY)
        response = await http.request(method, path, params=query, json=body, headers=headers)
        outcome = expected(row, caller, target)
        try:
            check(row, outcome, response)
        except (AssertionError, KeyError) as error:
            wrong.append(f"{route} by {caller} on {target or '-'}: {outcome}, not {response.status_code} ({error})")
        assert response.headers["vary"].startswith("Origin")
        assert response.headers["x-request-id"]
    assert wrong == []


async def _webhook_ids(
    services: Services, http: httpx.AsyncClient, callers: dict[str, str | None]
) -> tuple[dict[str, str], str]:
    """A webhook of each kind, and a delivery to the owner's; the owner's last request deletes it."""
    made = {}
    for target, token in [
        ("foreign", f"Bearer {await tokens.user_token(services, 'carol@example.com')}"),
        ("own", callers["owner"]),
    ]:
        headers, body = {"Authorization": str(token)}, {"url": "https://hooks.example/"}
        response = await http.post("/api/v1/webhooks", json=body, headers=headers)
        made[target] = str(response.json()["data"]["id"])
    tested = await http.post(f"/api/v1/webhooks/{made['own']}/test", headers=headers)
    delivery_id = str(tested.json()["data"]["id"])
    return {**made, "missing": "999999", "malformed": "a b"}, delivery_id


async def _alert_ids(services: Services, http: httpx.AsyncClient, callers: dict[str, str | None]) -> dict[str, str]:
    """An address of each kind, which the owner's last request deletes."""
    made = {}
    for target, token in [
        ("foreign", f"Bearer {await tokens.user_token(services, 'carol@example.com')}"),
        ("own", callers["owner"]),
    ]:
        response = await http.post("/api/v1/alerts", json={}, headers={"Authorization": str(token)})
        made[target] = str(response.json()["data"]["id"])
    return {**made, "missing": "999999", "malformed": "a b"}


async def _connection_ids(
    services: Services, http: httpx.AsyncClient, callers: dict[str, str | None]
) -> dict[str, str]:
    """A login at the provider of each kind, which the owner's last request disconnects."""
    carol = f"Bearer {await tokens.user_token(services, 'carol@example.com')}"
    made = {
        target: await connect_by_token(http, str(token).removeprefix("Bearer "), subject)
        for target, token, subject in [("foreign", carol, "100003"), ("own", callers["owner"], "100001")]
    }
    return {**made, "missing": "999999", "malformed": "a b"}


async def _client_ids(services: Services, http: httpx.AsyncClient, callers: dict[str, str | None]) -> dict[str, str]:
    """A key of each kind; the owner's requests end the own one."""
    made = {}
    for target, caller, business, location in [("own", "owner", 10, "locations/113"), ("foreign", "carol", 30, "311")]:
        token = callers.get(caller) or f"Bearer {await tokens.user_token(services, 'carol@example.com')}"
        body = {"name": target, "business_id": business, "assigned_location_id": location}
        response = await http.post("/api/v1/developer/credentials", json=body, headers={"Authorization": str(token)})
        made[target] = response.json()["data"]["client_id"]
    return {**made, "missing": "svcid_1_1_nobody", "malformed": "a b"}
