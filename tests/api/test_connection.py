"""Heartbeats and connection status over HTTP."""

import asyncio
from typing import Any

import httpx
from sqlalchemy import select

from conftest import AsService, AsUser
from profilesvc.domain.heartbeats import HISTORY
from profilesvc.domain.time import HOUR, FrozenClock, iso, month_start
from profilesvc.services import keys as key_service
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage import heartbeats as beats
from profilesvc.storage.tables import contacts
from support.api import ALICE, BOB, Site, assert_error, assert_ok, fields
from support.fleet.processes import in_process

HEARTBEAT = "/api/v1/api-keys/heartbeat"


REPORT: dict[str, Any] = {
    "plugin_version": "2.4.1",
    "wp_version": "6.8",
    "php_version": "8.3.2",
    "detected_plugins": ["woocommerce", "yoast-seo"],
}


NOTHING = {"connection_status": "offline", "last_heartbeat_at": None, "reason_hint": "never_connected"}


VERSIONS = ("plugin_version", "wp_version", "php_version")


def status_path(site: Site) -> str:
    return f"/api/v1/api-keys/{site.key['client_id']}/status"


async def test_the_response_to_a_heartbeat_names_the_next_one(plugin: Site) -> None:
    data = assert_ok(await plugin.http.post(HEARTBEAT, json=REPORT))
    assert data == {"received": True, "next_heartbeat_in": 3600}


async def test_a_heartbeat_keeps_values_that_it_does_not_report(alice: httpx.AsyncClient, plugin: Site) -> None:
    await plugin.http.post(HEARTBEAT, json=REPORT)
    for body in ({"wp_version": "6.9"}, {"plugin_version": None, "detected_plugins": None}, {}):
        assert_ok(await plugin.http.post(HEARTBEAT, json=body))
    status = assert_ok(await alice.get(status_path(plugin)))
    assert [status[name] for name in VERSIONS] == ["2.4.1", "6.9", "8.3.2"]


async def test_a_heartbeat_needs_no_permission_of_the_key(as_service: AsService) -> None:
    for permissions in (["business.read"], ["business.write"]):
        site = await as_service(permissions=permissions)
        assert_ok(await site.http.post(HEARTBEAT, json={}))


