"""One token for all processes, and its renewal."""

import time

import pytest

from profilesvc.lab import Lab
from support.clients.recording_proxy import RecordingProxy
from support.clients.wordpress import Key, Site
from support.waiting import until

pytestmark = pytest.mark.wordpress

TOKEN, HEARTBEAT = "/api/v1/auth/token", "/api/v1/api-keys/heartbeat"
ABOUT_TO_END = (
    "$token = $store->get(Store::TOKEN); $token['access_until'] = time() + 60; $store->set(Store::TOKEN, $token);"
)


def grants(service: RecordingProxy) -> list[str]:
    """The grants that were requested since the test started to count."""
    return [each.body["grant_type"] for each in service.sent(TOKEN)]


def test_requests_share_one_token(connected: Site, service: RecordingProxy) -> None:
    assert [connected.beat(), connected.beat()] == ["OK", "OK"]
    assert grants(service) == ["client_credentials"]
    assert len({each.headers["authorization"] for each in service.sent(HEARTBEAT)}) == 1


def test_processes_that_renew_at_once_send_one_refresh(connected: Site, service: RecordingProxy) -> None:
    connected.run(ABOUT_TO_END)
    service.requests.clear()
    service.delay = 0.4
    start = time.time() + 2
    code = f"while (microtime(true) < {start}) {{ usleep(1000); }} return $tokens->current();"
    processes = [connected.start(code) for _ in range(4)]
    tokens = {connected.wordpress.finish(process) for process in processes}
    assert len(tokens) == 1
    assert grants(service) == ["refresh_token"]
    assert connected.beat() == "OK"


def test_processes_that_learn_of_a_revocation_at_once_try_the_credentials_once(
    connected: Site, lab: Lab, key: Key, service: RecordingProxy
) -> None:
    assert lab.user("alice").delete(f"/api/v1/developer/credentials/{key.client_id}").is_success
    service.requests.clear()
    service.delay = 0.3
    processes = [connected.start("return $heartbeat->beat()->code;") for _ in range(3)]
    codes = {connected.wordpress.finish(process) for process in processes}
    assert codes <= {"AUTH_INVALID_TOKEN", "STOPPED"}
    assert grants(service) == ["refresh_token", "client_credentials"]


def test_the_lock_is_the_sites_own(connected: Site) -> None:
    held = connected.wordpress.root / "held"
    hold = f"touch('{held}'); while (file_exists('{held}')) {{ usleep(1000); clearstatcache(); }}"
    holder = connected.start(f"Lock::run('token', function () {{ {hold} }});")
    until(held.exists, "the lock", every=0.01)
    moment = "return Lock::run('token', fn () => microtime(true))"
    waiting = connected.start(moment + ";")
    other = connected.run("global $wpdb; $wpdb->prefix = 'other_'; $asked = microtime(true);" + moment + " - $asked;")
    assert other < 20  # a process that waits in vain goes on after 25 s
    released = time.time()
    held.unlink()
    assert connected.wordpress.finish(waiting) > released
    connected.wordpress.finish(holder)


def test_a_site_that_sleeps_80_days_needs_no_grant(connected: Site, lab: Lab, service: RecordingProxy) -> None:
    service.requests.clear()
    lab.advance(days=80)
    assert connected.beat(days=80) == "OK"
    assert grants(service) == []


def test_after_90_days_the_refresh_token_is_dead_and_the_credentials_are_used(
    connected: Site, lab: Lab, service: RecordingProxy
) -> None:
    service.requests.clear()
    lab.advance(days=90)
    assert connected.beat(days=90) == "OK"
    assert grants(service) == ["client_credentials"]


def test_a_site_whose_clock_is_late_falls_back_to_the_credentials(
    connected: Site, lab: Lab, service: RecordingProxy
) -> None:
    service.requests.clear()
    lab.advance(days=91)
    assert connected.beat() == "OK"
    assert grants(service) == ["refresh_token", "client_credentials"]


def test_a_routine_roll_goes_unnoticed_and_a_leak_does_not(connected: Site, lab: Lab, key: Key) -> None:
    path = f"/api/v1/developer/credentials/{key.client_id}/roll"
    assert lab.user("alice").post(path, json={}).is_success
    assert connected.beat() == "OK"
    assert lab.user("alice").post(path, json={"overlap_seconds": 0}).is_success
    assert connected.beat() == "AUTH_INVALID_TOKEN"


def test_an_unreachable_service_costs_neither_the_token_nor_the_connection(
    connected: Site, service: RecordingProxy
) -> None:
    connected.run(ABOUT_TO_END)
    service.error(TOKEN, 500, "INTERNAL_ERROR")
    assert connected.beat() == "INTERNAL_ERROR"
    service.reset(service.target)
    assert connected.beat() == "OK"
    assert grants(service) == ["client_credentials"], "a refresh token is sent once"
    service.target = "http://127.0.0.1:9"  # nothing listens there, so the proxy's connection ends without a response
    assert connected.beat() == "NO_CONNECTION"


def test_a_token_that_is_still_valid_is_used_while_the_service_cannot_renew_it(
    connected: Site, service: RecordingProxy
) -> None:
    connected.run(ABOUT_TO_END)
    service.error(TOKEN, 503, "SERVICE_UNAVAILABLE")
    assert connected.beat() == "OK"
    assert connected.beat() == "OK"
    assert grants(service)[-1:] == ["refresh_token"], "the next attempt is 30 s later"
    assert connected.run("return $heartbeat->beat()->code;", CLOCK_OFFSET=61) == "SERVICE_UNAVAILABLE"


def test_nothing_of_the_credentials_is_loaded_on_every_page(connected: Site) -> None:
    loaded = connected.run(
        'global $wpdb; return $wpdb->get_results("SELECT option_name, autoload FROM $wpdb->options'
        " WHERE option_name LIKE 'profilesvc%'\");"
    )
    assert {row["option_name"] for row in loaded} >= {"profilesvc_credentials", "profilesvc_token"}
    assert {row["autoload"] for row in loaded} == {"no"}
