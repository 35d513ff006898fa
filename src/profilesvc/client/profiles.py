"""The operations on locations, posts, reviews and sync: what to send and how to read the response.

A location, post or review is an id or a resource name. A PATCH is not retried after a lost response, because another
change may have happened in between. `Raises:` does not repeat the errors that `operations` lists, nor ProviderFailed,
which every operation that calls the provider can raise.
"""

from collections.abc import Mapping
from typing import Literal
from uuid import uuid4

from profilesvc.client.operation import PREFIX, Operation, Pages, location_id, segment
from profilesvc.contract.common import MAX_LIMIT
from profilesvc.contract.envelope import Success
from profilesvc.contract.locations import (
    LocationDetail,
    LocationEntry,
    LocationKind,
    LocationList,
    SyncSwitched,
    VerificationRefreshed,
)
from profilesvc.contract.posts import Post, PostDeleted, PostList
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.contract.reviews import ReplyDeleted, ReviewDetail, ReviewList, ReviewOrder
from profilesvc.contract.sync import SyncComparison, SyncHistory, SyncHistoryEntry, SyncPreview, SyncResult
from profilesvc.contract.updates import GoogleUpdated, UpdateSettled


def _idempotency(key: str | None) -> dict[str, str]:
    return {"X-Idempotency-Key": key or uuid4().hex}


def list_posts(location: str, page_size: int = 50, page_token: str = "") -> Operation[PostList]:
    """List one page of a location's posts, newest first; at most 100."""
    params = {"locationId": location, "pageSize": str(page_size), "pageToken": page_token}
    return Operation("GET", f"{PREFIX}/posts", Success[PostList], params, repeatable=True)


def iter_posts(location: str, page_size: int = 50, page_token: str = "") -> Pages[PostList, Post]:
    """Iterate over all posts of a location, newest first, page by page."""

    def rest(page: PostList) -> Pages[PostList, Post] | None:
        return iter_posts(location, page_size, page.nextPageToken) if page.nextPageToken else None

    return Pages(list_posts(location, page_size, page_token), lambda page: page.localPosts, rest)


def create_post(location: str, post: Mapping[str, object], *, idempotency_key: str | None = None) -> Operation[Post]:
    """Create a post from the provider's LocalPost fields; it starts as PROCESSING. The key makes a retry safe.

    Raises:
        ValidationFailed, PlanRestriction, QuotaExceeded, IdempotencyKeyReused.
    """
    params, headers = {"locationId": location}, _idempotency(idempotency_key)
    return Operation("POST", f"{PREFIX}/posts", Success[Post], params, post, headers, repeatable=True)


def update_post(location: str, post: str, changes: Mapping[str, object]) -> Operation[Post]:
    """Change these fields of a post and return the whole post; None clears a field.

    Raises:
        ValidationFailed, PlanRestriction.
    """
    return Operation("PATCH", _child_path(location, "posts", post), Success[Post], {"locationId": location}, changes)


def delete_post(location: str, post: str) -> Operation[PostDeleted]:
    """Delete a post. If an attempt whose response was lost has already deleted it, that is a success."""
    path, params = _child_path(location, "posts", post), {"locationId": location}
    deleted = PostDeleted()
    return Operation("DELETE", path, Success[PostDeleted], params, repeatable=True, result_if_missing=deleted)


def _child_path(location: str, collection: Literal["posts", "reviews"], name: str) -> str:
    """Return the path of a post or review. A name of another location is sent whole, so that the service rejects it."""
    child = {"posts": "localPosts", "reviews": "reviews"}[collection]
    own = f"locations/{location.removeprefix('locations/')}/{child}/"
    return f"{PREFIX}/{collection}/{segment(name.removeprefix(own))}"


def list_reviews(
    location: str, page_size: int = 50, page_token: str = "", order_by: ReviewOrder = "updateTime desc"
) -> Operation[ReviewList]:
    """List one page of a location's reviews; at most 50.

    Raises:
        PlanRestriction.
    """
    page = {"pageSize": str(page_size), "pageToken": page_token, "orderBy": order_by}
    params = {"locationId": location, **page}
    return Operation("GET", f"{PREFIX}/reviews", Success[ReviewList], params, repeatable=True)


def iter_reviews(
    location: str, page_size: int = 50, page_token: str = "", order_by: ReviewOrder = "updateTime desc"
) -> Pages[ReviewList, ReviewDetail]:
    """Iterate over all reviews of a location, page by page."""

    def rest(page: ReviewList) -> Pages[ReviewList, ReviewDetail] | None:
        return iter_reviews(location, page_size, page.nextPageToken, order_by) if page.nextPageToken else None

    return Pages(list_reviews(location, page_size, page_token, order_by), lambda page: page.reviews, rest)


def review(location: str, review: str) -> Operation[ReviewDetail]:
    """Return a review, with its reply if it has one.

    Raises:
        PlanRestriction.
    """
    path = _child_path(location, "reviews", review)
    return Operation("GET", path, Success[ReviewDetail], {"locationId": location}, repeatable=True)


def reply(location: str, review: str, comment: str) -> Operation[ReviewReply]:
    """Set or replace the reply to a review. It is public once its `reviewReplyState` is APPROVED.

    Raises:
        ValidationFailed, PlanRestriction.
    """
    path, params = f"{_child_path(location, 'reviews', review)}/reply", {"locationId": location}
    body = {"comment": comment}
    return Operation("PUT", path, Success[ReviewReply], params, body, repeatable=True)


def delete_reply(location: str, review: str) -> Operation[ReplyDeleted]:
    """Delete a reply. If an attempt whose response was lost has already deleted it, that is a success."""
    path, params = f"{_child_path(location, 'reviews', review)}/reply", {"locationId": location}
    deleted = ReplyDeleted()
    return Operation("DELETE", path, Success[ReplyDeleted], params, repeatable=True, result_if_missing=deleted)


