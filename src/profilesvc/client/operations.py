"""One function per operation: what to send and how to read the answer; nothing here does I/O.

Both clients carry these functions as methods. Locations and posts go by id or by resource name. Every operation can
raise InvalidToken, InsufficientPermissions, KeyDeactivated, RateLimited, ServiceUnavailable, InternalError and
TransportFailed; what else it raises stands with it. A PATCH is not repeated after a lost answer: someone else's change
may lie between.
"""

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict, Unpack
from uuid import uuid4

from profilesvc.client.operation import PREFIX, Operation, Pages, location_id, segment
from profilesvc.contract.connection import (
    ConnectionStatus,
    CredentialsInvalid,
    CredentialsValid,
    HeartbeatReceived,
    StatePeriod,
)
from profilesvc.contract.envelope import Success
from profilesvc.contract.keys import BusinessList, KeyCreated, KeyList, KeyRevoked
from profilesvc.contract.locations import (
    LocationDetail,
    LocationEntry,
    LocationList,
    SyncSwitched,
    VerificationRefreshed,
)
from profilesvc.contract.posts import Post, PostDeleted, PostList
from profilesvc.contract.sync import MAX_LIMIT, SyncComparison, SyncHistory, SyncHistoryEntry, SyncResult
from profilesvc.contract.tokens import Token

TOKEN_PATH = f"{PREFIX}/auth/token"


class Connection(ConnectionStatus):
    """The connection status; `history` is None unless it was asked for."""

    history: list[StatePeriod] | None = None


class NewKey(TypedDict, total=False):
    """The members of a new key (API document, API key management)."""

    name: Required[str]
    business_id: Required[int]
    assigned_location_id: Required[str]
    primary_domain: str | None
    allowed_domains: list[str] | None
    permissions: list[str] | None
    expires_at: str | None


class Report(TypedDict, total=False):
    """The members of a heartbeat (API document, Heartbeat)."""

    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    detected_plugins: list[str] | None


def _idempotency(key: str | None) -> dict[str, str]:
    return {"X-Idempotency-Key": key or uuid4().hex}


def create_key(**members: Unpack[NewKey]) -> Operation[KeyCreated]:
    """Create an API key; its `client_secret` is in this answer only. Never repeated: a second key would be made.

    ValidationFailed, NotFound, Conflict, PlanRestriction.
    """
    return Operation("POST", f"{PREFIX}/developer/credentials", Success[KeyCreated], body=members)


def list_keys(include_revoked: bool = False) -> Operation[KeyList]:
    """The user's keys, newest first."""
    params = {"include_revoked": "true"} if include_revoked else {}
    return Operation("GET", f"{PREFIX}/developer/credentials", Success[KeyList], params, repeatable=True)


def revoke_key(client_id: str) -> Operation[KeyRevoked]:
    """Revoke a key for good; its tokens are worth nothing at once. NotFound.

    Not repeated after a lost answer, which tells when it happened: call again, NotFound then means that it is done.
    """
    return Operation("DELETE", f"{PREFIX}/developer/credentials/{segment(client_id)}", Success[KeyRevoked])


def connection_status(client_id: str, history: bool = False) -> Operation[Connection]:
    """Whether the site of a key is connected; with `history` its changes of the last 30 days. NotFound."""
    params = {"history": "true"} if history else {}
    path = f"{PREFIX}/api-keys/{segment(client_id)}/status"
    return Operation("GET", path, Success[Connection], params, repeatable=True)


def businesses() -> Operation[BusinessList]:
    """The user's businesses (D-23)."""
    return Operation("GET", f"{PREFIX}/businesses", Success[BusinessList], repeatable=True)


def heartbeat(**report: Unpack[Report]) -> Operation[HeartbeatReceived]:
    """Tell that the site is alive; what is not given keeps its last value. ValidationFailed."""
    return Operation("POST", f"{PREFIX}/api-keys/heartbeat", Success[HeartbeatReceived], body=report, repeatable=True)


def validate_credentials(
    client_id: str, client_secret: str, site_domain: str | None = None
) -> Operation[CredentialsValid | CredentialsInvalid]:
    """Check a pair, and the site it is used on, without getting a token; `valid` tells the two answers apart."""
    body = {"client_id": client_id, "client_secret": client_secret, "site_domain": site_domain}
    path, answer = f"{PREFIX}/auth/validate-service-credentials", Success[CredentialsValid | CredentialsInvalid]
    return Operation("POST", path, answer, body=body, repeatable=True, bearer=False)


def client_credentials(client_id: str, client_secret: str, permissions: list[str] | None = None) -> Operation[Token]:
    """Exchange a key's id and secret for tokens; no permissions means all that the key has."""
    body = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    wanted = {"permissions": permissions} if permissions else {}
    return Operation("POST", TOKEN_PATH, Success[Token], body={**body, **wanted}, repeatable=True, bearer=False)


def refresh(refresh_token: str) -> Operation[Token]:
    """Exchange a refresh token, once, for a new pair (D-10)."""
    body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return Operation("POST", TOKEN_PATH, Success[Token], body=body, bearer=False)


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
    """Create a post from the provider's LocalPost members; it starts as PROCESSING. Safe to repeat by its key.

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
    """Change the members that are given, None clears one; answers the whole post.

    ValidationFailed, NotFound, PlanRestriction, ProviderFailed.
    """
    return Operation("PATCH", _post_path(location, post), Success[Post], {"locationId": location}, changes)


def delete_post(location: str, post: str) -> Operation[PostDeleted]:
    """Delete a post; one that an attempt without an answer has already deleted is a success. NotFound."""
    params, done = {"locationId": location}, PostDeleted()
    return Operation("DELETE", _post_path(location, post), Success[PostDeleted], params, repeatable=True, gone=done)


def _post_path(location: str, post: str) -> str:
    """The name of a post of another location is sent whole, so that the service refuses it (D-20)."""
    own = f"locations/{location.removeprefix('locations/')}/localPosts/"
    return f"{PREFIX}/posts/{segment(post.removeprefix(own))}"


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
    """Push a part of the provider's Location members to the provider. Safe to repeat by its key.

    ValidationFailed, NotFound, PlanRestriction, LocationNotVerified, SyncDisabled, Conflict, ProviderFailed,
    IdempotencyKeyReused.
    """
    path, headers = f"{PREFIX}/sync/{location_id(location)}", _idempotency(idempotency_key)
    return Operation("POST", path, Success[SyncResult], body=profile, headers=headers, repeatable=True)


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
