"""Profiles and posts arrive once."""

import json
import time
from typing import Any

import pytest

from profilesvc.lab import Lab
from support.clients.recording_proxy import RecordingProxy, Scripted
from support.clients.wordpress import Key, Site
from support.waiting import until

pytestmark = pytest.mark.wordpress

SYNC, POSTS = "/api/v1/sync/", "/api/v1/posts"
PROFILE: dict[str, Any] = {
    "title": "Harbour Coffee, Quay",
    "phone": "+81 45-555-0199",
    "country": "JP",
    "postal_code": "231-0002",
    "area": "神奈川県",
    "locality": "横浜市",
    "address": ["海岸通2丁目"],
    "hours": {"MONDAY": {"open": "08:30", "close": "18:00"}},
}
SEND = "return $sync->send()->code;"
PENDING = "return $store->get(Store::PENDING);"
RESUME = "$sync->resume(); return $store->get(Store::PENDING);"
NEW_POST = """
$text = ['post_title' => 'New "roast" A\\\\\\\\B', 'post_content' => 'From Kenya. C:\\\\\\\\beans'];
return wp_insert_post($text + ['post_status' => 'publish']);
"""


@pytest.fixture
def entered(connected: Site) -> Site:
    """A site whose owner has entered a profile."""
    connected.run("$store_profile(json_decode(getenv('PROFILE'), true));", PROFILE=json.dumps(PROFILE))
    return connected


def keys(service: RecordingProxy, path: str) -> list[str]:
    return [each.headers["x-idempotency-key"] for each in service.sent(path) if each.method == "POST"]


def test_the_profile_arrives_at_the_provider(entered: Site, lab: Lab) -> None:
    assert entered.run(SEND) == "OK"
    profile = lab.provider.profile("locations/111")
    assert profile["title"] == "Harbour Coffee, Quay"
    assert profile["phoneNumbers"]["primaryPhone"] == "+81 45-555-0199"
    assert profile["storefrontAddress"]["addressLines"] == ["海岸通2丁目"]
    assert profile["regularHours"]["periods"] == [
        {"openDay": "MONDAY", "openTime": {"hours": 8, "minutes": 30}, "closeDay": "MONDAY", "closeTime": {"hours": 18}}
    ]
    assert entered.run(PENDING) == []


def test_empty_values_are_left_out(connected: Site) -> None:
    profile = "return ProfileSync::profile(['title' => 'Only', 'phone' => '', 'address' => []]);"
    assert connected.run(profile) == {"title": "Only"}


@pytest.mark.parametrize("answer", [Scripted(0, ""), Scripted(502, "<html>"), Scripted(500, "")])
def test_a_profile_without_a_response_is_sent_again_with_its_key(
    entered: Site, service: RecordingProxy, answer: Scripted
) -> None:
    service.script(SYNC, answer)
    entered.run(SEND)
    assert entered.run("return wp_next_scheduled('profilesvc_sync') > time();")
    service.script(SYNC)
    service.reset(service.target)
    first = entered.run(PENDING)["key"]
    assert entered.run(RESUME) == []
    assert keys(service, SYNC) == [first]


def test_a_final_refusal_drops_the_key(entered: Site, service: RecordingProxy) -> None:
    service.error(SYNC, 502, "PROVIDER_API_ERROR", details={"reason": "rejected", "retryable": False})
    assert [entered.run(SEND), entered.run(SEND)] == ["PROVIDER_API_ERROR"] * 2
    assert entered.run(PENDING) == []
    assert len(set(keys(service, SYNC))) == 2


@pytest.mark.parametrize("later", [0, 23 * 3600 + 60, 30 * 86400])
def test_a_profile_is_sent_again_until_it_has_arrived(
    entered: Site, lab: Lab, service: RecordingProxy, later: int
) -> None:
    service.error(SYNC, 502, "PROVIDER_API_ERROR", details={"reason": "unavailable", "retryable": True})
    entered.run(SEND)
    assert entered.run(RESUME, CLOCK_OFFSET=later)["attempts"] == 2
    service.reset(service.target)
    assert entered.run(RESUME, CLOCK_OFFSET=later) == []
    assert lab.provider.profile("locations/111")["title"] == "Harbour Coffee, Quay"


def test_a_deactivated_or_revoked_key_keeps_the_profile(entered: Site, lab: Lab, key: Key, new_key: Any) -> None:
    lab.operator.deactivate(key.client_id, "billing_issue")
    assert entered.run(SEND) == "AUTH_INSUFFICIENT_PERMISSIONS"
    lab.operator.reactivate(key.client_id)
    assert entered.run(RESUME) == []
    assert lab.provider.profile("locations/111")["title"] == "Harbour Coffee, Quay"
    lab.operator.deactivate(key.client_id, "billing_issue")
    entered.run(SEND)
    assert lab.user("alice").delete(f"/api/v1/developer/credentials/{key.client_id}").is_success
    assert entered.run("return $sync->send()->code;") == "AUTH_INVALID_TOKEN"
    stored = entered.run(PENDING)
    assert entered.run(RESUME) == stored  # STOPPED: no request, so no attempt
    connect_and_run_cron(entered, new_key())
    assert entered.run(PENDING) == []
    assert lab.provider.profile("locations/111")["title"] == "Harbour Coffee, Quay"


