"""Cursors hide the numbers that the rows of all owners share, and a number in a path has one spelling."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from conftest import AsService, AsUser
from profilesvc.contract.audit import AuditQuery
from profilesvc.services import audit
from profilesvc.services.context import Services
from support.api import BOB, assert_error, assert_ok, fields

pytestmark = pytest.mark.parametrize("database", ["sqlite"])
KEYS, WEBHOOKS, ALERTS = "/api/v1/developer/credentials", "/api/v1/webhooks", "/api/v1/alerts"
Fill = Callable[[httpx.AsyncClient, AsService], Awaitable[str]]


async def keys(_owner: httpx.AsyncClient, as_service: AsService) -> str:
    for _ in range(3):
        await as_service()
    return KEYS


async def deliveries(owner: httpx.AsyncClient, _as_service: AsService) -> str:
    made = assert_ok(await owner.post(WEBHOOKS, json={"url": "https://hooks.example/"}), 201)
    for _ in range(3):
        assert_ok(await owner.post(f"{WEBHOOKS}/{made['id']}/test"))
    return f"{WEBHOOKS}/{made['id']}/deliveries"


async def audit_trail(owner: httpx.AsyncClient, _as_service: AsService) -> str:
    await deliveries(owner, _as_service)
    for number in range(3):
        assert_ok(await owner.post(WEBHOOKS, json={"url": f"https://{number}.example/"}), 201)
    return "/api/v1/audit"


async def audit_of_key(owner: httpx.AsyncClient, as_service: AsService) -> str:
    key = (await as_service()).key["client_id"]
    for action in ("deactivate", "reactivate"):
        assert_ok(await owner.post(f"{KEYS}/{key}/{action}"))
    return f"{KEYS}/{key}/audit"


FILLS: list[Fill] = [keys, deliveries, audit_trail, audit_of_key]


def items(page: dict[str, Any]) -> list[Any]:
    return next(value for value in page.values() if isinstance(value, list))


@pytest.mark.parametrize("fill", FILLS)
async def test_a_cursor_hides_its_number_and_is_of_one_list(
    alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService, fill: Fill
) -> None:
    path = await fill(alice, as_service)
    whole = items(assert_ok(await alice.get(path)))
    assert len(whole) >= 3
    seen, query, cursors = [], {"limit": "1"}, list[str]()
    for _ in whole:
        page = assert_ok(await alice.get(path, params=query))
        assert page == assert_ok(await alice.get(path, params=query)), "an entity tag would stay valid"
        seen += items(page)
        if page.get("next_before"):
            query["before"] = page["next_before"]
            cursors.append(page["next_before"])
    assert seen == whole
    assert len({len(cursor) for cursor in cursors}) == 1
    for cursor in cursors:
        content = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert len(content) >= 16
        assert not any(str(item.get("id", "none")).zfill(6).encode() in content for item in whole)
    last = cursors[-1]
    wrong = ["1", "3", "1767323045678-3", "x", last[:-1], f"{last}A", last.swapcase(), f"{last}=", "é", "A" * 30]
    for before in (*wrong, "\x00", "A" * 201):
        refused = assert_error(await alice.get(path, params={"before": before}), 400, "VALIDATION_ERROR")
        assert fields(refused) == ["before"], before


async def test_a_cursor_is_of_one_owner_and_one_list(
    alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService
) -> None:
    bob, paths = await as_user(BOB), dict[str, str]()
    for fill in FILLS:
        path = await fill(alice, as_service) if fill is not audit_trail else "/api/v1/audit"
        paths[path] = assert_ok(await alice.get(path, params={"limit": "1"}))["next_before"]
    made = assert_ok(await alice.post(WEBHOOKS, json={"url": "https://other.example/"}), 201)
    other = f"{WEBHOOKS}/{made['id']}/deliveries"
    for path, cursor in paths.items():
        for foreign in {KEYS, "/api/v1/audit", other} - {path}:
            if "audit" in path and "audit" in foreign:  # the events of a key are some of those of its owner
                continue
            assert fields(assert_error(await alice.get(foreign, params={"before": cursor}), 400, "VALIDATION_ERROR"))
        if path in (KEYS, "/api/v1/audit"):
            assert fields(assert_error(await bob.get(path, params={"before": cursor}), 400, "VALIDATION_ERROR"))


@pytest.mark.in_process("the operator's list")
async def test_the_operator_pages_through_all_owners(alice: httpx.AsyncClient, services: Services) -> None:
    for number in range(3):
        assert_ok(await alice.post(WEBHOOKS, json={"url": f"https://{number}.example/"}), 201)
    whole = (await audit.user_trail(services, None, AuditQuery())).events
    first = await audit.user_trail(services, None, AuditQuery(limit=1))
    rest = await audit.user_trail(services, None, AuditQuery(before=first.next_before))
    assert first.events + rest.events == whole
    assert len(whole) >= 3


async def test_a_number_in_a_path_has_one_spelling(alice: httpx.AsyncClient) -> None:
    hook = assert_ok(await alice.post(WEBHOOKS, json={"url": "https://hooks.example/"}), 201)["id"]
    sent = assert_ok(await alice.post(f"{WEBHOOKS}/{hook}/test"))["id"]
    alert = assert_ok(await alice.post(ALERTS, json={}), 201)["id"]
    for spell in ("0{}", "00{}", "+{}", " {}", "{} ", "{}.0", "{}_", "%D9%A1", "{}%0A", "0x{}", "-{}"):
        for path, number in [
            (f"{WEBHOOKS}/@", hook),
            (f"{WEBHOOKS}/@/deliveries", hook),
            (f"{WEBHOOKS}/{hook}/deliveries/@/resend", sent),
            (f"{ALERTS}/@", alert),
            ("/api/v1/provider-connections/@", 1),
        ]:
            method = "POST" if path.endswith("resend") else "DELETE" if "connections" in path else "GET"
            response = await alice.request(method, path.replace("@", spell.format(number)))
            assert_error(response, 404, "NOT_FOUND")
    assert_ok(await alice.get(f"{WEBHOOKS}/{hook}"))
    assert_ok(await alice.get(f"{ALERTS}/{alert}"))
    assert_ok(await alice.post(f"{WEBHOOKS}/{hook}/deliveries/{sent}/resend"))
