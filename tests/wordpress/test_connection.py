"""From activation to online, and what ends a connection."""

import asyncio
from typing import Any

import httpx
import pytest

from profilesvc.lab import Lab
from support.browser.dashboard import Browser
from support.clients.recording_proxy import RecordingProxy, Scripted
from support.clients.wordpress import Key, Site

pytestmark = pytest.mark.wordpress

TOKEN, HEARTBEAT = "/api/v1/auth/token", "/api/v1/api-keys/heartbeat"


def status(lab: Lab, key: Key) -> dict[str, Any]:
    response = lab.user("alice").get(f"/api/v1/api-keys/{key.client_id}/status")
    return dict(response.json()["data"])


def test_one_run_of_cron_makes_a_connected_site_online(site: Site, lab: Lab, key: Key) -> None:
    assert site.connect(key) == "OK"
    assert status(lab, key)["connection_status"] == "offline"
    site.wordpress.cron()
    found = status(lab, key)
    assert (found["connection_status"], found["plugin_version"], found["wp_version"]) == ("online", "1.0.0", "6.1.9")
    assert site.notices() == ""


async def words_of_the_dashboard(lab: Lab) -> str:
    """Sign in as Alice, as a browser does, and return what the list of sites says."""
    async with httpx.AsyncClient(base_url=lab.dashboard.removesuffix("/dashboard"), timeout=30) as client:
        page = await Browser(client).sign_in("alice@example.com")
        return " ".join(" ".join(page.words).split())


def test_the_dashboard_shows_the_site_as_online(connected: Site, lab: Lab, key: Key) -> None:
    shown = asyncio.run(words_of_the_dashboard(lab))
    assert "Online Site heartbeat just now plugin 1.0.0" in shown, shown
    lab.advance(days=2)
    assert "Offline" in asyncio.run(words_of_the_dashboard(lab))


def test_heartbeats_are_hourly_from_a_random_start(site: Site, key: Key) -> None:
    assert site.connect(key) == "OK"
    starts = site.run(
        "for ($i = 0; $i < 9; $i++) {"
        "    Store::unschedule(); $heartbeat->schedule();"
        "    $starts[] = wp_next_scheduled('profilesvc_heartbeat') - time();"
        "} return [$starts, wp_get_schedule('profilesvc_heartbeat')];"
    )
    assert starts[1] == "hourly"
    assert len(set(starts[0])) > 2
    assert all(-1 <= each <= 3600 for each in starts[0])


@pytest.mark.parametrize("address", ["https://staging.example", "http://localhost.staging.example"])
def test_a_key_of_another_site_is_rejected_in_words(site: Site, key: Key, address: str) -> None:
    assert site.connect(key, SITE=address) == "domain_not_allowed"
    assert site.run("return $store->get(Store::CREDENTIALS);") == []
    words = site.run("return Words::of('domain_not_allowed');", SITE=address)
    assert address.split("//")[1] in words


def test_a_wrong_pair_is_rejected_and_not_stored(site: Site, key: Key, service: RecordingProxy) -> None:
    assert site.connect(Key(key.client_id, "wrong")) == "invalid_credentials"
    assert site.beat() == "NOT_CONNECTED"
    assert [each.path for each in service.requests] == ["/api/v1/auth/validate-service-credentials"]


def test_a_staging_copy_sends_nothing_and_shows_why(connected: Site, service: RecordingProxy) -> None:
    before = len(service.requests)
    assert connected.beat(SITE="https://staging.example") == "SITE_CHANGED"
    assert len(service.requests) == before
    shown = connected.notices(SITE="https://staging.example")
    here = connected.wordpress.url.removeprefix("http://")
    assert f"belong to {here}, and this site is staging.example" in shown
    assert f"define('PROFILESVC_SITES', '{here}, staging.example');" in shown
    assert connected.beat() == "OK"
    assert "also ran as staging.example, and there it sent nothing" in connected.notices()
    listed = f"define('PROFILESVC_SITES', '{here}, staging.example');"
    assert connected.run(listed + "return $heartbeat->beat()->code;", SITE="https://staging.example") == "OK"
    assert connected.notices(CLOCK_OFFSET=86_401) == ""


