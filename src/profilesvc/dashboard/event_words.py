"""The events of owners in words: the kinds that they choose, and what happened to a site."""

from profilesvc.contract.events import EventType, PublishedEvent
from profilesvc.dashboard.values import field as field_name

# The kinds of events that an owner can receive, as the forms show them.
GROUPS: dict[str, dict[EventType, str]] = {
    "Connection": {
        "connection.offline": "A site is offline",
        "connection.never_connected": "A site has never connected",
        "connection.site_mismatch": "A second site uses the credentials",
        "connection.idle": "A site has not reported for 2 hours",
        "connection.online": "A site is connected",
    },
    "Keys": {
        "key.expiring": "A key expires soon",
        "token.reuse_detected": "A used refresh token came back",
        "key.created": "A key was created",
        "key.rolled": "A secret was replaced",
        "key.deactivated": "A key was deactivated",
        "key.reactivated": "A key was reactivated",
        "key.revoked": "A key was revoked",
    },
    "Profile and sync": {
        "profile.drifted": "The provider's profile differs from the last sync",
        "sync.failed": "A sync failed",
        "sync.succeeded": "A sync succeeded",
        "location.verification_changed": "The verification changed",
        "location.sync_switched": "Sync was switched on or off",
    },
    "Posts and reviews": {
        "post.created": "A post was created here or by a key",
        "post.updated": "A post was changed here or by a key",
        "post.deleted": "A post was deleted here or by a key",
        "post.rejected": "A post was rejected",
        "post.deleted_at_provider": "A post was deleted at the provider",
        "post.published": "A post was published",
        "review.created": "There is a new review",
        "review.updated": "A review was changed",
        "review.replied": "A review was replied to",
        "review.reply_deleted": "A reply was deleted",
    },
    "Account": {
        "quota.warning": "The month's posts are almost used up",
        "webhook.disabled": "A webhook was disabled",
    },
    "Provider": {
        "provider_connection.reauth_required": "The provider has ended a login",
        "provider_connection.connected": "A login was connected",
        "provider_connection.disconnected": "A login was disconnected",
    },
}
_HAPPENINGS: dict[str, str] = {
    "connection.online": "The site is connected",
    "connection.idle": "The site has not reported for 2 hours",
    "connection.offline": "The site is offline",
    "connection.never_connected": "The site has never connected",
    "connection.site_mismatch": "A second site uses the credentials",
    "key.created": "{Name} was created",
    "key.rolled": "The secret of {name} was replaced",
    "key.deactivated": "{Name} was deactivated",
    "key.reactivated": "{Name} was reactivated",
    "key.revoked": "{Name} was revoked",
    "key.expiring": "{Name} expires on {end}",
    "token.reuse_detected": "A used refresh token of {name} came back, so its tokens were revoked",
    "location.verification_changed": "The verification at the provider changed: {state}",
    "location.sync_switched": "Sync was switched {switch}",
    "profile.drifted": "The provider's profile differs from the last sync: {differences}",
    "sync.succeeded": "A sync succeeded: {updated}",
    "sync.failed": "A sync failed: {error}",
    "post.created": "A post was created{post}",
    "post.updated": "A post was changed{post}",
    "post.deleted": "A post was deleted{post}",
    "post.published": "A post was published{post}",
    "post.rejected": "A post was rejected{post}",
    "post.deleted_at_provider": "A post was deleted at the provider{post}",
    "review.created": "There is a new review{stars}",
    "review.updated": "A review was changed{stars}",
    "review.replied": "A review was replied to{reply}",
    "review.reply_deleted": "The reply to a review was deleted",
    "provider_connection.reauth_required": "The provider has ended a login",
    "provider_connection.connected": "A login at the provider was connected",
    "provider_connection.disconnected": "A login at the provider was disconnected",
    "quota.warning": "{used} of {limit} posts of the month are used",
    "webhook.disabled": "A webhook was disabled",
}
_STARS = {"ONE": 1, "TWO": 2, "THREE": 3, "FOUR": 4, "FIVE": 5}


def kind_of(published: PublishedEvent | None) -> str:
    """Return the kind of an event that was sent; without one it was a test."""
    if published is None:
        return "Test"
    return next((kinds[published.type] for kinds in GROUPS.values() if published.type in kinds), published.type)


def key_of(published: PublishedEvent) -> str | None:
    """Return the client id of the key of an event, if it has one."""
    data = published.data
    client_id: str | None = data.get("client_id") or data.get("key", {}).get("client_id")
    return client_id


def silent_since(published: PublishedEvent) -> str | None:
    """Return the time of the last heartbeat of a site that is offline."""
    if published.type != "connection.offline":
        return None
    last: str | None = published.data.get("connection", {}).get("last_heartbeat_at")
    return last


def happening(published: PublishedEvent) -> str:
    """Return an event of a site as a sentence, for the page of the site."""
    data, kind = published.data, published.type
    stars = _STARS.get(str(data.get("review", {}).get("starRating")), 0)
    name = f"the key “{data.get('key', {}).get('name', '')}”"
    fields = {
        "name": name,
        "Name": name[:1].upper() + name[1:],
        "end": str(data.get("key", {}).get("expires_at"))[:10],
        "state": str(data.get("verification_state", "")).lower().replace("_", " "),
        "switch": "on" if data.get("sync_enabled") else "off",
        "differences": _list_of([str(each.get("field")) for each in data.get("differences", [])]),
        "updated": _list_of(data.get("fields_updated", [])),
        "error": str(data.get("error")),
        "stars": f": {stars} star{'s' * (stars > 1)}" if stars else "",
        "used": str(data.get("used", "")),
        "limit": str(data.get("limit", "")),
        "post": _quoted(data.get("post", {}).get("summary", "")),
        "reply": _quoted((data.get("reply") or {}).get("comment", "")),
    }
    return _HAPPENINGS[kind].format_map(fields) if kind in _HAPPENINGS else kind


def _quoted(text: object) -> str:
    line = " ".join(str(text).split())
    return f": “{line[:80]}{'…' if len(line) > 80 else ''}”" if line else ""


def _list_of(paths: list[str]) -> str:
    """Return the labels of fields, the first five of many."""
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return (", ".join(map(field_name, paths[:5])) or "no field changed") + more
