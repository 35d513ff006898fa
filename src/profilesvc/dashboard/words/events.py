"""The events of owners in words: the kinds that they choose, and what happened to a site."""

from collections.abc import Container

from profilesvc.contract.events import EventType, PublishedEvent
from profilesvc.dashboard.words.values import field as field_name
from profilesvc.dashboard.words.words import verification
from profilesvc.language import formats
from profilesvc.language.texts import N_, _, gettext, ngettext

# The kinds of events that an owner can receive, as the forms show them.
GROUPS: dict[str, dict[EventType, str]] = {
    N_("Connection"): {
        "connection.offline": N_("A site is offline"),
        "connection.never_connected": N_("A site has never connected"),
        "connection.site_mismatch": N_("A second site uses the credentials"),
        "connection.idle": N_("A site has not reported for 2 hours"),
        "connection.online": N_("A site is connected"),
    },
    N_("Keys"): {
        "key.expiring": N_("A key expires soon"),
        "token.reuse_detected": N_("A used refresh token came back"),
        "key.created": N_("A key was created"),
        "key.rolled": N_("A secret was replaced"),
        "key.deactivated": N_("A key was deactivated"),
        "key.reactivated": N_("A key was reactivated"),
        "key.revoked": N_("A key was revoked"),
    },
    N_("Profile and sync"): {
        "profile.drifted": N_("The provider's profile differs from the last sync"),
        "sync.failed": N_("A sync failed"),
        "sync.succeeded": N_("A sync succeeded"),
        "location.verification_changed": N_("The verification changed"),
        "location.sync_switched": N_("Sync was switched on or off"),
    },
    N_("Posts and reviews"): {
        "post.created": N_("A post was created here or by a key"),
        "post.updated": N_("A post was changed here or by a key"),
        "post.deleted": N_("A post was deleted here or by a key"),
        "post.rejected": N_("A post was rejected"),
        "post.deleted_at_provider": N_("A post was deleted at the provider"),
        "post.published": N_("A post was published"),
        "review.created": N_("There is a new review"),
        "review.updated": N_("A review was changed"),
        "review.replied": N_("A review was replied to"),
        "review.reply_deleted": N_("A reply was deleted"),
    },
    N_("Account"): {
        "quota.warning": N_("The month's posts are almost used up"),
        "webhook.disabled": N_("A webhook was disabled"),
    },
    N_("Provider"): {
        "provider_connection.reauth_required": N_("The provider has ended a login"),
        "provider_connection.connected": N_("A login was connected"),
        "provider_connection.disconnected": N_("A login was disconnected"),
    },
}
KINDS: dict[str, str] = {kind: text for kinds in GROUPS.values() for kind, text in kinds.items()}
_HAPPENINGS: dict[str, str] = {
    "connection.online": N_("The site is connected"),
    "connection.idle": N_("The site has not reported for 2 hours"),
    "connection.offline": N_("The site is offline"),
    "connection.never_connected": N_("The site has never connected"),
    "connection.site_mismatch": N_("A second site uses the credentials"),
    "key.created": N_("%(Name)s was created"),
    "key.rolled": N_("The secret of %(name)s was replaced"),
    "key.deactivated": N_("%(Name)s was deactivated"),
    "key.reactivated": N_("%(Name)s was reactivated"),
    "key.revoked": N_("%(Name)s was revoked"),
    "key.expiring": N_("%(Name)s expires on %(end)s"),
    "token.reuse_detected": N_("A used refresh token of %(name)s came back, so its tokens were revoked"),
    "location.verification_changed": N_("The verification at the provider changed: %(state)s"),
    "location.sync_switched": N_("Sync was switched %(switch)s"),
    "profile.drifted": N_("The provider's profile differs from the last sync: %(differences)s"),
    "sync.succeeded": N_("A sync succeeded: %(updated)s"),
    "sync.failed": N_("A sync failed: %(error)s"),
    "post.created": N_("A post was created%(post)s"),
    "post.updated": N_("A post was changed%(post)s"),
    "post.deleted": N_("A post was deleted%(post)s"),
    "post.published": N_("A post was published%(post)s"),
    "post.rejected": N_("A post was rejected%(post)s"),
    "post.deleted_at_provider": N_("A post was deleted at the provider%(post)s"),
    "review.created": N_("There is a new review%(stars)s"),
    "review.updated": N_("A review was changed%(stars)s"),
    "review.replied": N_("A review was replied to%(reply)s"),
    "review.reply_deleted": N_("The reply to a review was deleted"),
    "provider_connection.reauth_required": N_("The provider has ended a login"),
    "provider_connection.connected": N_("A login at the provider was connected"),
    "provider_connection.disconnected": N_("A login at the provider was disconnected"),
    "quota.warning": N_("%(used)s of %(limit)s posts of the month are used"),
    "webhook.disabled": N_("A webhook was disabled"),
}
_STARS = {"ONE": 1, "TWO": 2, "THREE": 3, "FOUR": 4, "FIVE": 5}


def kind_of(published: PublishedEvent | None) -> str:
    """Return the kind of an event that was sent; without one it was a test."""
    return _("Test") if published is None else gettext(KINDS.get(published.type, published.type))


def kinds(types: Container[str]) -> str:
    """Return the kinds of events in the order of the forms; without any, all are meant."""
    return ", ".join(gettext(text) for kind, text in KINDS.items() if kind in types) or _("All")


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
    key, end = data.get("key", {}).get("name", ""), data.get("key", {}).get("expires_at")
    fields = {
        "name": _("the key “%(name)s”", name=key),
        "Name": _("The key “%(name)s”", name=key),
        "end": formats.day(str(end)) if end else str(end),
        "state": verification(str(data.get("verification_state", ""))),
        "switch": _("on") if data.get("sync_enabled") else _("off"),
        "differences": _list_of([str(each.get("field")) for each in data.get("differences", [])]),
        "updated": _list_of(data.get("fields_updated", [])),
        "error": str(data.get("error")),
        "stars": ngettext(": %(num)s star", ": %(num)s stars", stars) if stars else "",
        "used": str(data.get("used", "")),
        "limit": str(data.get("limit", "")),
        "post": _quoted(data.get("post", {}).get("summary", "")),
        "reply": _quoted((data.get("reply") or {}).get("comment", "")),
    }
    return _(_HAPPENINGS[kind], **fields) if kind in _HAPPENINGS else kind


def _quoted(text: object) -> str:
    line = " ".join(str(text).split())
    return _(": “%(text)s”", text=f"{line[:80]}{'…' if len(line) > 80 else ''}") if line else ""


def _list_of(paths: list[str]) -> str:
    """Return the labels of fields, the first five of many."""
    more = _(" and %(number)s more", number=len(paths) - 5) if len(paths) > 5 else ""
    return (", ".join(map(field_name, paths[:5])) or _("no field changed")) + more