async def test_A113_a_heartbeat_with_a_user_token_is_rejected(alice: httpx.AsyncClient) -> None:
    assert_error(await alice.post(HEARTBEAT, json=REPORT), 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_A143_a_heartbeat_with_an_invalid_field_is_rejected(plugin: Site) -> None:
    for good in ({}, REPORT, {"extra": {"a": [1]}, "user_id": 5}, {"plugin_version": "x" * 64}):
        assert_ok(await plugin.http.post(HEARTBEAT, json=good))
    assert_ok(await plugin.http.post(HEARTBEAT, json={"detected_plugins": ["x" * 200] * 500}))
    assert_error(await plugin.http.post(HEARTBEAT), 400, "VALIDATION_ERROR")
    for name in VERSIONS:
        value: Any
        for value in (5, 1.5, True, [], {}, "x" * 65, "a\0b"):
            details = assert_error(await plugin.http.post(HEARTBEAT, json={name: value}), 400, "VALIDATION_ERROR")
            assert fields(details) == [name], value
    for plugins in ("woocommerce", {"a": 1}, [1], [None], ["x" * 201], ["x"] * 501, ["a\0b"]):
        bad = await plugin.http.post(HEARTBEAT, json={"detected_plugins": plugins})
        assert fields(assert_error(bad, 400, "VALIDATION_ERROR"))[0].startswith("detected_plugins"), plugins


async def test_A145_the_time_of_a_heartbeat_is_that_of_its_receipt(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    for name in ("timestamp", "last_heartbeat_at", "sent_at"):
        assert_ok(await plugin.http.post(HEARTBEAT, json={name: "2030-01-01T00:00:00Z"}))
    assert assert_ok(await alice.get(status_path(plugin)))["last_heartbeat_at"] == iso(clock.now())


async def test_A146_a_heartbeat_of_a_deactivated_or_revoked_key_is_rejected(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    """Deactivated: refused, and the contact is noted, so that the owner sees 'alive but deactivated' (D-28)."""
    client = plugin.key["client_id"]
    await key_service.deactivate(services, client, "billing_issue")
    clock.advance(hours=1)
    response = await plugin.http.post(HEARTBEAT, json=REPORT)
    details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert set(details) == {"deactivation_reason", "deactivated_at", "upgrade_url"}
    status = assert_ok(await alice.get(status_path(plugin)))
    assert status["last_heartbeat_at"] == iso(clock.now())
    assert (status["connection_status"], status["reason_hint"]) == ("online", "deactivated")
    assert status["plugin_version"] is None  # the contact alone
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{client}"))
    assert_error(await plugin.http.post(HEARTBEAT, json=REPORT), 401, "AUTH_INVALID_TOKEN")


async def test_A147_the_time_of_the_last_heartbeat_never_goes_backwards(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    now = clock.now()
    for at, version in [(now, "new"), (now - 5_000, "old")]:
        beat = beats.Beat(1, plugin.key["service_client_id"], at, version)
        await services.storage.commit(beats.recording(services.storage.dialect, [beat]))
    status = assert_ok(await alice.get(status_path(plugin)))
    assert (status["last_heartbeat_at"], status["plugin_version"]) == (iso(now), "new")


async def test_the_status_has_every_field_of_the_contract(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    await plugin.http.post(HEARTBEAT, json=REPORT)
    assert assert_ok(await alice.get(status_path(plugin))) == {
        "connection_status": "online",
        "last_heartbeat_at": "2026-01-02T03:04:05.678Z",
        "plugin_version": "2.4.1",
        "wp_version": "6.8",
        "php_version": "8.3.2",
        "reason_hint": None,
    }


async def test_a_site_that_never_called_is_offline(alice: httpx.AsyncClient, plugin: Site) -> None:
    status = assert_ok(await alice.get(status_path(plugin)))
    assert status == NOTHING | dict.fromkeys(VERSIONS)


async def test_A144_a_site_is_idle_after_2_hours_and_offline_after_24_to_the_second(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    await plugin.http.post(HEARTBEAT, json={})
    began = clock.now()
    hour = 3_600_000
    for age, state in [
        (0, "online"),
        (2 * hour, "online"),
        (2 * hour + 1_000, "idle"),
        (24 * hour - 1_000, "idle"),
        (24 * hour, "offline"),
        (167 * hour, "offline"),
    ]:
        clock.advance(milliseconds=began + age - clock.now())
        status = assert_ok(await alice.get(status_path(plugin)))
        assert status["connection_status"] == state, age
        assert status["reason_hint"] == (None if state == "online" else "was_online")


async def test_an_offline_site_is_online_again_with_a_heartbeat(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    await plugin.http.post(HEARTBEAT, json=REPORT)
    clock.advance(days=3)
    assert assert_ok(await alice.get(status_path(plugin)))["connection_status"] == "offline"
    await plugin.http.post(HEARTBEAT, json={})
    assert assert_ok(await alice.get(status_path(plugin)))["connection_status"] == "online"


async def test_the_status_has_the_history_on_request(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    start = clock.now()
    await plugin.http.post(HEARTBEAT, json={})
    clock.advance(hours=30)
    status = assert_ok(await alice.get(status_path(plugin), params={"history": "true"}))
    hour = 3_600_000
    edges = [start, start + 2 * hour, start + 24 * hour, start + 30 * hour]
    assert status["history"] == [
        {"state": state, "from": iso(since), "to": iso(until)}
        for state, since, until in zip(("online", "idle", "offline"), edges, edges[1:], strict=False)
    ]
    assert "history" not in assert_ok(await alice.get(status_path(plugin), params={"history": "false"}))
    for value in ("yes", "1", "True", ""):
        response = await alice.get(status_path(plugin), params={"history": value})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["history"]


async def test_the_history_does_not_show_where_a_month_starts(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    """A run of contact has a row in each month, so that its age can be seen without its end."""
    clock.advance(milliseconds=month_start(clock.now(), 1) - 1 - clock.now())
    await plugin.http.post(HEARTBEAT, json={})
    first = clock.now()
    for _ in range(3):
        clock.advance(hours=1)
        await plugin.http.post(HEARTBEAT, json={})
    async with services.storage.read() as session:
        rows = (await session.execute(select(contacts.c.started_at, contacts.c.ended_at))).all()
    month = month_start(clock.now())
    assert sorted(rows) == [(first, first), (first + HOUR, clock.now())]
    assert first < month <= first + HOUR
    alice.headers["Authorization"] = f"Bearer {await tokens.user_token(services, ALICE)}"
    history = assert_ok(await alice.get(status_path(plugin), params={"history": "true"}))["history"]
    assert history[-1] == {"state": "online", "from": iso(first), "to": iso(clock.now())}


async def test_the_history_starts_with_the_state_of_an_earlier_contact(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    """The 30 days start between two heartbeats of one run, which are in different months."""
    clock.advance(milliseconds=month_start(clock.now(), 1) - 1 - clock.now())
    first = clock.now()
    assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    clock.advance(hours=1)
    assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    clock.advance(milliseconds=first + HISTORY + HOUR // 2 - clock.now())
    alice.headers["Authorization"] = f"Bearer {await tokens.user_token(services, ALICE)}"
    history = assert_ok(await alice.get(status_path(plugin), params={"history": "true"}))["history"]
    online = {"state": "online", "from": iso(first + HOUR // 2), "to": iso(first + 3 * HOUR)}
    assert history[0] == online


async def test_only_the_owner_reads_the_status_of_a_key_until_it_is_revoked(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site
) -> None:
    path = status_path(plugin)
    foreign = await (await as_user(BOB)).get(path)
    missing = await alice.get("/api/v1/api-keys/svcid_1_1_nobody/status")
    assert_error(foreign, 404, "NOT_FOUND")
    assert foreign.json() == missing.json()
    assert_error(await plugin.http.get(path), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
    assert_error(await alice.get(path), 404, "NOT_FOUND")


async def test_the_status_is_not_found_after_the_key_expires(alice: httpx.AsyncClient, clock: FrozenClock) -> None:
    body = {"business_id": 10, "assigned_location_id": "111", "expires_at": iso(clock.now() + HOUR)}
    made = await alice.post("/api/v1/developer/credentials", json={"name": "Trial", **body})
    path = f"/api/v1/api-keys/{assert_ok(made, 201)['client_id']}/status"
    assert_ok(await alice.get(path))
    clock.advance(hours=1)
    assert_error(await alice.get(path), 404, "NOT_FOUND")


def wordpress(url: str) -> dict[str, str]:
    """The User-Agent that WordPress sends unless a plugin changes it."""
    return {"User-Agent": f"WordPress/6.5; {url}"}


class TestSite:
    """D-30: a clone or a staging copy is never rejected; its owner sees a warning."""

    async def beat(self, site: Site, url: str) -> None:
        assert_ok(await site.http.post(HEARTBEAT, json={}, headers=wordpress(url)))

    async def test_D30_the_expected_site_causes_no_warning(
        self, alice: httpx.AsyncClient, as_service: AsService
    ) -> None:
        site = await as_service(primary_domain="example.com")
        for headers in (wordpress("https://example.com/blog"), wordpress("http://EXAMPLE.com:80"), {}):
            assert_ok(await site.http.post(HEARTBEAT, json={}, headers=headers))
            status = assert_ok(await alice.get(status_path(site)))
            assert "warnings" not in status
            assert status["reason_hint"] is None

    async def test_D30_a_site_outside_the_domains_of_its_key_causes_a_warning(
        self, alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
    ) -> None:
        for url in (
            "https://staging.example.com",
            "http://localhost:8080",
            "http://192.168.0.5/wp",
            "https://x.example",
        ):
            site = await as_service(primary_domain="example.com")
            await self.beat(site, url)
            status = assert_ok(await alice.get(status_path(site)))
            assert (status["warnings"], status["reason_hint"]) == (["site_mismatch"], "site_mismatch")
        clock.advance(days=3)  # still the last that was heard of
        with_history = assert_ok(await alice.get(status_path(site), params={"history": "true"}))
        assert (with_history["warnings"], with_history["connection_status"]) == (["site_mismatch"], "offline")
        await self.beat(site, "https://example.com")
        clock.advance(hours=24)
        assert "warnings" not in assert_ok(await alice.get(status_path(site)))

    async def test_D30_two_sites_of_one_key_within_a_day_cause_a_warning(
        self, alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
    ) -> None:
        async def warned() -> bool:
            return "warnings" in assert_ok(await alice.get(status_path(plugin)))

        await self.beat(plugin, "https://one.example")
        assert not await warned()
        for name in ("two", "one", "two"):
            clock.advance(hours=1)
            await self.beat(plugin, f"https://{name}.example")
            assert await warned()
        clock.advance(hours=22)
        await self.beat(plugin, "https://two.example")  # the other was last heard of 23 hours ago
        assert await warned()
        clock.advance(hours=1)
        await self.beat(plugin, "https://two.example")
        assert not await warned()
        await self.beat(plugin, "https://three.example")  # moved
        assert await warned()

    async def test_D30_the_status_names_the_worse_of_two_problems(
        self, alice: httpx.AsyncClient, as_service: AsService, services: Services
    ) -> None:
        site = await as_service(primary_domain="example.com")
        await self.beat(site, "https://clone.example")
        await key_service.deactivate(services, site.key["client_id"], "user_requested")
        status = assert_ok(await alice.get(status_path(site)))
        assert (status["warnings"], status["reason_hint"]) == (["site_mismatch"], "deactivated")

    async def test_D30_a_user_agent_without_an_address_names_no_site(
        self, alice: httpx.AsyncClient, as_service: AsService
    ) -> None:
        site = await as_service(primary_domain="example.com")
        await self.beat(site, "https://clone.example")
        for agent in (
            "curl/8",
            "",
            "WordPress/6.5",
            *in_process("WordPress/6.5; "),
            "WordPress/6.5; https://" + "x" * 9_000,
            "\xff",
        ):
            assert_ok(await site.http.post(HEARTBEAT, json={}, headers={"User-Agent": agent.encode("latin-1")}))
            assert "warnings" in assert_ok(await alice.get(status_path(site)))

    async def test_D30_heartbeats_of_two_sites_at_once_lose_neither_site(
        self, alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
    ) -> None:
        """Twenty heartbeats at once from two sites, each committed on its own: both are known afterwards."""
        urls = ["https://one.example", "https://two.example"] * 10
        await asyncio.gather(*(self.beat(plugin, url) for url in urls))
        assert assert_ok(await alice.get(status_path(plugin)))["warnings"] == ["site_mismatch"]

    async def test_A147_a_late_older_heartbeat_does_not_bring_its_site_back(
        self, alice: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
    ) -> None:
        site = await as_service(primary_domain="example.com")
        for at, host in [(clock.now(), "example.com"), (clock.now() - 5_000, "clone.example")]:
            beat = beats.Beat(1, site.key["service_client_id"], at, site_host=host, site_host_at=at)
            await services.storage.commit(beats.recording(services.storage.dialect, [beat]))
        assert "warnings" not in assert_ok(await alice.get(status_path(site)))
