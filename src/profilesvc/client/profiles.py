"""The operations on locations, posts, reviews and sync: what to send and how to read the response.

Locations, posts and reviews are named by id or resource name. A PATCH is not retried after a lost response, because
another change may have happened in between. `operations` lists the errors that every operation can raise.
"""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import uuid4

from profilesvc.client.operation import PREFIX, Operation, Pages, location_id, segment
from profilesvc.contract.envelope import Success
from profilesvc.contract.locations import (
    LocationDetail,
    LocationEntry,
    LocationList,
    SyncSwitched,
    VerificationRefreshed,
)
from profilesvc.contract.posts import Post, PostDeleted, PostList
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.contract.reviews import ReplyDeleted, ReviewDetail, ReviewList
from profilesvc.contract.sync import MAX_LIMIT, SyncComparison, SyncHistory, SyncHistoryEntry, SyncPreview, SyncResult

ReviewOrder = Literal["updateTime desc", "rating", "rating desc"]


def _idempotency(key: str | None) -> dict[str, str]:
    return {"X-Idempotency-Key": key or uuid4().hex}


def list_posts(location: str, page_size: int = 50, page_token: str = "") -> Operation[PostList]:
    """One page of a location's posts, newest first; at most 100. NotFound, ProviderFailed."""
    params = {"locationId": location, "pageSize": str(page_size), "pageToken": page_token}
    return Operation("GET", f"{PREFIX}/posts", Success[PostList], params, repeatable=True)


def iter_posts(location: str, page_size: int = 50, page_token: str = "") -> Pages[PostList, Post]:
    """All posts of a location, newest first, fetched page by page."""

    def rest(page: PostList) -> Pages[PostList, Post] | None:
        return iter_posts(location, page_size, page.nextPageToken) if page.nextPageToken else None

    return Pages(list_posts(location, page_size, page_token), lambda page: page.localPosts, rest)


def create_post(location: str, post: Mapping[str, Any], *, idempotency_key: str | None = None) -> Operation[Post]:
    """Create a post from the provider's LocalPost fields; it starts as PROCESSING. Its key makes a retry safe.

    ValidationFailed, NotFound, PlanRestriction, QuotaExceeded, ProviderFailed, IdempotencyKeyReused.
    """
    return Operation(
        "POST",
        f"{PREFIX}/posts",
        Success[Post],
        params={"locationId": location},
        body=post,
        headers=_idempotency(idempotency_key),
        repeatable=True,
    )


def update_post(location: str, post: str, changes: Mapping[str, Any]) -> Operation[Post]:
    """Change the given fields; None clears one. Return the whole post.

    ValidationFailed, NotFound, PlanRestriction, ProviderFailed.
    """
    return Operation("PATCH", _child_path(location, "posts", post), Success[Post], {"locationId": location}, changes)


def delete_post(location: str, post: str) -> Operation[PostDeleted]:
    """Delete a post; one that an attempt without an answer has already deleted is a success. NotFound."""
    params, done = {"locationId": location}, PostDeleted()
    return Operation(
        "DELETE", _child_path(location, "posts", post), Success[PostDeleted], params, repeatable=True, gone=done
    )


def _child_path(location: str, collection: Literal["posts", "reviews"], name: str) -> str:
    """Return the path of a post or review. A name of another location is sent whole, so that the service rejects it."""
    child = {"posts": "localPosts", "reviews": "reviews"}[collection]
    own = f"locations/{location.removeprefix('locations/')}/{child}/"
    return f"{PREFIX}/{collection}/{segment(name.removeprefix(own))}"


def list_reviews(
    location: str, page_size: int = 50, page_token: str = "", order_by: ReviewOrder = "updateTime desc"
) -> Operation[ReviewList]:
    """One page of a location's reviews; at most 50. NotFound, PlanRestriction, ProviderFailed."""
    page = {"pageSize": str(page_size), "pageToken": page_token, "orderBy": order_by}
    params = {"locationId": location, **page}
    return Operation("GET", f"{PREFIX}/reviews", Success[ReviewList], params, repeatable=True)


def iter_reviews(
    location: str, page_size: int = 50, page_token: str = "", order_by: ReviewOrder = "updateTime desc"
) -> Pages[ReviewList, ReviewDetail]:
    """All reviews of a location, fetched page by page."""

    def rest(page: ReviewList) -> Pages[ReviewList, ReviewDetail] | None:
        return iter_reviews(location, page_size, page.nextPageToken, order_by) if page.nextPageToken else None

    return Pages(list_reviews(location, page_size, page_token, order_by), lambda page: page.reviews, rest)


def review(location: str, review: str) -> Operation[ReviewDetail]:
    """One review, with its reply where it has one. NotFound, PlanRestriction, ProviderFailed."""
    path = _child_path(location, "reviews", review)
    return Operation("GET", path, Success[ReviewDetail], {"locationId": location}, repeatable=True)


