"""The plugin receives the service's webhooks: which deliveries it accepts, and what it does with them."""

import html
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from profilesvc.contract.common import parse_timestamp
from profilesvc.lab import Lab
from support.clients.wordpress import Key, Site

pytestmark = pytest.mark.wordpress

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RECEIVE = """
$request = new WP_REST_Request('POST', '/profilesvc/v1/webhook');
foreach (json_decode(getenv('HEADERS'), true) as $name => $value) { $request->set_header($name, $value); }
$request->set_header('content-type', 'application/json');
$request->set_body(getenv('BODY'));
$pass_on = function ($type, $data) { $GLOBALS['passed_on'][] = [$type, $data['client_id'] ?? null]; };
add_action('profilesvc_event', $pass_on, 10, 2);
$status = rest_do_request($request)->get_status();
$report = $store->get(Store::REPORT)['type'] ?? null;
return [$status, $report, (bool) wp_next_scheduled('profilesvc_heartbeat', ['once']), $GLOBALS['passed_on'] ?? []];
"""
HEALTH = "return (new Profilesvc\\SiteHealth($store, $problems))->test();"


def event(kind: str = "connection.offline", **data: Any) -> str:
    return json.dumps({"id": "evt_1_7", "type": kind, "created_at": "2026-01-02T03:04:05.678Z", "data": data})


def signed(body: str, ident: str = "evt_1_7", secret: str = SECRET, age: float = 0) -> dict[str, str]:
    """The headers of a delivery, by the library of the specification."""
    at = datetime.fromtimestamp(int(time.time() - age), UTC)
    signature = Webhook(secret).sign(ident, at, body)
    return {"webhook-id": ident, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


@pytest.fixture
def listening(connected: Site) -> Site:
    """A connected site with the secret of a webhook."""
    connected.run(f"$store->set(Store::WEBHOOK, ['secret' => '{SECRET}']);")
    return connected


def deliver(site: Site, body: str, headers: dict[str, str]) -> Any:
    """The status, the stored report, whether a heartbeat is due, and the events that other plugins got."""
    return site.run(RECEIVE, HEADERS=json.dumps(headers), BODY=body)


def test_a_signed_delivery_is_accepted_once(listening: Site, key: Key) -> None:
    body = event(client_id=key.client_id)
    passed_on = [["connection.offline", key.client_id]]
    assert deliver(listening, body, signed(body)) == [204, "connection.offline", True, passed_on]
    assert deliver(listening, body, signed(body)) == [204, "connection.offline", True, []]
    assert deliver(listening, body, signed(body, "evt_1_8"))[3] == passed_on


def test_a_delivery_with_the_signatures_of_two_secrets_is_accepted(listening: Site, key: Key) -> None:
    body = event(client_id=key.client_id)
    other = signed(body, secret="whsec_" + "A" * 32)["webhook-signature"]
    headers = signed(body)
    headers["webhook-signature"] = f"{other} {headers['webhook-signature']}"
    assert deliver(listening, body, headers)[0] == 204


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-id": ""},
        {"webhook-id": "evt_1_8"},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "now"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "99999999999999999999"},
    ],
)
def test_a_delivery_with_other_headers_is_rejected(listening: Site, key: Key, change: dict[str, str]) -> None:
    body = event(client_id=key.client_id)
    assert deliver(listening, body, signed(body) | change) == [401, None, False, []]


def test_a_delivery_with_another_body_or_secret_is_rejected(listening: Site, key: Key) -> None:
    body = event(client_id=key.client_id)
    assert deliver(listening, body + " ", signed(body))[0] == 401
    assert deliver(listening, body, signed(body, secret="whsec_" + "A" * 32))[0] == 401
    for stored in ("", "whsec_", "whsec_AAAA", SECRET.removeprefix("whsec_"), "whsec_é"):
        listening.run(f"$store->set(Store::WEBHOOK, ['secret' => '{stored}']);")
        assert deliver(listening, body, signed(body)) == [401, None, False, []], stored
    listening.run("$store->forget(Store::WEBHOOK);")
    assert deliver(listening, body, signed(body, secret="whsec_" + "A" * 32))[0] == 401


@pytest.mark.parametrize(("age", "status"), [(290, 204), (310, 401), (-290, 204), (-310, 401)])
def test_a_delivery_that_is_more_than_five_minutes_off_is_rejected(
    listening: Site, key: Key, age: int, status: int
) -> None:
    body = event(client_id=key.client_id)
    assert deliver(listening, body, signed(body, age=age))[0] == status


@pytest.mark.parametrize("body", ["[]", "5", '{"type": 5, "data": {}}', '{"type": "key.rolled", "data": 5}'])
def test_a_delivery_without_an_event_is_rejected(listening: Site, body: str) -> None:
    assert deliver(listening, body, signed(body)) == [400, None, False, []]


def test_a_report_of_another_site_is_only_passed_on(listening: Site) -> None:
    body = event(client_id="svcid_1_1_other")
    passed_on = [["connection.offline", "svcid_1_1_other"]]
    assert deliver(listening, body, signed(body)) == [204, None, False, passed_on]
    body = event("post.published", location_id="locations/111", post={})
    assert deliver(listening, body, signed(body, "evt_1_9")) == [204, None, False, [["post.published", None]]]


def test_a_report_is_shown_until_the_site_is_back(listening: Site, key: Key) -> None:
    assert listening.run(HEALTH)["status"] == "good"
    body = event(client_id=key.client_id)
    deliver(listening, body, signed(body))
    found = listening.run(HEALTH)
    assert found["status"] == "recommended"
    assert "reported that this site was offline" in html.unescape(found["description"])
    assert listening.beat(days=0.001) == "OK"
    assert listening.run(HEALTH, CLOCK_OFFSET=100)["status"] == "good", "a heartbeat after it makes it outdated"
    body = event("connection.site_mismatch", client_id=key.client_id)
    deliver(listening, body, signed(body, "evt_1_8"))
    assert "a second site" in listening.run(HEALTH, CLOCK_OFFSET=100)["description"]
    body = event("connection.online", client_id=key.client_id)
    assert deliver(listening, body, signed(body, "evt_1_9"))[1] is None
    assert listening.run(HEALTH, CLOCK_OFFSET=100)["status"] == "good"


def test_a_report_of_the_service_reaches_the_site(site: Site, lab: Lab) -> None:
    """The real service reports by HTTP that the site never connected. Its clock is that of the machine."""
    lab.advance(seconds=time.time() - parse_timestamp(lab.time).timestamp() - 86_400 - 60)
    owner = lab.user("alice")
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
    made = owner.post("/api/v1/developer/credentials", json=body).json()["data"]
    code = site.connect(Key(made["client_id"], made["client_secret"]))
    assert code == "OK"
    url = site.run("return Profilesvc\\Webhook::url();").replace("localhost", "127.0.0.1")
    hook = owner.post("/api/v1/webhooks", json={"url": url}).json()["data"]
    site.run(f"$store->set(Store::WEBHOOK, ['secret' => '{hook['secret']}']);")
    lab.operator.wait(hours=24, minutes=1)
    with site.wordpress.served():
        lab.operator.deliver()
    assert site.run("return $store->get(Store::REPORT)['type'];") == "connection.never_connected"
