"""Record the examples of the OpenAPI document: `make openapi` writes `api/openapi/examples.json`.

The calls are those of a coffee shop's website. They run against the embedded service with its frozen clock, its
seeded entropy and the demo data, so each run writes the same bytes.
"""

import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.lab.embedded import Embedded
from profilesvc.lab.lab import Lab
from profilesvc.settings import LabSettings
from support.examples import alerts, logins, updates, webhooks
from support.examples.recorder import Examples, never_sent
from support.repository import ROOT

RECORDED = ROOT / "src" / "profilesvc" / "api" / "openapi" / "examples.json"
PLANS = ROOT / "src" / "profilesvc" / "plans.toml"
WITHOUT_SYNC = """
[listing]
display_name = "Listing"
sync = false
posts = false
reviews = false
monthly_posts = 0
locations = 1
live_keys_per_location = 20
"""
POSTS_A_MONTH = 5
IN_FLIGHT = 3  # requests at the same time; `_waiting` and `_slow` send as many
FORM = "application/x-www-form-urlencoded"
LOCATION = "locations/111"
HERE: JsonObject = {"locationId": LOCATION}
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
PAIR = ("client_id", "client_secret")


def record() -> str:
    """Make all calls. Return the text of the file."""
    with tempfile.TemporaryDirectory() as folder:
        plans, posts = Path(folder, "plans.toml"), f"{POSTS_A_MONTH}"
        plans.write_text(re.sub(r"(?<=monthly_posts = )[1-9]\w*", posts, PLANS.read_text("utf-8")) + WITHOUT_SYNC)
        settings: JsonObject = {"trusted_hops": 1, "max_in_flight": IN_FLIGHT, "plans_file": plans}
        settings["webhooks"] = {"allow_private": False}
        embedded = Embedded(None, separate=False, overrides=settings)
        lab = Lab(LabSettings(), embedded)
        try:
            examples = Examples(lab)
            _run(examples, embedded)
        finally:
            lab.close()
    recorded = {"operations": dict(sorted(examples.operations.items())), "shared": examples.shared}
    return json.dumps(recorded, indent=1, ensure_ascii=False) + "\n"


def _run(examples: Examples, embedded: Embedded) -> None:
    """Make all calls. The order matters: each part builds on what those before it have changed."""
    owner = examples.lab.user("alice")
    key = _keys(examples, owner)
    site = _tokens(examples, key)
    _heartbeats(examples, owner, site, key)
    _locations(examples, owner)
    _posts(examples, site)
    _reviews(examples, site)
    _sync(examples, owner, site)
    _oauth(examples, key)
    for part in (webhooks, alerts, logins, updates):
        part.record(examples, owner)
    _callers(examples, owner, site, key)
    _requests(examples, owner, site)
    _plans(examples)
    _provider(examples, site)
    _waiting(examples, site, key)
    _changed_keys(examples, owner, key)
    _revocation(examples, owner, key)
    owner = examples.lab.user("alice")  # the earlier token has expired
    _slow(examples, embedded, owner)
    _damaged(examples, embedded, owner)


def _keys(examples: Examples, owner: httpx.Client) -> JsonObject:
    body = {"name": "Harbour Coffee website", "business_id": 10, "assigned_location_id": LOCATION}
    examples.ok("list_businesses", "The businesses of a user", owner)
    domains = {"primary_domain": "harbour.example", "allowed_domains": ["www.harbour.example"]}
    key: JsonObject = examples.ok("create_key", "A key for a website", owner, {**body, **domains})
    limited = {"name": "Reports", "permissions": ["business.read"], "expires_at": "2099-07-01T00:00:00Z"}
    examples.ok("create_key", "A key that only reads and expires", owner, {**body, **limited})
    examples.ok("list_keys", "The newest key of two", owner, limit=1)
    examples.fails("create_key", "A name without characters", owner, {**body, "name": " ", "business_id": "10"})
    examples.fails("create_key", "An unknown business", owner, {**body, "business_id": 999})
    examples.fails(
        "create_key", "A location of another business", owner, {**body, "assigned_location_id": "locations/114"}
    )
    return key


