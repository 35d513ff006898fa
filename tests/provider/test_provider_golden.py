"""The adapter's requests are those that the provider's own client makes, and fit the provider's schemas."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from googleapiclient.discovery import build, build_from_document

from profilesvc.domain.profiles import plan_patch
from profilesvc.domain.time import FrozenClock
from profilesvc.fixtures import load_world
from profilesvc.provider.remote import READ_MASK, RemoteProvider
from support.provider.oracle import (
    ACCOUNTS,
    INFORMATION,
    NOTIFICATIONS,
    VERIFICATIONS,
    method_of,
    v4_document,
    violations,
)
from support.provider.rig import _adapter

ALICE, PIER, PIER_V4 = "accounts/1", "locations/111", "accounts/1/locations/111"
POST_NAME, REVIEW_NAME = f"{PIER_V4}/localPosts/11101", f"{PIER_V4}/reviews/111001"
SETTING, TOPIC = f"{ALICE}/notificationSetting", "projects/p/topics/profiles"
KINDS = ["categories/gcid:bakery", "categories/gcid:coffee_shop"]
POST = {"topicType": "EVENT", "summary": "Open evening ☕", "event": {"title": "Evening"}}
PROFILE = next(place["profile"] for place in load_world()["locations"] if place["profile"]["name"] == PIER)
# The contract's own sample of a sync, which has neither the other phone nor the region.
SYNC: dict[str, Any] = {
    "title": "Updated Business Name",
    "phoneNumbers": {"primaryPhone": "+1-555-987-6543"},
    "storefrontAddress": {"addressLines": ["456 New St"], "locality": "Yokohama"},
}
PATCH = plan_patch(PROFILE, SYNC)


@dataclass
class Google:
    """The provider's own client, which builds requests without sending them."""

    def __post_init__(self) -> None:
        self.places, self.checks, self.accounts, self.notifications = (
            build(api, "v1", credentials=AnonymousCredentials(), static_discovery=True, cache_discovery=False)
            for api in (INFORMATION, VERIFICATIONS, ACCOUNTS, NOTIFICATIONS)
        )
        v4 = build_from_document(json.dumps(v4_document()), credentials=AnonymousCredentials())
        self.v4 = v4.accounts().locations()


Ours = Callable[[RemoteProvider], Awaitable[Any]]
Theirs = Callable[[Google], list[Any]]

