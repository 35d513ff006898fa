"""The settings page as the owner uses it, over HTTP."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from profilesvc.lab import Lab
from support.clients.recording_proxy import RecordingProxy
from support.clients.wordpress import PASSWORD, Key, Site

pytestmark = pytest.mark.wordpress

PAGE, ACTION = "/wp-admin/options-general.php?page=profilesvc", "/wp-admin/admin-post.php"
FORM = re.compile(r'value="profilesvc_(\w+)"><input type="hidden" id="_wpnonce" name="_wpnonce" value="(\w+)"')


@contextmanager
def logged_in(url: str, name: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=30) as client:
        client.get("/wp-login.php")
        response = client.post("/wp-login.php", data={"log": name, "pwd": PASSWORD, "testcookie": "1"})
        assert response.status_code == 302, response.text
        yield client


@pytest.fixture
def owner(site: Site) -> Iterator[httpx.Client]:
    with site.wordpress.served() as url, logged_in(url, "admin") as client:
        yield client


def shown(client: httpx.Client) -> str:
    response = client.get(PAGE, follow_redirects=True)
    assert response.status_code == 200, response.text
    return response.text


def sent(client: httpx.Client, action: str, **fields: str) -> str:
    """Send one of the page's forms, and return what the page says then."""
    nonces = dict(FORM.findall(shown(client)))
    form = {"action": f"profilesvc_{action}", "_wpnonce": nonces[action], **fields}
    response = client.post(ACTION, data=form, follow_redirects=True)
    assert response.status_code == 200, response.text
    return html.unescape(response.text)


def test_the_owner_connects_saves_and_disconnects(owner: httpx.Client, key: Key, lab: Lab) -> None:
    pair = {"client_id": f" {key.client_id} ", "client_secret": key.client_secret}
    assert "do not match" in sent(owner, "connect", **{**pair, "client_secret": "wrong"})
    connected = sent(owner, "connect", **pair)
    assert "Connected to Harbour Coffee, Pier" in connected
    assert key.client_secret not in connected
    assert owner.get("/wp-cron.php").status_code == 200
    status = lab.user("alice").get(f"/api/v1/api-keys/{key.client_id}/status").json()["data"]
    assert status["connection_status"] == "online"
    fields = {
        "title": 'Harbour "Coffee" <b>& Tea</b>',
        "phone": "+81 45-555-0123",
        "hours[TUESDAY]": "9am-5:15pm",
    }
    saved = sent(owner, "save", **fields)
    assert "Saved and sent." in saved
    assert "<b>" not in saved
    profile = lab.provider.profile("locations/111")
    assert (profile["title"], len(profile["regularHours"]["periods"])) == ('Harbour "Coffee" & Tea', 1)
    assert "Connected to" in sent(owner, "connect", **pair)  # with a new secret, for example
    assert 'name="title"' not in sent(owner, "disconnect")


def test_the_owner_corrects_and_confirms_hours(owner: httpx.Client, key: Key, lab: Lab) -> None:
    sent(owner, "connect", client_id=key.client_id, client_secret=key.client_secret)
    before = lab.provider.profile("locations/111")["regularHours"]
    wrong = sent(
        owner, "save", **{"title": "Pier", "hours[TUESDAY]": "9 o'clock", "hours[FRIDAY]": "17:00-09:00", "posts": "1"}
    )
    assert "Tuesday: Enter times such as 09:00-17:30, with commas between several." in wrong
    assert "Friday: This is 16:00 hours. Correct the times, or confirm them at the end of the form." in wrong
    assert """name="hours[TUESDAY]" value="9 o'clock\"""" in wrong
    assert 'name="title" value="Pier"' in wrong
    assert re.search(r'name="posts" value="1" +checked', wrong)
    assert "17:00-09:00 closes on Saturday." in wrong
    assert lab.provider.profile("locations/111")["regularHours"] == before
    right = {"title": "Pier", "hours[TUESDAY]": "24 hours", "hours[FRIDAY]": "9-12, 17:00-09:00", "long_hours": "1"}
    assert "Saved and sent." in sent(owner, "save", **right)
    assert "Saved and sent." in sent(owner, "save", **{**right, "title": "Quay", "long_hours": ""})  # not asked again
    tuesday = {"openDay": "TUESDAY", "closeDay": "TUESDAY", "openTime": {}, "closeTime": {"hours": 24}}
    friday = {"openDay": "FRIDAY", "openTime": {"hours": 9}, "closeDay": "FRIDAY", "closeTime": {"hours": 12}}
    night = {"openDay": "FRIDAY", "openTime": {"hours": 17}, "closeDay": "SATURDAY", "closeTime": {"hours": 9}}
    assert lab.provider.profile("locations/111")["regularHours"]["periods"] == [tuesday, friday, night]


