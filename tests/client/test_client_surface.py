"""Every operation, over a real socket, by both clients."""

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from profilesvc.client import AsyncOptions, AsyncProfileClient, ProfileClient, operations, profiles, webhooks
from profilesvc.client import errors as e
from profilesvc.contract.keys import KeyCreated
from profilesvc.contract.posts import Post
from support.api import CAROL
from support.clients.sdk import AIRPORT, BOOKS, PIER, STATION, Recorded, Service, new_key
from support.surface import REQUESTS

MODULES = (operations, profiles, webhooks)
BUILT = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if inspect.isfunction(value) and inspect.getmodule(value) is module and name[0] != "_"
}


def test_both_clients_offer_every_operation_under_its_name() -> None:
    for name in BUILT.keys() - {"client_credentials", "refresh"}:
        sync, waiting = getattr(ProfileClient, name), getattr(AsyncProfileClient, name)
        assert inspect.signature(sync).parameters == inspect.signature(waiting).parameters
        assert sync.__doc__ == waiting.__doc__ == BUILT[name].__doc__
        assert inspect.iscoroutinefunction(waiting) or inspect.isasyncgenfunction(waiting)


def test_help_shows_parameters_and_results() -> None:
    client = ProfileClient.anonymous("https://profiles.test")
    told = inspect.signature(client.list_posts)
    assert list(told.parameters) == ["location", "page_size", "page_token"]
    assert told.return_annotation.__name__ == "PostList"
    assert inspect.signature(client.iter_posts).return_annotation == Iterator[Post]
    assert inspect.signature(AsyncProfileClient.iter_posts).return_annotation == AsyncIterator[Post]


@pytest.mark.parametrize("name", sorted(name for name in BUILT if name.startswith("list_")))
def test_a_list_has_the_name_of_its_operation(name: str) -> None:
    required = [each for each in inspect.signature(BUILT[name]).parameters.values() if each.default is each.empty]
    operation = BUILT[name](*("CLIENT" for _ in required))
    method, path, _, _ = REQUESTS[name]
    assert (operation.method, operation.path) == (method, path)


def test_the_audit_trail_and_events_have_names_of_their_own() -> None:
    returned = {name: str(inspect.signature(value).return_annotation) for name, value in BUILT.items()}
    assert {name for name, kind in returned.items() if "AuditTrail" in kind} == {
        "list_audit",
        "list_key_audit",
        "iter_key_audit",
    }
    assert {name for name, kind in returned.items() if "EventList" in kind} == {"list_events", "iter_events"}


def test_keys_are_made_listed_and_revoked(alice: ProfileClient) -> None:
    key = new_key(alice, primary_domain="harbour.example", permissions=["business.read"])
    assert key.allowed_domains == ["harbour.example", "www.harbour.example"]
    assert [entry.client_id for entry in alice.list_keys().credentials] == [key.client_id]
    assert alice.revoke_key(key.client_id).revoked
    assert alice.list_keys().credentials == []
    assert alice.list_keys(include_revoked=True).credentials[0].status == "revoked"
    with pytest.raises(e.NotFound):
        alice.revoke_key(key.client_id)


def test_keys_are_rolled_while_their_tokens_stay_valid(
    service: Service, alice: ProfileClient, key: KeyCreated, site: ProfileClient, recorded: Recorded
) -> None:
    site.heartbeat()
    with pytest.raises(e.ValidationFailed):
        alice.roll_key(key.client_id, overlap_seconds=-1)
    with pytest.raises(ValueError, match="API key"):
        alice.use_secret("x")
    rolled = alice.roll_key(key.client_id, overlap_seconds=60)
    site.use_secret(rolled.client_secret)
    service.clock.advance(seconds=61)
    site.heartbeat()
    assert recorded.grants == ["credentials"]  # no new one was needed
    service.clock.advance(days=40)  # the refresh token is dead too
    site.heartbeat()
    assert recorded.grants == ["credentials", "credentials"]


