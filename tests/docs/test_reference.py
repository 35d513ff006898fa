"""The tables of docs/errors.md and docs/reference.md, row by row, against a running service."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from profilesvc.contract.json import JsonObject
from profilesvc.lab import Lab, open_lab
from support.examples import examples
from support.pages.tables import rows
from support.repository import DOCS
from support.surface import NEW_KEY, REQUESTS

REFERENCE, ERRORS = ((DOCS / name).read_text("utf-8") for name in ("reference.md", "errors.md"))
SECONDS = {"minute": 60, "15 minutes": 900, "hour": 3600, "day": 86_400}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab(keep_open=True) as opened:
        yield opened


def key_of(lab: Lab) -> JsonObject:
    created: JsonObject = lab.user("alice").post("/api/v1/developer/credentials", json=NEW_KEY).json()["data"]
    return created


def test_every_code_has_the_status_and_message_of_a_recorded_response() -> None:
    recorded = json.loads(examples.RECORDED.read_text("utf-8"))
    groups = [*recorded["shared"].values(), *(each["responses"] for each in recorded["operations"].values())]
    seen = {
        (example["value"]["error"]["code"], status)
        for group in groups
        for status, named in group.items()
        for example in named.values()
        if status >= "400" and isinstance(example["value"]["error"], dict)
    }
    assert {(code, status) for code, status, *_ in rows(ERRORS, "errors")} == seen


OPERATIONS = {
    f"{method} {re.sub('CLIENT', '{client_id}', path)}": (name, method, path, body, query)
    for name, (method, path, body, query) in REQUESTS.items()
}
PLACES = {
    "/locations/111": "/locations/{locationId}",
    "/comparison/111": "/comparison/{locationId}",
    "/history/111": "/history/{locationId}",
    "/sync/111": "/sync/{locationId}",
    "WEBHOOK": "{webhook_id}",
    "DELIVERY": "{delivery_id}",
    "ALERT": "{alert_id}",
    "LOGIN": "{connection_id}",
}


def operation(row: str) -> tuple[str, str, str, Any, dict[str, str]]:
    """The request of support/surface.py for an operation of the table."""
    for known, request in OPERATIONS.items():
        path = known
        for place, variable in PLACES.items():
            path = path.replace(place, variable)
        path = re.sub(r"/posts/\d+", "/posts/{postId}", re.sub(r"/reviews/\d+", "/reviews/{reviewId}", path))
        if path == row:
            return request
    raise AssertionError(f"support/surface.py has no request for {row}")


@pytest.mark.slow
def test_each_operation_accepts_the_tokens_of_its_row(lab: Lab) -> None:
    """Nothing is changed: a request with a duplicate parameter is rejected after its token."""
    key = key_of(lab)
    limited = {f"business.{kind}": lab.service(key, [f"business.{kind}"]) for kind in ("read", "write")}
    table = rows(REFERENCE, "permissions")
    assert len(table) == len(REQUESTS)
    for row, user, service, _ in table:
        _, method, path, body, query = operation(row)
        path = path.replace("CLIENT", str(key["client_id"]))

        def status(client: httpx.Client) -> int:
            sent = client.request(method, path, params=query, json=body)  # noqa: B023  called in this round
            return sent.status_code

        if user == "no token":
            assert status(lab.anonymous) in (400, 401), row  # no secret
            assert method == "POST"
            continue
        assert status(lab.anonymous) == 401, row
        statuses = {name: status(client) for name, client in limited.items()}
        if service.startswith("business."):
            assert [name for name, found in statuses.items() if found != 403] == [service], row
        else:
            assert set(statuses.values()) == ({403} if service == "no" else {200}), row
        if "DELETE" not in row or "credentials" not in row:
            assert (status(lab.user("alice")) != 403) == (user == "yes"), row


def test_an_idempotency_key_is_read_by_the_operations_of_the_table(lab: Lab) -> None:
    key = key_of(lab)
    owner = lab.user("alice")
    for row, user, _, once in rows(REFERENCE, "permissions"):
        _, method, path, body, query = operation(row)
        if user != "yes" or row.endswith("/{client_id}"):
            continue
        path = path.replace("CLIENT", str(key["client_id"]))
        response = owner.request(method, path, params=query, json=body, headers={"X-Idempotency-Key": "x" * 256})
        assert (response.status_code == 400) == (once == "yes"), row


def policy(response: httpx.Response) -> tuple[str, int, int]:
    """The name, the number and the seconds of the limit that a response reports."""
    name, count, seconds = re.findall(r'"([\w-]+)";q=(\d+);w=(\d+)', response.headers["RateLimit-Policy"])[0]
    return name, int(count), int(seconds)


def test_responses_report_the_limits_of_the_table(lab: Lab) -> None:
    key, owner = key_of(lab), lab.user("alice")
    site = lab.service(key)
    pair = {name: key[name] for name in ("client_id", "client_secret")}
    reported = [
        policy(response)
        for response in (
            lab.anonymous.post("/api/v1/auth/token", json={}),  # the tightest of those that count the request
            lab.anonymous.post("/api/v1/auth/token", json={"grant_type": "client_credentials", **pair}),
            site.post("/api/v1/api-keys/heartbeat", json={}),
            site.get("/api/v1/posts", params={"locationId": "111"}),
            owner.get("/api/v1/businesses"),
            site.post("/api/v1/posts", params={"locationId": "111"}, json={"summary": "Hello"}),
            owner.patch("/api/v1/posts/11101", params={"locationId": "111"}, json={"summary": "Changed"}),
            site.post("/api/v1/sync/111", json={"title": "Harbour"}),
            owner.post("/api/v1/external-business/locations/111/refresh-verification"),
        )
    ]
    table = {}
    for name, rate, _ in rows(REFERENCE, "limits"):
        count, window, burst = re.findall(r"(\d+)/([\w ]+?)(?: burst (\d+))?$", rate)[0]
        most = int(count) + int(burst or 0)
        table[name] = (name, most, SECONDS[window] * most // int(count))
    assert reported == [table[name] for name, *_ in reported]
    # Five are reported only by the request that exceeds them: tests/api/test_limits.py sends it.
    by_excess = {"wrong-secrets", "creations-per-user", "mails-per-user", "links-per-address", "calls-per-user"}
    assert table.keys() - {name for name, *_ in reported} == by_excess


def test_a_plan_allows_what_its_row_says(lab: Lab) -> None:
    fields = set()
    for _, _, _, _, _, _, _, allowed in rows(REFERENCE, "plans"):
        fields |= set(allowed.split(", ")) - {"every writable field"}
    here = {"locationId": "locations/311"}
    carol = lab.user("carol")
    for plan, sync, posts, monthly, reviews, _, _, allowed in rows(REFERENCE, "plans"):
        name = re.findall(r"\((\w+)\)", plan)[0]
        lab.operator.assign_plan("carol", name)
        created = carol.post("/api/v1/posts", params=here, json={"summary": f"The plan {name}"})
        assert created.status_code == (201 if posts == "yes" else 403), plan
        assert (monthly == "0") == (posts == "no")
        assert carol.get("/api/v1/reviews", params=here).status_code == (200 if reviews == "yes" else 403), plan
        body = dict.fromkeys(fields)
        preview = carol.post("/api/v1/sync/311", params={"validateOnly": "true"}, json=body)
        assert (preview.status_code == 403) == (sync == "no"), plan
        if preview.is_success:
            reasons = preview.json()["data"]["reasons"]
            excluded = {each["field"] for each in reasons if each["reason"] == "plan"}
            assert excluded == (set() if allowed == "every writable field" else fields - set(allowed.split(", "))), plan