def test_a_program_that_replaces_the_address_does_not_rewrite_the_connected_site(
    connected: Site, service: RecordingProxy
) -> None:
    """As `wp search-replace` and plugins for migrations do, with the bare host, in a copy of the database."""
    before = len(service.requests)
    host = connected.wordpress.url.removeprefix("http://")
    replace = (
        "global $wpdb; foreach ($wpdb->get_results('SELECT option_id, option_value FROM ' . $wpdb->options) as $row) {"
        f"$new = maybe_serialize(map_deep(maybe_unserialize($row->option_value), fn ($each) => is_string($each)"
        f" ? str_replace('{host}', 'staging.example', $each) : $each));"
        "$wpdb->update($wpdb->options, ['option_value' => $new], ['option_id' => $row->option_id]); }"
        "wp_cache_flush(); return $heartbeat->beat()->code;"
    )
    assert connected.run(replace, SITE="https://staging.example") == "SITE_CHANGED"
    assert len(service.requests) == before


def test_secrets_are_encrypted_and_new_security_keys_ask_to_connect_again(
    connected: Site, key: Key, service: RecordingProxy
) -> None:
    stored = (
        'global $wpdb; return implode($wpdb->get_col("SELECT option_value FROM $wpdb->options'
        " WHERE option_name LIKE 'profilesvc%'\"));"
    )
    assert key.client_id in connected.run(stored)
    assert key.client_secret not in connected.run(stored)
    assert "eyJ" not in connected.run(stored), "a token"
    before = len(service.requests)
    assert connected.beat(AUTH_SALT="another salt") == "KEYS_CHANGED"
    assert len(service.requests) == before
    assert "Connect this site again" in connected.notices(AUTH_SALT="another salt")
    assert connected.connect(key, AUTH_SALT="another salt") == "OK"
    assert connected.beat(AUTH_SALT="another salt") == "OK"
    assert connected.notices(AUTH_SALT="another salt") == ""


def test_without_security_keys_site_health_says_that_secrets_are_not_encrypted(site: Site, key: Key) -> None:
    assert site.connect(key, AUTH_SALT="put your unique phrase here") == "OK"
    assert site.beat(AUTH_SALT="put your unique phrase here") == "OK"
    test = "return (new Profilesvc\\SiteHealth($store, $problems))->test();"
    found = site.run(test, AUTH_SALT="put your unique phrase here")
    assert (found["status"], "AUTH_KEY" in found["description"]) == ("recommended", True)
    assert site.beat() == "OK"
    assert site.run(test)["status"] == "good"


def test_a_copy_in_a_folder_of_the_site_sends_nothing(connected: Site, service: RecordingProxy) -> None:
    before = len(service.requests)
    copy = f"{connected.wordpress.url}/staging"
    assert connected.beat(SITE=copy) == "SITE_CHANGED"
    assert len(service.requests) == before
    assert f"this site is {copy.removeprefix('http://')}" in connected.notices(SITE=copy)


def test_the_address_of_a_translated_page_is_the_site(connected: Site) -> None:
    translated = "add_filter('home_url', fn ($url) => $url . '/de');"
    assert connected.run(translated + "return $heartbeat->beat()->code;") == "OK"


def test_a_pause_is_an_hour_at_most(connected: Site, service: RecordingProxy) -> None:
    weeks = {"Retry-After": str(30 * 86400)}
    service.script(HEARTBEAT, Scripted(503, '{"error": {"code": "SERVICE_UNAVAILABLE"}}', weeks))
    assert connected.beat() == "SERVICE_UNAVAILABLE"
    service.reset(service.target)
    assert connected.beat() == "WAITING"
    assert connected.run("return $heartbeat->beat()->code;", CLOCK_OFFSET=3601) == "OK"


def test_a_pause_from_a_wrong_clock_is_ignored(connected: Site) -> None:
    connected.run("$store->set(Store::PAUSE, ['until' => time() + YEAR_IN_SECONDS]);")
    assert connected.beat() == "OK"


def test_another_service_that_responds_ok_connects_nothing(site: Site, key: Key, service: RecordingProxy) -> None:
    service.script("/api/v1/auth/validate-service-credentials", Scripted(200, '{"status": "ok"}'))
    assert site.connect(key) == "UNREADABLE"


def test_a_copy_that_sends_heartbeats_all_the_same_is_reported_to_the_owner(
    connected: Site, lab: Lab, key: Key
) -> None:
    connected.run(
        "$headers = ['Authorization' => 'Bearer ' . $tokens->current()];"
        "return $api->request('POST', '/api/v1/api-keys/heartbeat', [], $headers)->code;",
        SITE="https://staging.example",
    )
    assert status(lab, key)["warnings"] == ["site_mismatch"]