def test_keys_are_switched_off_and_on(
    service: Service, alice: ProfileClient, key: KeyCreated, site: ProfileClient
) -> None:
    assert alice.deactivate_key(key.client_id).deactivation_reason == "user_requested"
    with pytest.raises(e.KeyDeactivated):
        site.heartbeat()
    with pytest.raises(e.Conflict):
        alice.roll_key(key.client_id)
    assert alice.reactivate_key(key.client_id).status == "active"
    assert site.heartbeat().received
    service.deactivate(key.client_id)
    with pytest.raises(e.KeyDeactivated) as caught:
        alice.reactivate_key(key.client_id)
    assert caught.value.details["deactivation_reason"] == "billing_issue"


def test_keys_have_a_history(alice: ProfileClient, key: KeyCreated) -> None:
    for _ in range(2):
        alice.deactivate_key(key.client_id)
        alice.reactivate_key(key.client_id)
    told = [event.event for event in alice.iter_key_audit(key.client_id, limit=2)]
    assert told == ["key.reactivated", "key.deactivated"] * 2 + ["key.created"]
    assert alice.list_key_audit(key.client_id, limit=2).next_before
    assert [event.event for event in alice.list_audit().events] == told


def test_keys_have_a_log_of_requests(alice: ProfileClient, site: ProfileClient, key: KeyCreated) -> None:
    for _ in range(2):
        assert site.heartbeat().received
    with pytest.raises(e.InsufficientPermissions):
        site.businesses()
    page = alice.key_requests(key.client_id, days=2, limit=1)
    assert [day.requests for day in page.usage][1:] == [0]
    assert page.usage[0].client_errors == 1
    assert page.next_before
    everything = list(alice.iter_key_requests(key.client_id, limit=2))
    assert [one.path for one in everything][:3] == ["/api/v1/businesses"] + ["/api/v1/api-keys/heartbeat"] * 2
    failed = list(alice.iter_key_requests(key.client_id, errors_only=True))
    assert [(one.status, one.reason) for one in failed] == [(403, "user_token_required")]


def test_a_user_lists_their_businesses(alice: ProfileClient) -> None:
    assert {entry.id: entry.name for entry in alice.businesses().businesses} == {
        10: "Harbour Coffee",
        11: "Harbour Books",
    }


def test_the_error_of_an_invalid_key_names_its_fields(alice: ProfileClient) -> None:
    with pytest.raises(e.ValidationFailed) as caught:
        alice.create_key(name="", business_id=10, assigned_location_id=PIER)
    assert [problem["field"] for problem in caught.value.errors] == ["name"]
    assert caught.value.status == 400
    assert caught.value.request_id


def test_a_heartbeat_is_seen_in_the_connection_status(
    service: Service, alice: ProfileClient, key: KeyCreated, site: ProfileClient
) -> None:
    assert alice.connection_status(key.client_id).connection_status == "offline"
    assert site.heartbeat(plugin_version="2.4.1", detected_plugins=["cache"]).next_heartbeat_in == 3600
    service.clock.advance(hours=3)
    seen = alice.connection_status(key.client_id, history=True)
    assert (seen.connection_status, seen.plugin_version) == ("idle", "2.4.1")
    assert seen.history is not None
    assert [period.state for period in seen.history][-2:] == ["online", "idle"]
    assert alice.connection_status(key.client_id).history is None


def test_a_plugin_checks_its_credentials_without_a_token(service: Service, alice: ProfileClient) -> None:
    key = new_key(alice, primary_domain="harbour.example")
    with ProfileClient.anonymous(service.url) as nobody:
        good = nobody.validate_credentials(key.client_id, key.client_secret, "https://harbour.example")
        assert good.valid
        assert good.location.id == PIER
        wrong = nobody.validate_credentials(key.client_id, "no")
        assert not wrong.valid
        assert wrong.reason == "invalid_credentials"


def test_posts_are_listed_and_iterated(site: ProfileClient, recorded: Recorded) -> None:
    page = site.list_posts(PIER, page_size=5)
    assert len(page.localPosts) == 5
    assert site.list_posts(PIER, 5, page.nextPageToken).localPosts != page.localPosts
    recorded.calls.clear()
    names = [post.name for post in site.iter_posts("111", page_size=5)]
    assert len(names) == len(set(names)) == 12
    assert recorded.calls == ["GET /api/v1/posts"] * 3