def _tokens(examples: Examples, key: JsonObject) -> httpx.Client:
    anyone, pair = examples.lab.anonymous, {name: key[name] for name in PAIR}
    grant = {"grant_type": "client_credentials", **pair}
    examples.ok("issue_token", "Client credentials", anyone, grant)
    examples.lab.advance(minutes=1)
    limited = examples.ok("issue_token", "Only one permission", anyone, {**grant, "permissions": ["business.read"]})
    refresh = {"grant_type": "refresh_token", "refresh_token": limited["refresh_token"]}
    examples.ok("issue_token", "A refresh token", anyone, refresh)
    exchange = {"grant_type": EXCHANGE, "subject_token_type": ID_TOKEN}
    examples.ok("issue_token", "An ID token", anyone, {**exchange, "subject_token": examples.lab.id_token("alice")})
    examples.fails("issue_token", "A wrong secret", anyone, {**grant, "client_secret": "wrong"})
    examples.fails("issue_token", "A wrong refresh token", anyone, {**refresh, "refresh_token": "wrong"})
    examples.fails("issue_token", "A wrong ID token", anyone, {**exchange, "subject_token": "wrong"})
    examples.fails("issue_token", "An unknown grant", anyone, {**grant, "grant_type": "password"})
    examples.fails("issue_token", "A permission that the key lacks", anyone, {**grant, "permissions": ["admin"]})
    examples.ok("validate_credentials", "A valid pair", anyone, {**pair, "site_domain": "https://harbour.example"})
    examples.ok("validate_credentials", "A wrong secret", anyone, {**pair, "client_secret": "wrong"})
    examples.ok("validate_credentials", "Another site", anyone, {**pair, "site_domain": "https://staging.example"})
    examples.fails("validate_credentials", "No secret", anyone, {"client_id": key["client_id"]})
    return examples.lab.service(key)


def _heartbeats(examples: Examples, owner: httpx.Client, site: httpx.Client, key: JsonObject) -> None:
    client_id = key["client_id"]
    examples.ok("get_connection_status", "A key that was never used", owner, client_id=client_id)
    versions = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2"}
    examples.ok("send_heartbeat", "Versions and plugins", site, {**versions, "detected_plugins": ["woocommerce"]})
    examples.ok("send_heartbeat", "No change", site, {})
    examples.ok("get_connection_status", "A site that is online", owner, client_id=client_id)
    examples.lab.advance(hours=5)
    examples.ok("get_connection_status", "An idle site with its history", owner, client_id=client_id, history="true")
    examples.fails("send_heartbeat", "A version that is not a string", site, {"plugin_version": 2.4})
    examples.fails("send_heartbeat", "A user token", owner, {})
    examples.fails("get_connection_status", "A wrong value of history", owner, client_id=client_id, history="yes")


def _locations(examples: Examples, owner: httpx.Client) -> None:
    examples.ok("list_locations", "The first two locations", owner, limit=2)
    examples.ok("list_locations", "Locations without a business", owner, type="unassigned")
    examples.ok("get_location", "The profile of a coffee shop", owner, **HERE)
    examples.ok("switch_sync", "Switch sync on", owner, {"syncEnabled": True}, **HERE)
    examples.ok("refresh_verification", "A verified location", owner, **HERE)
    waiting: JsonObject = {"locationId": "locations/113"}
    examples.ok("refresh_verification", "A verification that is under way", owner, **waiting)
    examples.fails("switch_sync", "A location that is not verified", owner, {"syncEnabled": True}, **waiting)
    examples.fails("switch_sync", "A misspelt field", owner, {"sync_enabled": True}, **HERE)
    examples.fails("list_locations", "Page 0", owner, page=0)
    examples.fails("get_location", "A malformed id", owner, group="all", locationId="a b")