def test_a_revoked_key_ends_all_requests_until_the_owner_connects_again(
    connected: Site, lab: Lab, key: Key, new_key: Any, service: RecordingProxy
) -> None:
    assert lab.user("alice").delete(f"/api/v1/developer/credentials/{key.client_id}").is_success
    assert connected.beat() == "AUTH_INVALID_TOKEN"
    before = len(service.requests)
    assert connected.beat() == "STOPPED"
    assert len(service.requests) == before
    assert "Connect it again" in connected.notices()
    assert connected.connect(new_key()) == "OK"
    assert connected.beat() == "OK"
    assert connected.notices() == ""


def test_a_proxy_that_removes_the_token_is_named_and_nothing_is_dropped(
    connected: Site, service: RecordingProxy
) -> None:
    service.removes = {"authorization"}
    service.requests.clear()
    assert connected.run("$store_profile(['title' => 'Quay']); return $sync->send()->code;") == "TOKEN_REMOVED"
    assert [each.path for each in service.requests] == ["/api/v1/sync/locations%2F111"]  # no other token would help
    assert connected.beat() == "TOKEN_REMOVED"
    assert "removes the Authorization header" in connected.notices()
    assert "no longer valid" not in connected.notices()
    service.removes = set()
    assert connected.beat() == "OK"
    assert connected.run("$sync->resume(); return $store->get(Store::PENDING);") == []
    assert connected.notices() == ""


@pytest.mark.parametrize("reason", ["billing_issue", "plan_downgrade", "user_requested"])
def test_a_deactivated_key_keeps_its_heartbeats_and_resumes_by_itself(
    connected: Site, lab: Lab, key: Key, reason: str
) -> None:
    lab.operator.deactivate(key.client_id, reason)
    assert connected.beat() == "AUTH_INSUFFICIENT_PERMISSIONS"
    shown = connected.notices()
    assert connected.run(f"return Words::of('', ['deactivation_reason' => '{reason}']);") in shown
    assert ('href="https://' in shown) == (reason != "user_requested")
    lab.operator.reactivate(key.client_id)
    assert connected.beat() == "OK"
    assert connected.notices() == ""


def test_after_a_security_concern_only_a_new_secret_helps(connected: Site, lab: Lab, key: Key) -> None:
    lab.operator.deactivate(key.client_id, "security_concern")
    assert connected.beat() == "AUTH_INSUFFICIENT_PERMISSIONS"
    assert "blocked for your safety" in connected.notices()
    secret = lab.operator.reactivate(key.client_id, roll=True)
    assert connected.beat() == "AUTH_INVALID_TOKEN"
    assert connected.beat() == "STOPPED"
    assert connected.connect(Key(key.client_id, str(secret))) == "OK"
    assert connected.beat() == "OK"


def test_site_health_reports_the_state(site: Site, key: Key, lab: Lab) -> None:
    test = "return (new Profilesvc\\SiteHealth($store, $problems))->test();"
    assert site.run(test)["status"] == "recommended"
    site.connect(key)
    site.beat()
    assert site.run(test)["status"] == "good"
    late = site.run(test, CLOCK_OFFSET=3 * 3600)
    assert (late["status"], "wp-cron.php" in late["description"]) == ("recommended", True)
    lab.operator.deactivate(key.client_id, "billing_issue")
    site.beat()
    assert site.run(test)["status"] == "critical"
    assert "profilesvc" in site.run(
        "return array_keys(apply_filters('site_status_tests', ['direct' => []])['direct']);"
    )


def test_the_command_does_what_the_page_does(site: Site, key: Key) -> None:
    def command(words: str, entered: str = "") -> Any:
        return site.wordpress.run(
            f"WP_CLI::$commands['profilesvc']->{words}; return WP_CLI::$lines;", entered=entered, COMMAND="1"
        )

    assert command("status()") == ["This site is not connected."]
    assert command("heartbeat()") == ["Error: This site is not connected."]
    assert command(f"connect(['{key.client_id}'])", f"{key.client_secret}\n") == ["Success: Done."]
    assert command("heartbeat()") == ["Success: Done."]
    assert command("status()") == ["Harbour Coffee, Pier"]
    assert command("disconnect()") == ["Success: Disconnected."]