def test_a_change_waits_without_attempts_while_the_service_asks_to_wait(entered: Site, service: RecordingProxy) -> None:
    service.error(SYNC, 429, "RATE_LIMITED", Retry_After="900")
    assert entered.run(SEND) == "RATE_LIMITED"
    assert [entered.run(RESUME)["attempts"], entered.run(RESUME)["attempts"]] == [1, 1]
    assert len(service.sent(SYNC)) == 1


def test_an_empty_profile_is_not_sent(connected: Site, service: RecordingProxy) -> None:
    before = len(service.requests)
    assert connected.run(SEND) == "EMPTY_PROFILE"
    assert len(service.requests) == before


def connect_and_run_cron(site: Site, key: Key) -> None:
    assert site.connect(key) == "OK"
    site.wordpress.cron()  # the heartbeat, which schedules what waits
    site.wordpress.cron()


def test_a_profile_whose_next_attempt_was_lost_gets_another(entered: Site, service: RecordingProxy) -> None:
    service.script(SYNC, Scripted(0, ""))
    entered.run(SEND)
    entered.run("wp_unschedule_hook('profilesvc_sync');")  # as when the plugin is deactivated
    service.reset(service.target)
    entered.run("do_action('profilesvc_heartbeat');")
    entered.wordpress.cron()
    assert entered.run(PENDING) == []
    assert len(service.sent(SYNC)) == 1


def killed_while_it_sends(site: Site, service: RecordingProxy, code: str, path: str) -> None:
    """Run code in a PHP process that is killed while the service works on its request, and let the request arrive."""
    service.delay = 1.0
    process = site.start(code)
    until(lambda: service.sent(path), "the request", every=0.01)
    process.kill()
    process.communicate()
    service.delay = 0.0
    time.sleep(1.5)


def test_a_profile_is_sent_again_after_php_was_killed(entered: Site, service: RecordingProxy) -> None:
    killed_while_it_sends(entered, service, SEND, SYNC)
    entered.run("do_action('profilesvc_heartbeat');")
    entered.wordpress.cron()
    assert entered.run(PENDING) == []
    first, second = keys(service, SYNC)
    assert first == second


def test_a_newer_profile_waits_for_an_older_one(entered: Site, service: RecordingProxy) -> None:
    service.script(SYNC, Scripted(0, ""))
    entered.run(SEND)
    service.requests.clear()
    service.script(SYNC, Scripted(0, ""), Scripted(200, {"status": "ok", "data": {}}))
    service.delay = 2.0
    resumed = entered.start(RESUME)
    until(lambda: service.sent(SYNC), "the sync", every=0.01)
    service.delay = 0.0
    assert entered.run(SEND) == "OK"  # it would have got the first response if it had not waited
    entered.wordpress.finish(resumed)
    assert entered.run(PENDING) == []


def test_the_real_refusals_of_a_sync_have_their_words(entered: Site, lab: Lab) -> None:
    switch = "/api/v1/external-business/locations/111/sync"
    assert lab.user("alice").patch(switch, json={"syncEnabled": False}).is_success
    assert entered.run(SEND) == "SYNC_DISABLED"
    assert "Sync is switched off" in entered.notices()
    assert lab.user("alice").patch(switch, json={"syncEnabled": True}).is_success
    assert entered.run(SEND) == "OK"
    assert entered.notices() == ""


def posts_of(lab: Lab) -> list[dict[str, Any]]:
    found = lab.user("alice").get(POSTS, params={"locationId": "locations/111"})
    listed: list[dict[str, Any]] = found.json()["data"]["localPosts"]
    return listed


def published(lab: Lab) -> list[str]:
    return [post["summary"] for post in posts_of(lab)]


def test_posts_are_off_by_default(connected: Site, service: RecordingProxy) -> None:
    connected.run(NEW_POST)
    connected.wordpress.cron()
    assert service.sent(POSTS) == []


def test_a_new_post_is_published_once(connected: Site, lab: Lab, service: RecordingProxy) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    service.script(POSTS, Scripted(0, ""))
    post = connected.run(NEW_POST)
    connected.wordpress.cron()
    again = f"do_action('profilesvc_publish', {post});"
    connected.run(f"wp_update_post(['ID' => {post}, 'post_title' => 'Changed meanwhile']);")
    service.script(POSTS, Scripted(500, ""))
    connected.run(again)
    assert len(keys(service, POSTS)) == 2
    assert len(set(keys(service, POSTS))) == 1
    assert service.sent(POSTS)[0].body == service.sent(POSTS)[1].body
    key = keys(service, POSTS)[0]
    service.reset(service.target)
    connected.run(again)
    assert keys(service, POSTS) == [key]
    assert published(lab)[0].startswith('New "roast" A\\B\n\nFrom Kenya. C:\\beans')
    connected.run(f"wp_update_post(['ID' => {post}, 'post_status' => 'draft']); wp_publish_post({post});")
    connected.wordpress.cron()
    assert keys(service, POSTS) == [key]