def _posts(examples: Examples, site: httpx.Client) -> None:
    action = {"actionType": "LEARN_MORE", "url": "https://harbour.example/menu"}
    standard = {"summary": "Our winter menu is here.", "callToAction": action, "languageCode": "en"}
    days = {"startDate": {"year": 2026, "month": 2, "day": 6}, "endDate": {"year": 2026, "month": 2, "day": 6}}
    hours = {"startTime": {"hours": 18}, "endTime": {"hours": 20, "minutes": 30}}
    event = {"title": "Latte art evening", "schedule": {**days, **hours}}
    examples.ok("create_post", "A standard post", site, standard, **HERE)
    invitation = {"topicType": "EVENT", "summary": "Learn to pour a swan.", "event": event}
    post = examples.ok("create_post", "An event", site, invitation, **HERE)
    examples.ok("list_posts", "The newest two posts", site, **HERE, pageSize=2)
    one: JsonObject = {"postId": post["name"].rpartition("/")[2], **HERE}
    examples.ok("change_post", "Another summary, no language", site, {"summary": "Pour a rosetta."}, **one)
    examples.fails("change_post", "A field that cannot be changed", site, {"media": []}, **one)
    examples.ok("delete_post", "A deleted post", site, **one)
    examples.fails("create_post", "A standard post without a summary", site, {"topicType": "STANDARD"}, **HERE)
    examples.fails("list_posts", "No location", site, pageSize=2)
    for number in range(POSTS_A_MONTH - 2):
        assert examples.call("create_post", site, {"summary": f"Post {number}"}, **HERE).is_success
    examples.fails("create_post", "The posts of the month are used up", site, standard, **HERE)


def _reviews(examples: Examples, site: httpx.Client) -> None:
    one: JsonObject = {"reviewId": "111003", **HERE}
    examples.ok("list_reviews", "Two reviews", site, **HERE, pageSize=2)
    examples.ok("reply_to_review", "An apology", site, {"comment": "Sorry, Priya. The next one is on us."}, **one)
    examples.ok("get_review", "A review with a reply", site, **one)
    examples.ok("delete_reply", "A deleted reply", site, **one)
    examples.fails("reply_to_review", "An empty reply", site, {"comment": " "}, **one)
    examples.fails("list_reviews", "An unknown order", site, **HERE, orderBy="stars")


def _sync(examples: Examples, owner: httpx.Client, site: httpx.Client) -> None:
    lab = examples.lab
    phone = {"primaryPhone": "+81 45-555-0123"}
    read_only = {"metadata": {"mapsUri": "https://maps.example/pier"}}
    profile = {"title": "Harbour Coffee, Pier", "phoneNumbers": phone, **read_only}
    examples.ok("sync_profile", "Preview", site, profile, **HERE, validateOnly="true")
    examples.ok("sync_profile", "A new phone number", site, profile, **HERE)
    lab.provider.change(LOCATION, phoneNumbers={"primaryPhone": "+81 45-555-0199"})
    lab.advance(minutes=10)
    examples.ok("compare_profile", "A phone number that someone else changed", site, **HERE)
    examples.ok("sync_profile", "Nothing that can be sent", site, read_only, **HERE)
    examples.ok("list_sync_history", "The last two syncs", site, **HERE, limit=2)
    examples.fails("sync_profile", "A wrong type", site, {"title": 5}, **HERE)
    examples.fails("sync_profile", "A misspelt parameter", site, profile, **HERE, validateonly="true")
    examples.fails("sync_profile", "Sync is switched off", owner, profile, locationId="locations/112")
    examples.fails("sync_profile", "A location that is not verified", owner, profile, locationId="locations/113")
    examples.fails("list_sync_history", "A limit of 0", site, **HERE, limit=0)
    once = {"X-Idempotency-Key": "menu-2026-01"}
    assert examples.call("sync_profile", site, profile, once, **HERE).is_success
    examples.fails("sync_profile", "Another body", site, {"title": "Pier"}, group="all", headers=once, **HERE)


