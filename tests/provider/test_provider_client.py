"""The provider's own public client calls the emulator over a socket."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httplib2
import httpx
import pytest
from google.auth.exceptions import RefreshError
from google.oauth2.credentials import Credentials
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build, build_from_document
from googleapiclient.errors import HttpError

from profilesvc.domain.time import FrozenClock
from support.provider.oracle import (
    ACCOUNTS,
    INFORMATION,
    NOTIFICATIONS,
    VERIFICATIONS,
    method_of,
    v4_document,
    violations,
)
from support.provider.rig import LOGIN, START, emulator_at, served

PIER, AIRPORT, PIER_V4 = "locations/111", "locations/113", "accounts/1/locations/111"
MASK = "name,title,metadata"
MAX_PAGES = 50


class Tour:
    """A client of every API; `run` executes a request and holds its answer to the provider's schema."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.called: set[str] = set()
        self._opened: list[httplib2.Http] = []
        self.token = httpx.post(f"{origin}/token", data=LOGIN).json()["access_token"]
        self.information, self.verifications, self.accounts, self.notifications = (
            build(api, "v1", http=self._http(), static_discovery=True, cache_discovery=False, client_options=self._at())
            for api in (INFORMATION, VERIFICATIONS, ACCOUNTS, NOTIFICATIONS)
        )
        v4 = build_from_document(json.dumps(v4_document()), http=self._http(), client_options=self._at())
        self.v4 = v4.accounts().locations()

    def _at(self) -> dict[str, str]:
        return {"api_endpoint": self.origin}

    def plain(self) -> httplib2.Http:
        self._opened.append(httplib2.Http(proxy_info=None, timeout=10))
        return self._opened[-1]

    def _http(self, **login: Any) -> AuthorizedHttp:
        return AuthorizedHttp(Credentials(**{"token": self.token, **login}), http=self.plain())

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    def run(self, request: Any) -> Any:
        answer = request.execute()
        document, method = method_of(request.method, httpx.URL(request.uri).path)
        assert violations(document, method["response"], answer) == []
        self.called.add(method["id"])
        return answer

    def refusal(self, request: Any) -> HttpError:
        with pytest.raises(HttpError) as caught:
            request.execute()
        return caught.value

    def every_page(self, collection: Any, member: str, **query: Any) -> list[dict[str, Any]]:
        items, request = [], collection.list(**query)
        for _ in range(MAX_PAGES):
            page = self.run(request)
            items += page.get(member, [])
            request = collection.list_next(request, page)
            if request is None:
                return items
        raise AssertionError("paging does not end")

    def control(self, path: str, method: str = "PUT", **body: Any) -> None:
        assert httpx.request(method, f"{self.origin}/__emulator/{path}", json=body).is_success


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(emulator_at(tmp_path_factory.mktemp("tour"), FrozenClock(START))) as origin:
        yield origin


@pytest.fixture
def tour(origin: str) -> Iterator[Tour]:
    httpx.post(f"{origin}/__emulator/reset")
    made = Tour(origin)
    yield made
    made.close()