def test_the_owner_enters_the_secret_of_a_webhook(owner: httpx.Client, key: Key, site: Site) -> None:
    sent(owner, "connect", client_id=key.client_id, client_secret=key.client_secret)
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    page = shown(owner)
    assert f"{site.wordpress.url}/" in page
    assert "profilesvc/v1/webhook" in page
    assert "This is no secret of a webhook" in sent(owner, "webhook", webhook_secret="whsec_short")
    saved = sent(owner, "webhook", webhook_secret=f" {secret} ")
    assert "Webhooks are accepted now." in saved
    assert "A secret is stored." in saved
    assert secret not in saved
    assert site.run("return $store->get(Store::WEBHOOK)['secret'];") == secret
    assert "no longer accepted" in sent(owner, "webhook", webhook_secret="")
    assert site.run("return $store->get(Store::WEBHOOK);") == []


def test_a_form_needs_a_nonce(owner: httpx.Client, key: Key, service: RecordingProxy) -> None:
    form = {"client_id": key.client_id, "client_secret": key.client_secret, "action": "profilesvc_connect"}
    assert owner.post(ACTION, data=form).status_code == 403
    assert owner.post(ACTION, data={**form, "_wpnonce": "0123456789"}).status_code == 403
    assert service.requests == []


AS_WRITER = """
$writer = username_exists('writer') ?: wp_create_user('writer', 'p', 'writer@site.example');
wp_set_current_user($writer);
add_filter('wp_die_handler', fn () => function ($text) { throw new Exception($text); });
(new Profilesvc\\SettingsPage($store, $connector, $sync))->register();
foreach (['connect', 'disconnect', 'save', 'webhook'] as $action) {
    $_REQUEST['_wpnonce'] = wp_create_nonce("profilesvc_$action");
    try { do_action("admin_post_profilesvc_$action"); } catch (Exception $error) { $texts[] = $error->getMessage(); }
}
return [$texts, (bool) $store->get(Store::CREDENTIALS)];
"""


def test_only_an_administrator_may_send_a_form(connected: Site) -> None:
    assert connected.run(AS_WRITER) == [["You may not change these settings."] * 4, True]


RENDER = """
wp_set_current_user(1);
require_once ABSPATH . 'wp-admin/includes/template.php';
$credentials = $store->get(Store::CREDENTIALS);
$credentials['capabilities']['posts'] = (bool) getenv('POSTS');
$store->set(Store::CREDENTIALS, $credentials);
ob_start();
(new Profilesvc\\SettingsPage($store, $connector, $sync))->render();
return ob_get_clean();
"""


def test_the_page_offers_posts_only_if_the_plan_includes_them(connected: Site) -> None:
    assert 'name="posts"' in connected.run(RENDER, POSTS="1")
    without = connected.run(RENDER)
    assert 'name="posts"' not in without
    assert "does not include posts" in without


def test_the_page_does_not_call_a_stopped_site_connected(connected: Site) -> None:
    assert "This site is connected to Harbour Coffee, Pier." in connected.run(RENDER)
    stopped = connected.run("$store->set(Store::STOPPED, ['since' => time()]);" + RENDER)
    assert "is connected to" not in stopped
    assert "was connected to Harbour Coffee, Pier" in stopped