def _oauth(examples: Examples, key: JsonObject) -> None:
    anyone, pair = examples.lab.anonymous, {name: key[name] for name in PAIR}
    grant = {"grant_type": "client_credentials", **pair}
    examples.ok("issue_oauth_token", "Client credentials", anyone, grant)
    offline = {"scope": "business.read offline_access"}
    token = examples.ok("issue_oauth_token", "With a refresh token", anyone, {**grant, **offline})
    refresh = {"grant_type": "refresh_token", "refresh_token": token["refresh_token"], **pair}
    examples.ok("issue_oauth_token", "A refresh token", anyone, refresh)
    examples.fails("issue_oauth_token", "A wrong refresh token", anyone, {**refresh, "refresh_token": "wrong"})
    examples.fails("issue_oauth_token", "A permission that the key lacks", anyone, {**grant, "scope": "admin"})
    examples.fails("issue_oauth_token", "An unknown grant", anyone, {**grant, "grant_type": "password"})
    examples.fails("issue_oauth_token", "No grant", anyone, pair, group="oauth")
    wrong = {**pair, "client_secret": "wrong"}
    for group in ("oauth", None):
        examples.fails("issue_oauth_token", "A wrong secret", anyone, {**grant, **wrong}, group=group)
    examples.ok("introspect_token", "A valid access token", anyone, {**pair, "token": token["access_token"]})
    examples.ok("introspect_token", "A token of another client", anyone, {**pair, "token": "unknown"})
    examples.ok("revoke_token", "An access token", anyone, {**pair, "token": token["access_token"]})
    examples.ok("find_server_metadata", "This service", anyone)
    examples.ok("list_public_keys", "One key", anyone)


def _callers(examples: Examples, owner: httpx.Client, site: httpx.Client, key: JsonObject) -> None:
    lab = examples.lab
    read: JsonObject = {"group": "all", **HERE}
    examples.fails("get_location", "No token", lab.anonymous, **read)
    examples.fails("get_location", "Not an access token", lab.connect("guess", "guess"), **read)
    revoked = lab.service(key)
    body = {"token": revoked.headers["Authorization"].removeprefix("Bearer ")}
    assert examples.call("revoke_token", lab.anonymous, {**{name: key[name] for name in PAIR}, **body}).is_success
    examples.fails("get_location", "A revoked token", revoked, **read)
    examples.fails("list_businesses", "A service token", site, group="user")
    reader = lab.service(key, ["business.read"])
    examples.fails("switch_sync", "A token without the permission", reader, {"syncEnabled": True}, group="key", **HERE)
    examples.fails("get_location", "A key of another location", site, group="key", locationId="locations/112")
    elsewhere = {"Origin": "https://elsewhere.example"}
    examples.fails("get_location", "A page of another site", site, group="key", headers=elsewhere, **HERE)
    unknown = {"token": "unknown"}
    examples.fails("introspect_token", "Not an access token", lab.connect("guess", "guess"), unknown, group="oauth")
    pair = {name: key[name] for name in PAIR}
    other = {**pair, **unknown}
    examples.fails("introspect_token", "A page of another site", lab.anonymous, other, group="oauth", headers=elsewhere)
    lab.operator.deactivate(key["client_id"], "billing_issue")
    grant = {"grant_type": "client_credentials", **{name: key[name] for name in PAIR}}
    examples.fails("get_location", "A deactivated key", site, group="key", **HERE)
    examples.fails("send_heartbeat", "A deactivated key", site, {})
    examples.fails("validate_credentials", "A deactivated key", lab.anonymous, pair)
    examples.fails("issue_token", "A deactivated key", lab.anonymous, grant)
    examples.fails("issue_oauth_token", "A deactivated key", lab.anonymous, grant)
    examples.fails("reactivate_key", "A hold that the service has set", owner, client_id=key["client_id"])
    lab.operator.reactivate(key["client_id"])


def _requests(examples: Examples, owner: httpx.Client, site: httpx.Client) -> None:
    lab, path = examples.lab, "/api/v1/api-keys/heartbeat"
    examples.fails("get_location", "An unknown location", owner, group="all", locationId="locations/999")
    examples.fails("revoke_key", "An unknown key", owner, group="user", client_id="svcid_1_1_unknown")
    examples.fails("delete_post", "An unknown post", owner, **HERE, postId="999")
    examples.fails("get_review", "An unknown review", owner, **HERE, reviewId="999")
    examples.fails("change_post", "An unknown post", owner, {"summary": "Hello"}, **HERE, postId="999")
    examples.failed("", "PUT where GET and POST exist", owner.put("/api/v1/developer/credentials"), "all")
    json = {"Content-Type": "application/json"}
    examples.failed("", "A body of 300 KB", site.post(path, content=b" " * 300_000, headers=json), "all")
    text = {"Content-Type": "text/plain"}
    examples.failed("", "A body that is not JSON", site.post(path, content=b"{}", headers=text), "all")
    examples.failed("", "A header of 20 KB", site.post(path, headers={"X-Long": "x" * 20_000}), "all")
    path = "/oauth2/token"
    examples.failed("", "GET of an endpoint for forms", lab.anonymous.get(path), "oauth")
    large = lab.anonymous.post(path, content=b" " * 70_000, headers={"Content-Type": FORM})
    examples.failed("", "A form of 70 KB", large, "oauth")
    compressed = {"Content-Type": FORM, "Content-Encoding": "gzip"}
    examples.failed("", "A compressed form", lab.anonymous.post(path, content=b"x", headers=compressed), "oauth")
    examples.failed("", "A header of 20 KB", lab.anonymous.post(path, headers={"X-Long": "x" * 20_000}), "oauth")
    while (response := examples.call("send_heartbeat", site, {})).is_success:
        continue
    examples.failed("send_heartbeat", "Too many heartbeats in a minute", response, "all")
    lab.advance(minutes=1)