def reply(location: str, review: str, comment: str) -> Operation[ReviewReply]:
    """Set or replace the reply to a review; public once its `reviewReplyState` is APPROVED.

    ValidationFailed, NotFound, PlanRestriction, ProviderFailed.
    """
    path, params, body = (
        f"{_child_path(location, 'reviews', review)}/reply",
        {"locationId": location},
        {"comment": comment},
    )
    return Operation("PUT", path, Success[ReviewReply], params, body, repeatable=True)


def delete_reply(location: str, review: str) -> Operation[ReplyDeleted]:
    """Delete a reply. A reply that an attempt without a response has already deleted is a success. NotFound."""
    path, params, done = f"{_child_path(location, 'reviews', review)}/reply", {"locationId": location}, ReplyDeleted()
    return Operation("DELETE", path, Success[ReplyDeleted], params, repeatable=True, gone=done)


def list_locations(
    kind: Literal["all", "unassigned"] = "all", page: int = 1, limit: int = 20
) -> Operation[LocationList]:
    """One page of the locations that the caller may see, by title; at most 100."""
    params = {"type": kind, "page": str(page), "limit": str(limit)}
    return Operation("GET", f"{PREFIX}/external-business/locations", Success[LocationList], params, repeatable=True)


def iter_locations(
    kind: Literal["all", "unassigned"] = "all", page: int = 1, limit: int = 100
) -> Pages[LocationList, LocationEntry]:
    """All locations that the caller may see, by title, fetched page by page."""

    def rest(found: LocationList) -> Pages[LocationList, LocationEntry] | None:
        return iter_locations(kind, page + 1, limit) if found.pagination.hasMore else None

    return Pages(list_locations(kind, page, limit), lambda found: found.locations, rest)


def location(location: str) -> Operation[LocationDetail]:
    """A location as the provider has it, at most a minute old. NotFound, ProviderFailed."""
    return Operation("GET", _location_path(location), Success[LocationDetail], repeatable=True)


def set_sync(location: str, enabled: bool) -> Operation[SyncSwitched]:
    """Switch sync on or off; on needs a verified location. NotFound, LocationNotVerified, PlanRestriction."""
    return Operation("PATCH", f"{_location_path(location)}/sync", Success[SyncSwitched], body={"syncEnabled": enabled})


def refresh_verification(location: str) -> Operation[VerificationRefreshed]:
    """Ask the provider whether the location is verified. NotFound, ProviderFailed."""
    path = f"{_location_path(location)}/refresh-verification"
    return Operation("POST", path, Success[VerificationRefreshed], repeatable=True)


def _location_path(location: str) -> str:
    return f"{PREFIX}/external-business/locations/{location_id(location)}"


def compare(location: str) -> Operation[SyncComparison]:
    """What was asked for, what the provider has now, what it last accepted; see `reading`. NotFound, ProviderFailed."""
    return Operation(
        "GET", f"{PREFIX}/sync/comparison/{location_id(location)}", Success[SyncComparison], repeatable=True
    )


def sync(location: str, profile: Mapping[str, Any], *, idempotency_key: str | None = None) -> Operation[SyncResult]:
    """Push some of the provider's Location fields to the provider. Its key makes a retry safe.

    ValidationFailed, NotFound, PlanRestriction, LocationNotVerified, SyncDisabled, Conflict, ProviderFailed,
    IdempotencyKeyReused.
    """
    path, headers = f"{PREFIX}/sync/{location_id(location)}", _idempotency(idempotency_key)
    return Operation("POST", path, Success[SyncResult], body=profile, headers=headers, repeatable=True)


def preview_sync(location: str, profile: Mapping[str, Any]) -> Operation[SyncPreview]:
    """Return what `sync` would do with the same profile now, field by field, without changing anything.

    ValidationFailed, NotFound, PlanRestriction, LocationNotVerified, SyncDisabled, ProviderFailed.
    """
    path, params = f"{PREFIX}/sync/{location_id(location)}", {"validateOnly": "true"}
    return Operation("POST", path, Success[SyncPreview], params, profile, repeatable=True)


def sync_history(location: str, page: int = 1, limit: int = 20) -> Operation[SyncHistory]:
    """One page of a location's syncs, newest first; at most 100. NotFound."""
    params = {"page": str(page), "limit": str(limit)}
    path = f"{PREFIX}/sync/history/{location_id(location)}"
    return Operation("GET", path, Success[SyncHistory], params, repeatable=True)


def iter_sync_history(location: str, page: int = 1, limit: int = 100) -> Pages[SyncHistory, SyncHistoryEntry]:
    """All syncs of a location, newest first, fetched page by page."""

    def rest(found: SyncHistory) -> Pages[SyncHistory, SyncHistoryEntry] | None:
        return iter_sync_history(location, page + 1, limit) if len(found.history) >= min(limit, MAX_LIMIT) else None

    return Pages(sync_history(location, page, limit), lambda found: found.history, rest)