def test_every_operation_of_the_emulator_is_driven_and_is_one_of_the_provider(tour: Tour, tmp_path: Path) -> None:
    for area in (_accounts, _notifications, _locations, _attributes_and_categories, _verification, _posts, _reviews):
        area(tour)
    served_here = set()
    for rule in emulator_at(tmp_path, FrozenClock(START)).url_map.iter_rules():
        if rule.rule.startswith("/v") and rule.rule != "/v1/userinfo":  # of the login, not of the profiles
            path = re.sub(r"<name:\w+>", "x", rule.rule)
            served_here |= {method_of(verb, path)[1]["id"] for verb in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    assert tour.called == served_here
    assert len(served_here) == 28


def _accounts(tour: Tour) -> None:
    assert [one["name"] for one in tour.every_page(tour.accounts.accounts(), "accounts", pageSize=1)] == [
        "accounts/1",
        "accounts/2",
        "accounts/3",
    ]


def _notifications(tour: Tour) -> None:
    setting, name = tour.notifications.accounts(), "accounts/1/notificationSetting"
    assert tour.run(setting.getNotificationSetting(name=name)) == {"name": name}
    body = {"pubsubTopic": "projects/p/topics/t", "notificationTypes": ["GOOGLE_UPDATE"]}
    patched = setting.updateNotificationSetting(name=name, updateMask="pubsubTopic,notificationTypes", body=body)
    assert tour.run(patched) == tour.run(setting.getNotificationSetting(name=name)) == {"name": name, **body}
    tour.control("state", google_updated={PIER: {"title": "Harbour Coffee"}})
    (push,) = httpx.get(f"{tour.origin}/__emulator/pushes").json()["pushes"]
    assert push["body"]["subscription"] == "projects/p/subscriptions/profiles"
    ended = setting.updateNotificationSetting(name=name, updateMask="notificationTypes", body={})
    assert "notificationTypes" not in tour.run(ended)


def _locations(tour: Tour) -> None:
    places = tour.information.accounts().locations()
    for size in (1, 2, 100):
        found = tour.every_page(places, "locations", parent="accounts/1", readMask="name", pageSize=size)
        assert len(found) == 5
    query = {"parent": "accounts/-", "readMask": MASK, "orderBy": "title desc", "filter": 'title:"harbour"'}
    found = tour.run(places.list(**query))
    assert found["totalSize"] == 5
    assert found["locations"][0]["title"] == "Harbour Pop-up"
    place = tour.information.locations()
    assert tour.run(place.get(name=PIER, readMask=MASK))["title"] == "Harbour Coffee, Pier"
    assert tour.run(place.patch(name=PIER, updateMask="title", validateOnly=True, body={"title": "x"})) == {}
    tour.control("state", switches={"edit_review_seconds": 60})
    patched = tour.run(place.patch(name=PIER, updateMask="title", body={"title": "Café 港"}))
    assert patched["title"] == "Café 港"
    assert patched["metadata"]["hasPendingEdits"]
    seen = tour.run(place.getGoogleUpdated(name=PIER, readMask="title"))
    assert seen["pendingMask"] == seen["diffMask"] == "title"
    assert seen["location"]["title"] == "Harbour Coffee"  # the provider's own change, until the review ends
    _settle_changes(tour)


def _settle_changes(tour: Tour) -> None:
    """Accept one change of the provider and reject another; only the rejected one is reviewed."""
    place, mask = tour.information.locations(), "websiteUri,storeCode,metadata"
    own = tour.run(place.get(name=PIER, readMask=mask))
    theirs = {"websiteUri": "https://theirs.example/", "storeCode": "THEIRS"}
    tour.control("state", google_updated={PIER: theirs})
    seen = tour.run(place.getGoogleUpdated(name=PIER, readMask=mask))
    assert set(seen["diffMask"].split(",")) == {*theirs, "title"}
    assert {name: seen["location"][name] for name in theirs} == theirs
    tour.run(place.patch(name=PIER, updateMask="storeCode", body={"storeCode": "THEIRS"}))
    tour.run(place.patch(name=PIER, updateMask="websiteUri", body={"websiteUri": own["websiteUri"]}))
    seen = tour.run(place.getGoogleUpdated(name=PIER, readMask=mask))
    assert seen["pendingMask"] == "title,websiteUri"
    assert seen["location"]["websiteUri"] == theirs["websiteUri"]
    tour.control("state", switches={"edit_review_seconds": 0})
    tour.control("clock", method="POST", advance_seconds=60)
    seen = tour.run(place.getGoogleUpdated(name=PIER, readMask=mask))
    assert "diffMask" not in seen
    assert (seen["location"]["websiteUri"], seen["location"]["storeCode"]) == (own["websiteUri"], "THEIRS")
    assert "hasGoogleUpdated" not in seen["location"]["metadata"]


def _attributes_and_categories(tour: Tour) -> None:
    place, listed = tour.information.locations(), tour.information.attributes()
    assert len(tour.run(place.getAttributes(name=f"{PIER}/attributes"))["attributes"]) == 4
    body = {"attributes": [{"name": "attributes/wi_fi", "values": ["no_wi_fi"]}]}
    changed = tour.run(place.updateAttributes(name=f"{PIER}/attributes", attributeMask="attributes/wi_fi", body=body))
    assert changed["attributes"][-1]["values"] == ["no_wi_fi"]
    assert tour.run(place.attributes().getGoogleUpdated(name=f"{PIER}/attributes")) == changed
    assert len(tour.every_page(listed, "attributeMetadata", parent=PIER, pageSize=2)) == 6
    categories = tour.information.categories()
    asked = {"regionCode": "JP", "languageCode": "ja", "view": "BASIC"}
    assert len(tour.every_page(categories, "categories", pageSize=5, **asked)) == 12
    names = ["categories/gcid:bakery", "categories/gcid:coffee_shop"]
    found = tour.run(categories.batchGet(names=names, languageCode="ja", view="FULL"))["categories"]
    assert [one["displayName"] for one in found] == ["Bakery", "コーヒー ショップ"]
    assert found[0]["serviceTypes"]


def _verification(tour: Tour) -> None:
    place = tour.verifications.locations()
    state = tour.run(place.getVoiceOfMerchantState(name=AIRPORT))
    assert state == {"verify": {"hasPendingVerification": True}}
    options = tour.run(place.fetchVerificationOptions(location=AIRPORT, body={"languageCode": "en"}))["options"]
    assert [one["verificationMethod"] for one in options] == ["PHONE_CALL", "SMS", "EMAIL", "ADDRESS"]
    body = {"method": "SMS", "phoneNumber": options[1]["phoneNumber"]}
    begun = tour.run(place.verify(name=AIRPORT, body=body))["verification"]
    ended = tour.run(place.verifications().complete(name=begun["name"], body={"pin": "123456"}))["verification"]
    assert (begun["state"], ended["state"]) == ("PENDING", "COMPLETED")
    listed = tour.every_page(place.verifications(), "verifications", parent=AIRPORT, pageSize=1)
    assert [one["state"] for one in listed] == ["PENDING", "COMPLETED"]
    assert tour.run(place.getVoiceOfMerchantState(name=AIRPORT))["hasVoiceOfMerchant"]


def _posts(tour: Tour) -> None:
    posts = tour.v4.localPosts()
    media = [{"mediaFormat": "PHOTO", "sourceUrl": "https://harbour.example/p.jpg"}]
    body = {"topicType": "STANDARD", "summary": "Hello", "media": media}
    made = tour.run(posts.create(parent=PIER_V4, body=body))
    assert made["media"][0]["name"].startswith(f"{PIER_V4}/media/localPosts/")
    assert len(tour.every_page(posts, "localPosts", parent=PIER_V4, pageSize=5)) == 13
    assert tour.run(posts.get(name=made["name"])) == made
    assert tour.run(posts.patch(name=made["name"], updateMask="summary", body={"summary": "Hi"}))["summary"] == "Hi"
    assert tour.run(posts.delete(name=made["name"])) == {}
    assert tour.refusal(posts.get(name=made["name"])).resp.status == 404


def _reviews(tour: Tour) -> None:
    reviews = tour.v4.reviews()
    page = tour.run(reviews.list(parent=PIER_V4, pageSize=2, orderBy="rating"))
    assert (page["averageRating"], page["totalReviewCount"], page["reviews"][0]["starRating"]) == (3.8, 5, "TWO")
    assert len(tour.every_page(reviews, "reviews", parent=PIER_V4, pageSize=2)) == 5
    name = page["reviews"][0]["name"]
    reply = tour.run(reviews.updateReply(name=name, body={"comment": "Sorry!"}))
    assert reply["reviewReplyState"] == "PENDING"
    tour.control("clock", "POST", advance_seconds=20)
    assert tour.run(reviews.get(name=name))["reviewReply"]["reviewReplyState"] == "APPROVED"
    assert tour.run(reviews.deleteReply(name=name)) == {}
    body = {"locationNames": [PIER_V4, "accounts/1/locations/114"], "pageSize": 4, "ignoreRatingOnlyReviews": True}
    found = tour.run(tour.v4.batchGetReviews(name="accounts/1", body=body))
    assert len(found["locationReviews"]) == 4
    rest = tour.run(tour.v4.batchGetReviews(name="accounts/1", body={**body, "pageToken": found["nextPageToken"]}))
    assert len(rest["locationReviews"]) == 2


def test_rejections_are_read_as_the_providers(tour: Tour) -> None:
    place = tour.information.locations()
    missing = tour.refusal(place.get(name=PIER))
    assert (missing.resp.status, missing.reason) == (400, "Request contains an invalid argument.")
    assert missing.error_details[0]["fieldViolations"] == [{"field": "read_mask", "description": "Field is required"}]
    unknown = tour.refusal(place.patch(name=PIER, updateMask="locationName", body={}))
    assert unknown.error_details[0]["fieldViolations"][0]["field"] == "update_mask"
    post = tour.refusal(tour.v4.localPosts().create(parent=PIER_V4, body={"summary": "x"}))
    assert post.error_details[0]["errorDetails"][0]["field"] == "topic_type"


def test_v4_path_without_its_account_is_rejected_by_the_client_and_not_routed_by_the_emulator(tour: Tour) -> None:
    with pytest.raises(TypeError):
        tour.v4.localPosts().list(parent=PIER)
    request = tour.v4.localPosts().list(parent=PIER_V4)
    request.uri = request.uri.replace("accounts/1/", "")
    error = tour.refusal(request)
    assert (error.resp.status, error.reason) == (404, "Not Found")


def test_a_passing_failure_is_retried_by_the_client(tour: Tour) -> None:
    for status in (429, 503):
        tour.control("faults", "POST", kind="status", status=status)
        request = tour.information.locations().get(name=PIER, readMask="title")
        assert request.execute(num_retries=2) == {"title": "Harbour Coffee, Pier"}


def test_stale_token_is_refreshed_through_the_emulator(tour: Tour) -> None:
    login = {"refresh_token": "r", "token_uri": f"{tour.origin}/token", "client_id": "c", "client_secret": "s"}
    request = tour.information.locations().get(name=PIER, readMask="title")
    assert request.execute(http=tour._http(token="stale", **login))["title"]
    tour.control("state", switches={"refuse_refresh": True})
    with pytest.raises(RefreshError, match="invalid_grant"):
        request.execute(http=tour._http(token="stale", **login))
    with pytest.raises(HttpError) as caught:
        request.execute(http=tour.plain())
    assert caught.value.resp.status == 401
