"""Bad input of the routes for alerts and events: the rows A163 to A172 of docs/bad-input.md."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsUser
from profilesvc.contract.alerts import MAX_ALERTS
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.services.context import Services
from profilesvc.services.notify import alerts
from profilesvc.storage.notify import channels
from support.api import ALICE, BOB, Site, assert_error, assert_ok, fields

ALERTS, EVENTS = "/api/v1/alerts", "/api/v1/events"
NUMBERS = ("999", "x", "9" * 30, "0" * 20 + "9" * 30, "9" * 4400, "-1", "0", "1.0", "\u0661", "%00", "1%2F2")


async def add(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = assert_ok(await client.post(ALERTS, json=body), 201)
    return made


async def rejected(client: httpx.AsyncClient, body: Any, method: str = "POST", path: str = ALERTS) -> list[str]:
    """The fields that the response names."""
    response = await client.request(method, path, json=body)
    return fields(assert_error(response, 400, "VALIDATION_ERROR"))


@pytest.mark.parametrize(
    "address",
    [
        *("nobody", "@example.com", "a@", "a b@example.com", "a@b@example.com", "a@example.com, c@example.com"),
        *("a@example.com\r\nBcc: c@example.com", "a@example.com\x00"),
        *(f"{'a' * 400}@example.com", "a@[127.0.0.1]", 5, ["a@example.com"]),
        *("j\u00f6rg@example.com", "=?utf-8?q?c=40example.net=2C?=@example.com"),
        "=?utf-8?q?a=0d=0aBcc=3a_c=40example.net?=@example.com",
        *(f"{'a' * 65}@example.com", "a..b@example.com", ".a@example.com", "a.@example.com", "a@ex_ample.com"),
    ],
)
@ON_ONE_DATABASE
async def test_A163_an_address_is_one_mailbox(alice: httpx.AsyncClient, address: Any) -> None:
    assert await rejected(alice, {"address": address}) == ["address"]
    assert assert_ok(await alice.get(ALERTS))["alerts"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"immediate": ["key.lost"]}, "immediate.0"),
        ({"daily": ["sync.failed"] * 51}, "daily"),
        ({"daily": "sync.failed"}, "daily"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": "../../etc/passwd"}, "time_zone"),
        ({"time_zone": "x" * 65}, "time_zone"),
        ({"digest_at": "25:00"}, "digest_at"),
        ({"digest_at": "8:00"}, "digest_at"),
        ({"digest_at": "08:00\n"}, "digest_at"),
        ({"digest_at": "\u0660\u0668:00"}, "digest_at"),
        ({"quiet_time": {"from": "22:00"}}, "quiet_time.to"),
        ({"quiet_time": {"from": "22:00", "to": "24:00"}}, "quiet_time.to"),
        ({"quiet_time": "22:00-07:00"}, "quiet_time"),
        ({"muted_locations": ["x y"]}, "muted_locations.0"),
        ({"muted_locations": ["locations/111"] * 501}, "muted_locations"),
        ({"reminders": "maybe"}, "reminders"),
        ({"reminder": True}, "reminder"),
    ],
)
@ON_ONE_DATABASE
async def test_A164_a_setting_is_checked(alice: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    assert await rejected(alice, body) == [field]
    made = await add(alice)
    path = f"{ALERTS}/{made['id']}"
    assert await rejected(alice, body, "PATCH", path) == [field]
    assert assert_ok(await alice.get(path)) == made


async def test_A165_an_address_is_used_once(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    await add(alice)
    await add(alice, address="team@harbour.example.com")
    for address in (None, ALICE, ALICE.upper(), "TEAM@harbour.example.com", "team@HARBOUR.example.com"):
        assert await rejected(alice, {"address": address}) == ["address"]
    await add(await as_user(BOB), address="team@harbour.example.com")  # another owner may, and has to confirm it


async def test_A166_the_number_of_addresses_is_limited(services: Services, alice: httpx.AsyncClient) -> None:
    async with services.storage.write() as session:
        for number in range(MAX_ALERTS):
            values: dict[str, Any] = {"kind": "email", "nonce": "n", "created_at": 0, "target": f"{number}@example.com"}
            await channels.add(session, 1, str(number), **values)
    assert_error(await alice.post(ALERTS, json={}), 409, "CONFLICT")
    assert len(assert_ok(await alice.get(ALERTS))["alerts"]) == MAX_ALERTS


async def test_A167_another_owner_finds_nothing(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    made, bob = await add(alice), await as_user(BOB)
    for method, path in (("GET", ""), ("PATCH", ""), ("POST", "/test"), ("DELETE", "")):
        for number in (str(made["id"]), *NUMBERS):
            body: dict[str, Any] | None = {"enabled": False} if method == "PATCH" else None
            response = await bob.request(method, f"{ALERTS}/{number}{path}", json=body)
            assert response.status_code == 404, (method, number, response.text)
    assert assert_ok(await alice.get(f"{ALERTS}/{made['id']}")) == made


async def test_A168_a_forged_link_changes_nothing(
    services: Services, alice: httpx.AsyncClient, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    made = await add(alice, address="team@harbour.example.com")
    async with services.storage.read() as session:
        row = await channels.find(session, 1, made["id"], alerts.ALERTS.kinds)
    assert row is not None
    now = services.clock.now()
    confirm, unsubscribe = alerts.confirming_link(services, row, now), alerts.unsubscribing_link(services, row)
    forged = {
        "confirm": [
            *(unsubscribe, confirm.replace(str(now), str(now + 1)), confirm[:-1], f"{confirm}0"),
            *(confirm.replace("1-", "2-", 1), "1-1-", "x", "1-1-é"),
        ],
        "unsubscribe": [
            *(confirm, unsubscribe[:-1], unsubscribe.replace("1-", "2-", 1), f"{'9' * 30}-1-x"),
            *(f"{'9' * 4400}-1-x", f"1-{'0' * 4400}1-x"),
        ],
    }
    for purpose, links in forged.items():
        for link in links:
            assert (await http.post(f"/dashboard/alerts/{purpose}/{link}")).status_code == 404, link
    clock.advance(milliseconds=3 * DAY + 1)
    assert (await http.post(f"/dashboard/alerts/confirm/{confirm}")).status_code == 404
    async with services.storage.read() as session:
        assert await channels.find(session, 1, made["id"], alerts.ALERTS.kinds) == row


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"grace_seconds": -1}, "grace_seconds"),
        ({"grace_seconds": 30 * 86_400 + 1}, "grace_seconds"),
        ({"grace_seconds": 1.5}, "grace_seconds"),
        ({"grace_seconds": True}, "grace_seconds"),
        ({"snoozed_until": "2020-01-01T00:00:00Z"}, "snoozed_until"),
        ({"snoozed_until": "tomorrow"}, "snoozed_until"),
        ({"snoozed_until": 1_767_323_045}, "snoozed_until"),
        ({"grace": 60}, "grace"),
    ],
)
@ON_ONE_DATABASE
async def test_A169_the_alerts_of_a_key_are_checked(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site, body: dict[str, Any], field: str
) -> None:
    path = f"/api/v1/developer/credentials/{plugin.key['client_id']}/alerts"
    assert await rejected(alice, body, "PATCH", path) == [field]
    assert_error(await (await as_user(BOB)).patch(path, json={"grace_seconds": 60}), 404, "NOT_FOUND")
    assert assert_ok(await alice.get(path))["grace_seconds"] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("after", value) for value in ("", "7", "evt_1_x", "evt_1", "evt_1_-1", "evt_1_1 ", f"evt_1_{'9' * 30}")),
        *(("after", value) for value in ("evt_\u0661_1", "EVT_1_1", "evt_1_1\x00", "evt_1_1'--")),
        *(("types", value) for value in ("", "key.lost", "key.rolled,", "key.rolled;key.created", "x" * 1_001)),
        *(("limit", value) for value in ("0", "-1", "x", "1.5", "9" * 30)),
        *(("client_id", value) for value in ("x" * 161, "\x00", "svcid_1_1_\x00")),
        ("Types", "key.rolled"),
        ("types[]", "key.rolled"),
    ],
)
@ON_ONE_DATABASE
async def test_A170_the_query_of_events_is_checked(alice: httpx.AsyncClient, name: str, value: str) -> None:
    response = await alice.get(EVENTS, params={name: value})
    named = fields(assert_error(response, 400, "VALIDATION_ERROR"))
    assert named == [name.removesuffix("[]")]


async def test_A171_a_position_is_that_of_an_own_event(alice: httpx.AsyncClient, as_user: AsUser, plugin: Site) -> None:
    bob = await as_user(BOB)
    (event,) = assert_ok(await alice.get(EVENTS))["events"]
    response = await bob.get(EVENTS, params={"after": event["id"]})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["after"]
    end = assert_ok(await alice.get(EVENTS, params={"after": f"evt_1_{'9' * 18}"}))
    assert (end["events"], end["has_more"]) == ([], False)


async def test_A172_a_key_of_another_owner_has_no_events(as_user: AsUser, plugin: Site) -> None:
    bob = await as_user(BOB)
    assert assert_ok(await bob.get(EVENTS, params={"client_id": plugin.key["client_id"]}))["events"] == []
    assert_error(await plugin.http.get(EVENTS), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