def test_posts_are_made_changed_and_deleted(site: ProfileClient) -> None:
    made = site.create_post(PIER, {"summary": "Café ouvert", "topicType": "STANDARD"}, idempotency_key="a-1")
    assert made.state == "PROCESSING"
    assert site.create_post(PIER, {"summary": "Café ouvert", "topicType": "STANDARD"}, idempotency_key="a-1") == made
    with pytest.raises(e.IdempotencyKeyReused):
        site.create_post(PIER, {"summary": "Other"}, idempotency_key="a-1")
    assert site.update_post(PIER, made.name, {"summary": "Open"}).summary == "Open"
    ident = made.name.rpartition("/")[2]
    assert site.delete_post("111", made.name).deleted
    with pytest.raises(e.NotFound):
        site.delete_post(PIER, ident)


def test_posts_of_another_location_are_rejected(alice: ProfileClient) -> None:
    with pytest.raises(e.ValidationFailed):
        alice.delete_post(BOOKS, f"{PIER}/localPosts/11101")


def test_reviews_are_listed_iterated_and_read(site: ProfileClient, recorded: Recorded) -> None:
    page = site.list_reviews(PIER, page_size=2)
    assert (len(page.reviews), page.totalReviewCount, page.averageRating) == (2, 5, 3.8)
    recorded.calls.clear()
    found = list(site.iter_reviews("111", page_size=2, order_by="rating"))
    assert [review.starRating for review in found] == ["TWO", "THREE", "FOUR", "FIVE", "FIVE"]
    assert recorded.calls == ["GET /api/v1/reviews"] * 3
    assert site.review(PIER, found[0].name) == site.review(PIER, "111003") == found[0]


def test_reviews_are_replied_to(site: ProfileClient) -> None:
    said = site.reply(PIER, "111002", "Thank you, Owen.")
    assert (said.comment, said.reviewReplyState) == ("Thank you, Owen.", "PENDING")
    assert site.review(PIER, "111002").reviewReply == said
    assert site.delete_reply(PIER, f"{PIER}/reviews/111002").deleted
    with pytest.raises(e.NotFound):
        site.delete_reply(PIER, "111002")
    with pytest.raises(e.ValidationFailed):
        site.reply(PIER, f"{BOOKS}/reviews/114001", "Of another location")


def test_locations_are_listed_and_iterated(alice: ProfileClient) -> None:
    page = alice.list_locations(limit=2)
    assert (len(page.locations), page.pagination.totalCount, page.pagination.hasMore) == (2, 5, True)
    names = [entry.name for entry in alice.iter_locations(limit=2)]
    assert len(names) == len(set(names)) == 5
    assert [entry.name for entry in alice.iter_locations("unassigned")] == ["locations/119"]


@pytest.mark.parametrize("name", ["111", PIER])
def test_locations_are_read_by_either_name(alice: ProfileClient, name: str) -> None:
    found = alice.location(name)
    assert found.name == PIER
    assert found.phoneNumbers is not None
    assert found.phoneNumbers.primaryPhone


@pytest.mark.parametrize("name", ["..", "../businesses", "a/b", "%2e%2e", "", "é", "1?x=1"])
def test_calls_with_impossible_names_reach_no_other_route(alice: ProfileClient, name: str) -> None:
    for call in (alice.location, alice.compare, alice.revoke_key, alice.connection_status):
        with pytest.raises((e.NotFound, e.ValidationFailed, e.MethodNotAllowed)):
            call(name)


@pytest.mark.parametrize("name", ["..", "../x", "a/b"])
def test_the_name_of_a_location_stays_within_its_segment_of_the_path(name: str) -> None:
    url = httpx.Client(base_url="https://profiles.test").build_request("GET", profiles.location(name).path).url
    prefix, _, segment = url.raw_path.decode().rpartition("/")
    assert prefix == "/api/v1/external-business/locations"
    assert unquote(segment) == name


def test_locations_of_others_cannot_be_read(alice: ProfileClient, site: ProfileClient) -> None:
    with pytest.raises(e.NotFound):
        alice.location("locations/211")
    with pytest.raises(e.InsufficientPermissions) as caught:
        site.location("locations/112")
    assert not isinstance(caught.value, e.KeyDeactivated)