def test_a_post_is_sent_again_after_php_was_killed(connected: Site, lab: Lab, service: RecordingProxy) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    post = connected.run(NEW_POST)
    cron = "wp_unschedule_hook('profilesvc_publish');"  # as WP-Cron does before it runs an event
    killed_while_it_sends(connected, service, f"{cron} do_action('profilesvc_publish', {post});", POSTS)
    connected.run("do_action('profilesvc_heartbeat');")
    connected.wordpress.cron()
    first, second = keys(service, POSTS)
    assert first == second
    assert len([text for text in published(lab) if text.startswith('New "roast"')]) == 1
    assert connected.run(f"return get_post_meta({post}, Store::POST_PENDING);") == []
    connected.run("do_action('profilesvc_heartbeat');")
    connected.wordpress.cron()
    assert len(keys(service, POSTS)) == 2


def test_a_post_is_sent_after_php_was_killed_before_the_request(connected: Site, service: RecordingProxy) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    connected.run(NEW_POST + "wp_unschedule_hook('profilesvc_publish');")
    connected.run("wp_unschedule_hook('profilesvc_publish'); do_action('profilesvc_heartbeat');")
    connected.wordpress.cron()
    assert len(keys(service, POSTS)) == 1


def test_a_published_post_is_not_sent_by_a_second_event(connected: Site, service: RecordingProxy) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    post = connected.run(NEW_POST)
    connected.run(f"do_action('profilesvc_publish', {post}); do_action('profilesvc_publish', {post});")
    assert len(keys(service, POSTS)) == 1


@pytest.mark.parametrize(
    "change", ["$store->forget(Store::POSTS);", "wp_update_post(['ID' => {post}, 'post_password' => 'p']);"]
)
def test_a_post_that_must_not_be_published_any_more_is_not_sent_again(
    connected: Site, service: RecordingProxy, change: str
) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    service.script(POSTS, Scripted(500, ""))
    post = connected.run(NEW_POST)
    connected.wordpress.cron()
    connected.run(change.replace("{post}", str(post)))
    connected.run(f"do_action('profilesvc_publish', {post});")
    assert len(keys(service, POSTS)) == 1
    assert connected.run(f"return get_post_meta({post}, Store::POST_PENDING, true);") == ""


def test_imported_posts_are_not_published(connected: Site, service: RecordingProxy) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]); define('WP_IMPORTING', true);" + NEW_POST)
    connected.wordpress.cron()
    assert keys(service, POSTS) == []


def test_a_post_for_the_old_location_is_forgotten(connected: Site, service: RecordingProxy, new_key: Any) -> None:
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    service.script(POSTS, Scripted(500, ""))
    post = connected.run(NEW_POST)
    connected.wordpress.cron()
    pending = f"return get_post_meta({post}, Store::POST_PENDING, true);"
    assert connected.connect(new_key()) == "OK"
    assert connected.run(pending)["attempts"] == 1  # the same location
    connected.run("$store->set(Store::CREDENTIALS, ['location' => 'locations/9'] + $store->get(Store::CREDENTIALS));")
    assert connected.connect(new_key()) == "OK"
    assert connected.run(pending) == ""


@pytest.mark.parametrize("has_arrived", [True, False])
@pytest.mark.parametrize("later", [0, 24 * 3600])
def test_a_post_is_not_published_twice_after_the_service_has_forgotten_its_key(
    connected: Site, lab: Lab, service: RecordingProxy, new_key: Any, has_arrived: bool, later: int
) -> None:
    """An idempotency key belongs to one API key, and the service knows it for a day."""
    connected.run("$store->set(Store::POSTS, ['enabled' => true]);")
    post = connected.run(NEW_POST)
    publish = f"do_action('profilesvc_publish', {post});"
    if has_arrived:
        killed_while_it_sends(connected, service, publish, POSTS)
    else:
        service.script(POSTS, Scripted(500, ""))
        connected.run(publish)
        connected.run(publish, CLOCK_OFFSET=24 * 3600)  # the list cannot be read, so nothing is sent
        assert len(keys(service, POSTS)) == 1
        service.reset(service.target)
    if not later:
        assert connected.connect(new_key()) == "OK"
    sent = len(keys(service, POSTS))
    connected.run(publish, CLOCK_OFFSET=later)
    assert len(keys(service, POSTS)) == sent + (not has_arrived)
    (name,) = [each["name"] for each in posts_of(lab) if each["summary"].startswith('New "roast"')]
    meta = f"return [get_post_meta({post}, Store::POST_NAME, true), get_post_meta({post}, Store::POST_PENDING, true)];"
    assert connected.run(meta) == [name, ""]