def list_locations(kind: LocationKind = "all", page: int = 1, limit: int = 20) -> Operation[LocationList]:
    """List one page of the caller's locations, by title; at most 100."""
    params = {"type": kind, "page": str(page), "limit": str(limit)}
    return Operation("GET", f"{PREFIX}/external-business/locations", Success[LocationList], params, repeatable=True)


def iter_locations(kind: LocationKind = "all", page: int = 1, limit: int = 100) -> Pages[LocationList, LocationEntry]:
    """Iterate over all of the caller's locations, by title, page by page."""

    def rest(listed: LocationList) -> Pages[LocationList, LocationEntry] | None:
        return iter_locations(kind, page + 1, limit) if listed.pagination.hasMore else None

    return Pages(list_locations(kind, page, limit), lambda listed: listed.locations, rest)


def location(location: str) -> Operation[LocationDetail]:
    """Return a location as the provider has it, at most a minute old."""
    return Operation("GET", _location_path(location), Success[LocationDetail], repeatable=True)


def set_sync(location: str, enabled: bool) -> Operation[SyncSwitched]:
    """Switch sync on or off. The location must be verified to switch it on.

    Raises:
        LocationNotVerified, PlanRestriction.
    """
    return Operation("PATCH", f"{_location_path(location)}/sync", Success[SyncSwitched], body={"syncEnabled": enabled})


def google_updated(location: str) -> Operation[GoogleUpdated]:
    """Read a location as consumers see it, and which fields the provider has changed or reviews."""
    return Operation("GET", f"{_location_path(location)}/google-updated", Success[GoogleUpdated], repeatable=True)


def accept_google_update(
    location: str, update_mask: str, *, idempotency_key: str | None = None
) -> Operation[UpdateSettled]:
    """Accept the provider's values of the fields in the mask, such as `title,phoneNumbers`. A retry is safe.

    Raises:
        ValidationFailed, PlanRestriction, LocationNotVerified, SyncDisabled, Conflict, IdempotencyKeyReused.
    """
    return _settle(location, "accept", update_mask, idempotency_key)


def reject_google_update(
    location: str, update_mask: str, *, idempotency_key: str | None = None
) -> Operation[UpdateSettled]:
    """Replace the provider's values of the fields in the mask by the owner's last ones. A retry is safe.

    Raises:
        ValidationFailed, PlanRestriction, LocationNotVerified, SyncDisabled, Conflict, IdempotencyKeyReused.
    """
    return _settle(location, "reject", update_mask, idempotency_key)


def _settle(location: str, decision: str, update_mask: str, key: str | None) -> Operation[UpdateSettled]:
    path, body = f"{_location_path(location)}/google-updated/{decision}", {"updateMask": update_mask}
    headers = _idempotency(key)
    return Operation("POST", path, Success[UpdateSettled], body=body, headers=headers, repeatable=True)


def refresh_verification(location: str) -> Operation[VerificationRefreshed]:
    """Ask the provider whether the location is verified."""
    path = f"{_location_path(location)}/refresh-verification"
    return Operation("POST", path, Success[VerificationRefreshed], repeatable=True)


def _location_path(location: str) -> str:
    return f"{PREFIX}/external-business/locations/{location_id(location)}"


def compare(location: str) -> Operation[SyncComparison]:
    """Compare the desired profile with the provider's; `verdicts` explains the result."""
    path = f"{PREFIX}/sync/comparison/{location_id(location)}"
    return Operation("GET", path, Success[SyncComparison], repeatable=True)


def sync(location: str, profile: Mapping[str, object], *, idempotency_key: str | None = None) -> Operation[SyncResult]:
    """Send fields of the provider's Location to the provider. The idempotency key makes a retry safe.

    Raises:
        ValidationFailed, PlanRestriction, LocationNotVerified, SyncDisabled, Conflict, IdempotencyKeyReused.
    """
    path, headers = f"{PREFIX}/sync/{location_id(location)}", _idempotency(idempotency_key)
    return Operation("POST", path, Success[SyncResult], body=profile, headers=headers, repeatable=True)


def preview_sync(location: str, profile: Mapping[str, object]) -> Operation[SyncPreview]:
    """Return what `sync` would do with the same profile now, field by field, without changing anything.

    The provider validates the values, unless `checked` of the result is `format`: then it could not be asked.

    Raises:
        ValidationFailed, PlanRestriction, LocationNotVerified, SyncDisabled, ProviderFailed.
    """
    path, params = f"{PREFIX}/sync/{location_id(location)}", {"validateOnly": "true"}
    return Operation("POST", path, Success[SyncPreview], params, profile, repeatable=True)


def sync_history(location: str, page: int = 1, limit: int = 20) -> Operation[SyncHistory]:
    """List one page of a location's syncs, newest first; at most 100."""
    params = {"page": str(page), "limit": str(limit)}
    path = f"{PREFIX}/sync/history/{location_id(location)}"
    return Operation("GET", path, Success[SyncHistory], params, repeatable=True)


def iter_sync_history(location: str, page: int = 1, limit: int = 100) -> Pages[SyncHistory, SyncHistoryEntry]:
    """Iterate over all syncs of a location, newest first, page by page."""

    def rest(syncs: SyncHistory) -> Pages[SyncHistory, SyncHistoryEntry] | None:
        return iter_sync_history(location, page + 1, limit) if len(syncs.history) >= min(limit, MAX_LIMIT) else None

    return Pages(sync_history(location, page, limit), lambda syncs: syncs.history, rest)