def test_sync_is_switched_only_for_a_verified_location(alice: ProfileClient) -> None:
    assert alice.set_sync(STATION, True).syncEnabled
    assert not alice.set_sync(STATION, False).syncEnabled
    with pytest.raises(e.LocationNotVerified) as caught:
        alice.set_sync(AIRPORT, True)
    assert caught.value.verification_state == "VERIFICATION_REQUESTED"
    assert not alice.refresh_verification(AIRPORT).isVerified


def test_a_repeated_sync_pushes_once_and_is_in_the_history(service: Service, site: ProfileClient) -> None:
    body = {"title": "Harbour Coffee by the Pier", "menu": "long"}
    first = site.sync(PIER, body, idempotency_key="s-1")
    assert (first.fieldsUpdated, first.fieldsFiltered) == (["title"], ["menu"])
    assert site.sync(PIER, body, idempotency_key="s-1") == first
    for number in range(4):
        service.clock.advance(minutes=1)
        site.sync(PIER, {"title": f"Harbour Coffee {number}"})
    entries = list(site.iter_sync_history(PIER, limit=2))
    assert entries == site.sync_history(PIER, limit=100).history
    assert first.syncId in [entry.syncId for entry in entries]


def test_the_history_is_complete_with_a_reduced_page_size() -> None:
    entry = {"syncId": "s", "timestamp": "t", "status": "success", "fieldsUpdated": 1, "direction": "push"}

    def answer(request: httpx.Request) -> httpx.Response:
        count = 100 if request.url.params["page"] == "1" else 3
        return httpx.Response(200, json={"status": "ok", "data": {"history": [entry] * count}})

    with ProfileClient.user("https://profiles.test", "token", transport=httpx.MockTransport(answer)) as alice:
        assert len(list(alice.iter_sync_history(PIER, limit=500))) == 103


def test_a_preview_shows_the_effect_of_a_sync(site: ProfileClient) -> None:
    body = {"title": "Harbour Coffee by the Pier", "websiteUri": None, "menu": "long"}
    told = site.preview_sync(PIER, body)
    assert (told.fieldsUpdated, told.fieldsFiltered) == (["title", "websiteUri"], ["menu"])
    assert [(field.field, field.reason) for field in told.reasons] == [("menu", "unknown")]
    assert site.compare(PIER).differences == []
    assert site.sync(PIER, body).fieldsUpdated == told.fieldsUpdated


def test_a_sync_is_rejected_where_it_is_switched_off(alice: ProfileClient) -> None:
    with pytest.raises(e.SyncDisabled):
        alice.sync(STATION, {"title": "Station"})


async def test_the_other_client_does_the_same(service: Service, key: KeyCreated, async_options: AsyncOptions) -> None:
    async with AsyncProfileClient.user(service.url, service.user_token(), **async_options) as alice:
        assert len((await alice.businesses()).businesses) == 2
        assert [entry.name async for entry in alice.iter_locations("all", limit=2)][-1]
    pair = key.client_id, key.client_secret
    async with AsyncProfileClient.service(service.url, *pair, ["business.read"], **async_options) as site:
        assert (await site.heartbeat()).received
        assert len([post async for post in site.iter_posts(PIER, 5)]) == 12
        assert (await site.compare(PIER)).differences == []
        with pytest.raises(e.InsufficientPermissions) as caught:
            await site.sync(PIER, {"title": "x"})
        assert caught.value.required == "business.write"
    async with AsyncProfileClient.anonymous(service.url, **async_options) as nobody:
        check: Any = await nobody.validate_credentials(*pair)
        assert check.valid
        with pytest.raises(e.InvalidToken) as refused:
            await nobody.location(PIER)
        assert refused.value.reason == "missing"


def test_plans_are_errors_of_their_own(service: Service) -> None:
    carol = ProfileClient.user(service.url, service.user_token(CAROL))
    with carol, pytest.raises(e.PlanRestriction):
        carol.create_post("locations/311", {"summary": "Hello"})
