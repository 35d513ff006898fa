"""The metrics: responses, rejections, calls to the provider, load of the pools, keys and states of their sites."""

import asyncio
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks import generate
from benchmarks.generate import Amounts
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from quart import Quart
from sqlalchemy import insert, select, update

from conftest import START, AsService, AsUser, Change, client_of, make_settings
from profilesvc import __version__
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.database.pool_usage import PoolUsage
from profilesvc.domain.rates import Window
from profilesvc.domain.time import MINUTE, SECOND, FrozenClock, month_start
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.limiter import Limiter
from profilesvc.limits.settings import LimitSettings
from profilesvc.operations import census
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.settings import MetricsSettings, Settings
from profilesvc.storage.tables import keys as keys_table
from profilesvc.storage.tables import post_usage
from profilesvc.storage.upkeep import census as stored_counts
from support.api import BOB, Site, assert_error, assert_ok
from support.database.citus import on_one_server
from support.database.query_plans import statements
from support.posts import PATH, PIER

Labels = dict[str, str]


async def scraped(http: httpx.AsyncClient) -> dict[str, list[tuple[Labels, float]]]:
    response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(response.text)


def samples(text: str) -> dict[str, list[tuple[Labels, float]]]:
    found: dict[str, list[tuple[Labels, float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def count(found: dict[str, list[tuple[Labels, float]]], name: str, **labels: Any) -> float:
    return sum(value for given, value in found.get(name, []) if labels.items() <= given.items())


async def test_counts_responses_by_route_and_outcome(http: httpx.AsyncClient, plugin: Site) -> None:
    before = await scraped(http)
    assert_ok(await plugin.http.get("/api/v1/posts", params={"locationId": "111"}))
    await plugin.http.get("/api/v1/posts", params={"locationId": "112"})
    await http.get("/api/v1/nothing/at/all")
    await http.request("PROPFIND", "/api/v1/posts")
    found = await scraped(http)

    def counted(name: str = "profilesvc_request_seconds_count", **labels: str) -> float:
        return count(found, name, **labels) - count(before, name, **labels)

    assert counted(method="GET", route="/api/v1/posts", status="200", outcome="ok") == 1
    assert counted(route="/api/v1/posts", outcome="AUTH_INSUFFICIENT_PERMISSIONS") == 1
    assert counted(route="unknown", status="404", outcome="NOT_FOUND") == 1
    assert counted(method="other", status="405") == 1
    assert counted("profilesvc_provider_request_seconds_count", api="posts", operation="posts", outcome="200") == 1


async def test_counts_keys_and_the_states_of_their_sites(
    http: httpx.AsyncClient,
    as_service: AsService,
    as_user: AsUser,
    services: Services,
    clock: FrozenClock,
) -> None:
    for _ in range(3):
        assert_ok(await (await as_service()).http.post("/api/v1/api-keys/heartbeat", json={}))
    clock.advance(hours=3)
    held, gone = await as_service("locations/211"), await as_service("locations/211")
    assert_ok(await held.http.post("/api/v1/api-keys/heartbeat", json={}))
    await key_service_deactivate(services, held)
    bob = await as_user(BOB)
    assert_ok(await bob.delete(f"/api/v1/developer/credentials/{gone.key['client_id']}"))
    await census.count(services)
    found = await scraped(http)
    assert {labels["state"]: value for labels, value in found["profilesvc_keys"]} == {
        "active": 3,
        "deactivated": 1,
        "revoked": 1,
    }
    states = {labels["state"]: value for labels, value in found["profilesvc_connections"]}
    assert states == {"online": 1, "idle": 3, "offline": 0}
    assert count(found, "profilesvc_counted_at_seconds") == clock.now() / SECOND


@pytest.mark.in_process("records the statements of the process")
async def test_reading_the_metrics_does_not_count_rows(
    http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await census.count(services)
    before = await scraped(http)
    for _ in range(3):
        assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    with statements(services) as seen:
        known = set(seen)
        again = await asyncio.gather(*(scraped(http) for _ in range(20)))
    assert seen == known, "only the stored counts are read, on the driver itself"
    for found in again:
        assert found["profilesvc_connections"] == before["profilesvc_connections"]


async def test_one_process_counts_and_not_too_often(
    http: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
) -> None:
    """The job of each process runs every minute."""
    counted = []
    for seconds in (0, 5, 60):
        await as_service()
        clock.advance(seconds=seconds)
        for _ in range(3):
            await census.renew(services)
        counted.append(count(await scraped(http), "profilesvc_keys", state="active"))
    assert counted == [1, 1, 3]


async def test_metrics_name_the_version(http: httpx.AsyncClient) -> None:
    told = (await http.get("/version")).json()
    assert told == {
        "name": "profilesvc",
        "version": __version__,
        "python": platform.python_version(),
        "api": "v1",
    }
    ((labels, value),) = (await scraped(http))["profilesvc_build_info"]
    assert (labels.pop("pid", None), value) == (None, 1)
    assert labels == {"version": told["version"], "python": told["python"]}


SECRET = "a-secret-of-the-operators"


async def test_only_the_token_gives_access(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, change: Change, settings: Settings
) -> None:
    change(settings=settings.model_copy(update={"metrics": MetricsSettings(token=SecretStr(SECRET))}))
    for sent, reason in [
        ({}, "missing"),
        ({"Authorization": f"Basic {SECRET}"}, "malformed"),
        ({"Authorization": SECRET}, "malformed"),
        ({"Authorization": f"Bearer {SECRET}x"}, "invalid"),
        ({"Authorization": f"Bearer {SECRET[:-1]}"}, "invalid"),
        ({"Authorization": alice.headers["Authorization"]}, "invalid"),
    ]:
        refused = await http.get("/metrics", headers=sent)
        assert assert_error(refused, 401, "AUTH_INVALID_TOKEN") == {"reason": reason}
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert "no-store" in refused.headers["cache-control"]
    assert (await http.get("/metrics", headers={"Authorization": f"bearer {SECRET}"})).is_success
    assert (await http.get("/healthz")).is_success


def test_a_weak_token_is_rejected() -> None:
    for weak in ("short", "x" * 15, "with a space in the middle", "umlautä" * 5):
        with pytest.raises(ValueError, match="bearer token"):
            MetricsSettings(token=SecretStr(weak))


async def test_with_a_port_of_their_own_metrics_are_only_there(tmp_path: Path) -> None:
    """The server passes the port of a request to the app."""
    app = create_app(make_settings(tmp_path, metrics=MetricsSettings(port=9100)), Runtime(FrozenClock(START)))
    async with app.test_app(), client_of(app) as outside, client_of(app) as inside:
        inside.base_url = httpx.URL("http://profiles.test:9100")
        assert (await inside.get("/metrics")).is_success
        assert (await outside.get("/healthz")).is_success
        assert_error(await outside.get("/metrics"), 404, "NOT_FOUND")
        for path in ("/healthz", "/docs", "/dashboard", "/api/v1/posts", "/metrics/", "//metrics"):
            assert_error(await inside.get(path), 404, "NOT_FOUND")


async def test_names_no_tenant_and_no_secret(http: httpx.AsyncClient, plugin: Site) -> None:
    assert_ok(await plugin.http.get("/api/v1/external-business/locations/111"))
    text = (await http.get("/metrics")).text
    for secret in (
        plugin.key["client_id"],
        plugin.key["client_secret"],
        plugin.tokens["access_token"],
        "locations/111",
    ):
        assert secret not in text


async def key_service_deactivate(services: Services, site: Site) -> None:
    await key_service.deactivate(services, site.key["client_id"], "billing_issue")


@pytest.mark.in_process("makes the app smaller")
async def test_counts_rejections_by_limit(
    http: httpx.AsyncClient, plugin: Site, services: Services, app: Quart
) -> None:
    limits = LimitSettings().model_copy(update={"reads_per_key": Window(0, MINUTE)})
    limiter = Limiter(limits, MemoryWindows(services.clock), services.metrics.limit_reached)
    app.extensions["profilesvc"] = replace(services, limiter=limiter)
    assert_error(await plugin.http.get("/api/v1/posts", params={"locationId": "111"}), 429, "RATE_LIMITED")
    app.config["MAX_IN_FLIGHT"] = 0
    assert_error(await plugin.http.get("/api/v1/posts"), 503, "SERVICE_UNAVAILABLE")
    found = await scraped(http)
    refusals = {labels["limit"]: value for labels, value in found["profilesvc_limit_refusals_total"]}
    assert refusals == {"reads-per-key": 1, "in-flight": 1}
    requests = "profilesvc_request_seconds_count"
    assert count(found, requests, route="unknown", status="503", outcome="SERVICE_UNAVAILABLE") == 1


async def test_counts_a_post_beyond_the_plan(http: httpx.AsyncClient, plugin: Site, services: Services) -> None:
    async with services.storage.write() as session:
        month = month_start(services.clock.now())
        await session.execute(insert(post_usage).values(owner_id=1, month=month, used=1_000))  # all that `pro` has
    before, told = await scraped(http), ("profilesvc_limit_refusals_total", {"limit": "posts-per-month"})
    post = {"summary": "Fresh bread from six"}
    assert_error(await plugin.http.post(PATH, params=PIER, json=post), 429, "QUOTA_EXCEEDED")
    assert count(await scraped(http), told[0], **told[1]) - count(before, told[0], **told[1]) == 1


@pytest.mark.in_process("keeps the connections of one process")
async def test_shows_the_load_of_the_process_and_its_pools(http: httpx.AsyncClient, services: Services) -> None:
    """The largest number of transactions, and one more that waits."""
    size, enough, begun = services.storage.pools()["writing"].size, asyncio.Event(), asyncio.Semaphore(0)

    async def hold() -> None:
        async with services.storage.write() as session:
            await session.execute(select(1))
            begun.release()
            await enough.wait()

    holding = [asyncio.create_task(hold()) for _ in range(size + 1)]
    for _ in range(size):
        await begun.acquire()
    busy = samples(services.metrics.exposition().decode())
    enough.set()
    await asyncio.gather(*holding)
    pools = {name: count(busy, f"profilesvc_database_pool_{name}", pool="writing") for name in PoolUsage._fields}
    assert pools == {"size": size, "in_use": size, "waiting": 1}
    after = await scraped(http)
    assert count(after, "profilesvc_requests_in_flight") == 1  # the one that asks
    assert count(after, "profilesvc_database_pool_in_use") == count(after, "profilesvc_database_pool_waiting") == 0


@on_one_server
async def test_counts_of_many_keys_are_estimates_from_a_sample(
    services: Services, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2,000 keys, 8 of 10 sites are online, 1 idle, 1 offline, and every third key is revoked."""
    await generate.load(services, Amounts(keys=2_000, posts=0, history=0), seed=1)
    async with services.storage.write() as session:
        of_third = update(keys_table).where(keys_table.c.id % 3 == 0)
        await session.execute(of_third.values(revoked_at=services.clock.now()))
    await census.count(services)
    exact = await counted(services)
    if not services.storage.is_sqlite:
        database = await request.getfixturevalue("postgres").connect("work")
        await database.execute("VACUUM FULL ANALYZE keys")
        await database.close()
    monkeypatch.setattr(stored_counts, "SAMPLE_PAGES", 20)
    monkeypatch.setattr(stored_counts, "SAMPLE_KEYS", 500)
    await census.count(services)
    estimate = await counted(services)
    assert sum(exact["keys"].values()) == 2_000
    assert estimate != exact, "the control: the sample is smaller"
    for name, states in exact.items():
        for state, amount in states.items():
            assert abs(estimate[name][state] - amount) < 200, (name, state)
    await census.count(services)
    assert await counted(services) == estimate, "the same keys each time"


async def counted(services: Services) -> dict[str, dict[str, int]]:
    async with services.storage.read() as session:
        return (await stored_counts.latest(session))[0]


async def test_counts_posts_that_were_created(http: httpx.AsyncClient, plugin: Site) -> None:
    before, name = await scraped(http), "profilesvc_posts_created_total"
    for key in ("one", "one", "two"):
        post = {"summary": "Fresh bread from six"}
        assert_ok(await plugin.http.post(PATH, params=PIER, json=post, headers={"X-Idempotency-Key": key}), 201)
    assert count(await scraped(http), name) - count(before, name) == 2
