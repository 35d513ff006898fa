"""The change feed over sockets and in real time: from an edit at the provider to the event of its owner."""

from pathlib import Path
from typing import Any

import httpx

from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services.feed.feed import TYPES
from profilesvc.settings import NotificationSettings, ProviderSettings
from support.api import assert_ok
from support.program import caller, command, controls
from support.program import serving as started
from support.provider.feed import ACCOUNT, PATH, TOPIC
from support.provider.rig import LOGIN
from support.waiting import until
from support.wire import seeded, serving

SECONDS = 60  # from the edit to the event
PIER = "locations/111"


def publishing(emulator: httpx.Client, endpoint: str) -> None:
    """Let the emulator push what changes in the first account, doubled and in any order."""
    token = emulator.post("/token", data=LOGIN).json()["access_token"]
    setting = emulator.patch(
        "/v1/accounts/1/notificationSetting",
        params={"updateMask": "pubsubTopic,notificationTypes"},
        json={"pubsubTopic": TOPIC, "notificationTypes": TYPES},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert setting.is_success
    change(emulator, switches={"push_endpoint": endpoint, "push_times": 2, "push_shuffled": True})


def change(emulator: httpx.Client, **values: Any) -> None:
    assert emulator.put("/__emulator/state", json=values).is_success


def events_of(client: httpx.Client) -> list[tuple[str, str]]:
    found = assert_ok(client.get("/api/v1/events"))["events"]
    return [(each["type"], each["data"]["location_id"]) for each in found if each["type"] == "profile.drifted"]


def test_an_edit_at_the_provider_becomes_one_event_within_a_minute(sqlite_template: Path, tmp_path: Path) -> None:
    app = create_emulator(tmp_path / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world())
    with (
        EmbeddedServer(app) as provider,
        httpx.Client(base_url=provider.base_url, trust_env=False, timeout=60) as emulator,
    ):
        feed = NotificationSettings(
            topic=TOPIC, service_account=ACCOUNT, audience="feed", jwks_url=f"{provider.base_url}/oauth2/v3/certs"
        )
        settings = seeded(sqlite_template, tmp_path / "service").model_copy(
            update={"notifications": feed, "provider": ProviderSettings(url=provider.base_url)}
        )
        with serving(settings) as service, service.client() as client:
            publishing(emulator, f"{service.server.base_url}{PATH}")
            change(emulator, switches={"push_audience": "feed"})
            change(emulator, google_updated={PIER: {"title": "Harbour Coffee"}})
            wait_for_event(client, [])
            assert forged(service.server.base_url).status_code == 401


def wait_for_event(client: httpx.Client, before: list[tuple[str, str]]) -> None:
    """Wait at most a minute for one further event of the location."""
    until(lambda: events_of(client) != before, "an event", SECONDS, every=0.2)
    assert events_of(client) == [*before, ("profile.drifted", PIER)]


def forged(base_url: str) -> httpx.Response:
    return httpx.post(f"{base_url}{PATH}", json={}, headers={"Authorization": "Bearer a.b.c"}, trust_env=False)


def test_the_demo_is_pushed_what_changes_at_its_emulator(tmp_path: Path) -> None:
    """Also for the accounts of the demo data, after the emulator was reset, and at a later start."""
    for title in ("Harbour Coffee", "Harbour Cakes"):
        with started(tmp_path, "demo", "--port", "0") as demo:
            address = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
            token = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
            with caller(demo, token) as alice, controls(tmp_path / "var", address) as provider:
                before = events_of(alice)
                provider.post("reset").raise_for_status()
                provider.put("state", json={"google_updated": {PIER: {"title": title}}}).raise_for_status()
                wait_for_event(alice, before)
                paths = [call["path"] for call in provider.get("requests").json()["requests"]]
                assert [path for path in paths if path.startswith("/v1/")] == [
                    f"/v1/{PIER}",
                    f"/v1/{PIER}:getGoogleUpdated",
                ]
            assert forged(demo.url).status_code == 401
