"""What /metrics tells: answers by route and outcome, calls to the provider, keys and how their sites are doing."""

from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from conftest import AsService, AsUser
from profilesvc.domain.world import FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from support import BOB, Site, assert_ok

Labels = dict[str, str]


async def scraped(http: httpx.AsyncClient) -> dict[str, list[tuple[Labels, float]]]:
    response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, list[tuple[Labels, float]]] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def count(found: dict[str, list[tuple[Labels, float]]], name: str, **labels: Any) -> float:
    return sum(value for given, value in found.get(name, []) if labels.items() <= given.items())


async def test_counts_answers_by_route_and_outcome(http: httpx.AsyncClient, plugin: Site) -> None:
    assert_ok(await plugin.http.get("/api/v1/posts", params={"locationId": "111"}))
    await plugin.http.get("/api/v1/posts", params={"locationId": "112"})
    await http.get("/api/v1/nothing/at/all")
    await http.request("BREW", "/api/v1/posts")
    found, name = await scraped(http), "profilesvc_request_seconds_count"
    assert count(found, name, method="GET", route="/api/v1/posts", status="200", outcome="ok") == 1
    assert count(found, name, route="/api/v1/posts", outcome="AUTH_INSUFFICIENT_PERMISSIONS") == 1
    assert count(found, name, route="unknown", status="404", outcome="NOT_FOUND") == 1
    assert count(found, name, method="other", status="405") == 1
    assert count(found, "profilesvc_provider_request_seconds_count", api="posts", method="GET", outcome="200") == 1


async def test_counts_keys_and_how_their_sites_are_doing(
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
    found = await scraped(http)
    assert {labels["state"]: value for labels, value in found["profilesvc_keys"]} == {
        "active": 3,
        "deactivated": 1,
        "revoked": 1,
    }
    states = {labels["state"]: value for labels, value in found["profilesvc_connections"]}
    assert states == {"online": 1, "idle": 3, "offline": 0}


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