def _plans(examples: Examples) -> None:
    lab = examples.lab
    other: JsonObject = {"locationId": "locations/311"}
    owner = lab.user("carol")
    examples.fails("create_post", "The plan has no posts", owner, {"summary": "Hello"}, **other)
    examples.fails("change_post", "The plan has no posts", owner, {"summary": "Hello"}, **other, postId="31101")
    for operation in ("list_reviews", "get_review", "delete_reply"):
        review: JsonObject = {} if operation == "list_reviews" else {"reviewId": "311001"}
        examples.fails(operation, "The plan has no reviews", owner, **other, **review)
    key = {"name": "Website", "business_id": 30, "assigned_location_id": "locations/311"}
    while (response := examples.call("create_key", owner, key)).is_success:
        continue
    examples.failed("create_key", "A location with 20 keys", response)
    logins.record_reactivation(examples, lab.user("bob"))  # bob has the plan Starter from here on
    second = {**key, "business_id": 20, "assigned_location_id": "locations/219"}
    examples.fails("create_key", "The plan has one location", lab.user("bob"), second)
    review = {**other, "reviewId": "311001"}
    examples.fails("reply_to_review", "The plan has no reviews", owner, {"comment": "Thank you."}, **review)
    lab.operator.assign_plan("carol", "listing")
    examples.fails("switch_sync", "The plan has no sync", owner, {"syncEnabled": True}, **other)
    examples.fails("sync_profile", "The plan has no sync", owner, {"title": "Kites"}, **other)
    for operation in ("accept_google_update", "reject_google_update"):
        examples.fails(operation, "The plan has no sync", owner, {"updateMask": "title"}, **other)


def _provider(examples: Examples, site: httpx.Client) -> None:
    lab = examples.lab
    for summary, status in (("The provider is down", 503), ("The provider accepts no more requests", 429)):
        lab.fault("status", times=9, status=status, message="Try again later.")
        examples.fails("refresh_verification", summary, site, group="all", **HERE)
        lab.provider.heal()
    lab.provider.behave(strict=True)
    hours = {"specialHours": {"specialHourPeriods": []}, "profile": {"description": "See https://harbour.example"}}
    examples.fails("sync_profile", "The provider rejects a field", site, hours, **HERE)
    lab.provider.behave(strict=False)


def _waiting(examples: Examples, site: httpx.Client, key: JsonObject) -> None:
    """Record the errors of requests that arrive while others wait for the provider."""
    lab, sync = examples.lab, "/api/v1/sync/111"
    grant = {"grant_type": "client_credentials", **{name: key[name] for name in PAIR}}
    once, body = {"X-Idempotency-Key": "opening-2026"}, {"websiteUri": "https://harbour.example/opening"}
    with ThreadPoolExecutor(IN_FLIGHT) as others:
        lab.fault("hold")
        others.submit(site.post, sync, headers=once, json=body)
        lab.provider.wait_for_faults()
        examples.fails("sync_profile", "The first is still running", site, body, group="all", headers=once, **HERE)
        lab.provider.heal()
    with ThreadPoolExecutor(IN_FLIGHT) as others:
        lab.fault("hold", times=IN_FLIGHT)
        for _ in range(IN_FLIGHT):
            others.submit(site.get, "/api/v1/sync/comparison/111")
        lab.provider.wait_for_faults()
        examples.fails("send_heartbeat", "Too many requests at the same time", site, {}, group="all")
        examples.fails("issue_oauth_token", "Too many requests at the same time", lab.anonymous, grant, group="oauth")
        lab.provider.heal()
    wrong = {**grant, "client_secret": "wrong"}
    while (response := examples.call("issue_oauth_token", lab.anonymous, wrong)).status_code != 429:
        continue
    examples.failed("issue_oauth_token", "Too many wrong secrets", response, "oauth")