CASES: dict[str, tuple[Ours, Theirs]] = {
    "accounts": (lambda ours: ours.accounts(), lambda theirs: [theirs.accounts.accounts().list(pageSize=20)]),
    "locations": (
        lambda ours: ours.locations(ALICE),
        lambda theirs: [theirs.places.accounts().locations().list(parent=ALICE, readMask=READ_MASK, pageSize=100)],
    ),
    "location": (
        lambda ours: ours.location(PIER),
        lambda theirs: [theirs.places.locations().get(name=PIER, readMask=READ_MASK)],
    ),
    "google_updated": (
        lambda ours: ours.google_updated(PIER),
        lambda theirs: [theirs.places.locations().getGoogleUpdated(name=PIER, readMask=READ_MASK)],
    ),
    "categories": (
        lambda ours: ours.categories("JP", "ja", "コーヒー"),
        lambda theirs: [
            theirs.places.categories().list(
                regionCode="JP", languageCode="ja", view="BASIC", filter="displayName=コーヒー"
            )
        ],
    ),
    "categories_of": (
        lambda ours: ours.categories_of(KINDS, "JP", "ja"),
        lambda theirs: [
            theirs.places.categories().batchGet(names=KINDS, regionCode="JP", languageCode="ja", view="FULL")
        ],
    ),
    "patch_location": (
        lambda ours: ours.patch_location(PIER, PATCH.body, PATCH.mask),
        lambda theirs: [
            theirs.places.locations().patch(
                name=PIER,
                updateMask="title,phoneNumbers,storefrontAddress",
                body={
                    "title": "Updated Business Name",
                    "phoneNumbers": {
                        "primaryPhone": "+1-555-987-6543",
                        "additionalPhones": PROFILE["phoneNumbers"]["additionalPhones"],
                    },
                    "storefrontAddress": {**PROFILE["storefrontAddress"], **SYNC["storefrontAddress"]},
                },
            )
        ],
    ),
    "validate_location": (
        lambda ours: ours.validate_location(PIER, {"title": "x"}, ["title"]),
        lambda theirs: [
            theirs.places.locations().patch(name=PIER, updateMask="title", validateOnly=True, body={"title": "x"})
        ],
    ),
    "verification": (
        lambda ours: ours.verification(PIER),
        lambda theirs: [
            theirs.checks.locations().getVoiceOfMerchantState(name=PIER),
            theirs.checks.locations().verifications().list(parent=PIER, pageSize=100),
        ],
    ),
    "notification_setting": (
        lambda ours: ours.notification_setting(ALICE),
        lambda theirs: [theirs.notifications.accounts().getNotificationSetting(name=SETTING)],
    ),
    "set_notifications": (
        lambda ours: ours.set_notifications(ALICE, TOPIC, ["NEW_REVIEW"]),
        lambda theirs: [
            theirs.notifications.accounts().updateNotificationSetting(
                name=SETTING,
                updateMask="pubsubTopic,notificationTypes",
                body={"name": SETTING, "pubsubTopic": TOPIC, "notificationTypes": ["NEW_REVIEW"]},
            )
        ],
    ),
    "posts": (
        lambda ours: ours.posts(ALICE, PIER),
        lambda theirs: [theirs.v4.localPosts().list(parent=PIER_V4, pageSize=100)],
    ),
    "create_post": (
        lambda ours: ours.create_post(ALICE, PIER, POST),
        lambda theirs: [theirs.v4.localPosts().create(parent=PIER_V4, body=POST)],
    ),
    "patch_post": (
        lambda ours: ours.patch_post(ALICE, PIER, "11101", POST, ["summary", "callToAction"]),
        lambda theirs: [theirs.v4.localPosts().patch(name=POST_NAME, updateMask="summary,callToAction", body=POST)],
    ),
    "delete_post": (
        lambda ours: ours.delete_post(ALICE, PIER, "11101"),
        lambda theirs: [theirs.v4.localPosts().delete(name=POST_NAME)],
    ),
    "reviews": (
        lambda ours: ours.reviews(ALICE, PIER, page_size=20, page_token="t", order_by="rating desc"),
        lambda theirs: [theirs.v4.reviews().list(parent=PIER_V4, pageSize=20, pageToken="t", orderBy="rating desc")],
    ),
    "review": (
        lambda ours: ours.review(ALICE, PIER, "111001"),
        lambda theirs: [theirs.v4.reviews().get(name=REVIEW_NAME)],
    ),
    "reply": (
        lambda ours: ours.reply(ALICE, PIER, "111001", "Thanks, 田中さん"),
        lambda theirs: [theirs.v4.reviews().updateReply(name=REVIEW_NAME, body={"comment": "Thanks, 田中さん"})],
    ),
    "delete_reply": (
        lambda ours: ours.delete_reply(ALICE, PIER, "111001"),
        lambda theirs: [theirs.v4.reviews().deleteReply(name=REVIEW_NAME)],
    ),
}


def shape(method: str, uri: str, body: bytes | str | None) -> tuple[Any, ...]:
    url = urlsplit(uri)
    query = parse_qs(url.query)  # a list per name, because `names` is repeated
    query.pop("alt", None)
    for mask in ("readMask", "updateMask"):
        if mask in query:
            query[mask] = sorted(query[mask][0].split(","))
    return method, url.path, query, json.loads(body) if body else None


@pytest.mark.parametrize("operation", CASES)
async def test_request_is_the_one_of_the_providers_client(clock: FrozenClock, operation: str) -> None:
    ours, theirs = CASES[operation]
    seen: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 3599})
        seen.append(request)
        return httpx.Response(200, json={})

    client = httpx.AsyncClient(transport=httpx.MockTransport(record), base_url="http://provider")
    provider = _adapter(client, clock)
    await ours(provider)
    await provider.aclose()
    wanted = [shape(request.method, request.uri, request.body) for request in theirs(Google())]
    assert [shape(request.method, str(request.url), request.content) for request in seen] == wanted
    for request in seen:
        document, method = method_of(request.method, request.url.path)
        assert set(request.url.params) <= set(method["parameters"])
        assert request.headers["Authorization"] == "Bearer t"
        if request.content:
            assert violations(document, method["request"], json.loads(request.content), sent=True) == []


def test_every_operation_of_the_port_is_compared() -> None:
    others = {"aclose", "load", "for_owner", "quota", "signed_in"}
    assert set(CASES) == {name for name in vars(RemoteProvider) if not name.startswith("_")} - others