def _changed_keys(examples: Examples, owner: httpx.Client, key: JsonObject) -> None:
    of_key: JsonObject = {"client_id": key["client_id"]}
    examples.ok("roll_key", "A day for the old secret", owner, {}, **of_key)
    examples.fails("roll_key", "A third valid secret", owner, {"overlap_seconds": 3600}, **of_key)
    examples.fails("roll_key", "A week and a second", owner, {"overlap_seconds": 604_801}, **of_key)
    examples.ok("get_key", "A key with two valid secrets", owner, **of_key)
    examples.ok("end_previous_secret", "The newest secret only", owner, **of_key)
    examples.ok("change_key", "Another name", owner, {"name": "Website of the harbour"}, **of_key)
    examples.fails("change_key", "Nothing to change", owner, {}, **of_key)
    examples.ok("roll_key", "A secret that leaked", owner, {"overlap_seconds": 0}, **of_key)
    examples.ok("deactivate_key", "A deactivated key", owner, **of_key)
    examples.ok("reactivate_key", "An active key", owner, **of_key)


def _revocation(examples: Examples, owner: httpx.Client, key: JsonObject) -> None:
    of_key: JsonObject = {"client_id": key["client_id"]}
    examples.ok("list_key_audit", "The last two events of a key", owner, **of_key, limit=2)
    examples.ok("list_key_requests", "The last two errors of a key", owner, **of_key, limit=2, errors_only="true")
    examples.ok("list_audit", "The last two events of a user", owner, limit=2)
    examples.fails("list_audit", "A limit of 0", owner, limit=0)
    examples.ok("list_events", "The first two events", owner, limit=2)
    examples.fails("list_events", "An unknown type", owner, types="key.lost")
    examples.ok("revoke_key", "A revoked key", owner, **of_key)
    examples.lab.advance(days=8)
    examples.fails("get_location", "An expired token", owner, group="all", **HERE)


def _slow(examples: Examples, embedded: Embedded, owner: httpx.Client) -> None:
    """Record the errors after 5 and 10 seconds of waiting, all at the same time."""
    embedded.execute("UPDATE locations SET sync_lease = 'another process', sync_lease_until = 9999999999999")
    with ThreadPoolExecutor(IN_FLIGHT) as requests:
        json = requests.submit(never_sent, examples.lab.url, "/api/v1/auth/token", "application/json")
        form = requests.submit(never_sent, examples.lab.url, "/oauth2/token", FORM)
        sync = requests.submit(owner.post, "/api/v1/sync/111", json={"title": "Pier"})
        examples.failed("", "A body that does not arrive", json.result(), "all")
        examples.failed("", "A form that does not arrive", form.result(), "oauth")
        accept, reject = (requests.submit(updates.settle, owner, each) for each in ("accept", "reject"))
    examples.failed("sync_profile", "Another sync is running", sync.result())
    examples.failed("accept_google_update", "A sync is running", accept.result())
    examples.failed("reject_google_update", "A sync is running", reject.result())


def _damaged(examples: Examples, embedded: Embedded, owner: httpx.Client) -> None:
    """Record an internal error. The service has no known defect, so damage its database."""
    embedded.execute("UPDATE locations SET profile = '{', source = '{'")
    examples.fails("get_location", "A defect", owner, group="all", **HERE)
    embedded.execute("DROP TABLE keys")
    grant = {"grant_type": "client_credentials", "client_id": "svcid_1_1_unknown", "client_secret": "wrong"}
    examples.fails("issue_oauth_token", "A defect", examples.lab.anonymous, grant, group="oauth")


if __name__ == "__main__":
    RECORDED.write_text(record(), "utf-8")
