"""What the dashboard says: states, reasons and what to do about them, in a person's words."""

from profilesvc.dashboard.values import field as field_name
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.world import DAY, HOUR, MINUTE
from profilesvc.services.overview import KeyView, SiteView

STATES = {
    "online": "Online",
    "idle": "Idle",
    "offline": "Offline",
    "deactivated": "Deactivated",
    "none": "No key",
}
DEACTIVATED = {
    "billing_issue": "A payment failed or the subscription was cancelled. Settle the invoice and the key comes back.",
    "plan_downgrade": "The location is beyond what your plan includes. Upgrade the plan, or free another location.",
    "security_concern": "Flagged for suspicious activity. Ask the operator; the key comes back with a new secret.",
    "user_requested": "You switched the key off. Reactivate it on the key's page when the site may go on.",
}
VERDICTS = {
    "in_step": "In step",
    "changed_here": "Changed here",
    "changed_at_provider": "Changed at the provider",
    "changed_in_both": "Changed in both",
    "filtered": "Never sent (plan or format)",
}
POST_STATES = {
    "LIVE": "Live",
    "PROCESSING": "In review",
    "REJECTED": "Rejected",
    "SCHEDULED": "Scheduled",
    "RECURRING": "Recurring",
}
KINDS = {
    "STANDARD": ("Update", "News or a general update; it needs a text."),
    "EVENT": ("Event", "Something with a beginning and an end."),
    "OFFER": ("Offer", "A promotion, with a coupon or terms if you like."),
    "ALERT": ("Alert", "A special notice, such as changed opening hours in a pandemic."),
}
ACTIONS = {
    "BOOK": "Book",
    "ORDER": "Order",
    "SHOP": "Shop",
    "LEARN_MORE": "Learn more",
    "SIGN_UP": "Sign up",
    "CALL": "Call (the profile's phone)",
}
EVENTS = {
    "key.created": "Key created",
    "key.rolled": "New secret",
    "key.deactivated": "Deactivated",
    "key.reactivated": "Reactivated",
    "key.revoked": "Revoked",
    "key.expired": "Expired",
    "key.badge": "Badge switched",
    "token.issued": "Token issued",
    "token.refreshed": "Token renewed",
    "token.refresh_replayed": "Renewal repeated",
    "token.refresh_reuse": "Old refresh token used again",
    "auth.failed": "Wrong secret",
    "user.login": "Signed in",
}
PERMISSIONS = {"business.read": "Read profiles, posts and reviews", "business.write": "Change profiles, create posts"}
# Where a problem of the API's field is shown: the name of the form's input, and its label.
_INPUTS = {
    "name": ("name", "Name"),
    "summary": ("summary", "Text"),
    "callToAction.actionType": ("action", "Button"),
    "callToAction.url": ("action_url", "Link of the button"),
    "event": ("title", "Title"),
    "event.title": ("title", "Title"),
    "event.schedule": ("start_date", "Start and end"),
    "event.schedule.startDate": ("start_date", "First day"),
    "event.schedule.startTime": ("start_time", "Start"),
    "event.schedule.endDate": ("end_date", "Last day"),
    "event.schedule.endTime": ("end_time", "End"),
    "offer.couponCode": ("coupon", "Coupon"),
    "offer.redeemOnlineUrl": ("redeem_url", "Link to redeem"),
    "offer.termsConditions": ("terms", "Terms"),
    "media": ("photo", "Address of a photo"),
    "comment": ("comment", "Your reply"),
    "primary_domain": ("primary_domain", "Domain of the site"),
    "allowed_domains": ("allowed_domains", "Further domains"),
    "permissions": ("permissions", "What the key may do"),
    "assigned_location_id": ("location", "Location"),
    "business_id": ("business_id", "Business"),
    "expires_at": ("expires_on", "Good until"),
    "overlap_seconds": ("overlap_seconds", "The old secret"),
    "sure": ("sure", "Confirmation"),
}
_UNITS = (("day", DAY), ("hour", HOUR), ("minute", MINUTE))


def input_of(path: str) -> tuple[str, str]:
    """The input that a field of the API is filled in by, and its label; of the nearest one that holds it."""
    near = path
    while near and near not in _INPUTS:
        near = near.rpartition(".")[0]
    return _INPUTS.get(near, ("", path))


def told(error: ServiceError) -> list[str]:
    """A refusal, problem by problem, each with the label of its field."""
    if "errors" not in error.details:
        said = error.details.get("provider_message")
        return [error.message, *([f"The provider says: {said}"] if said else [])]
    return [f"{input_of(one['field'])[1]}: {one['problem']}" for one in error.details["errors"]]


def ago(instant: int, now: int) -> str:
    """How long ago, roughly: `3 hours ago`. Both in milliseconds."""
    for name, size in _UNITS:
        if (count := (now - instant) // size) >= 1:
            return f"{count} {name}{'s' * (count > 1)} ago"
    return "just now"


def utc(text: str, until: int = len("2026-01-05T09:00")) -> str:
    """An RFC 3339 time for people: `2026-01-05 09:00 UTC`."""
    return f"{text[:until].replace('T', ' ')} UTC"


def exactly(text: str) -> str:
    """The same to the second, for what needs a name of its own."""
    return utc(text, len("2026-01-05T09:00:00"))


def event(name: str) -> str:
    """An event of the audit trail."""
    return EVENTS.get(name, name)


def shown_state(key: KeyView) -> str:
    """The state of a key's connection, or that it is deactivated."""
    return "deactivated" if key.hint == "deactivated" else key.state


def key_problem(key: KeyView) -> str | None:
    """What is wrong with a key and what to do about it; None when nothing is."""
    if key.hint == "deactivated":
        return DEACTIVATED[key.row.hold_reason]
    if key.hint == "never_connected":
        return "Never connected. Paste the client id and the secret into the plugin's settings."
    if key.hint == "site_mismatch":
        return (
            f"Heartbeats name another site ({key.row.site_host}): probably a clone or a staging copy. "
            "Give it a key of its own."
        )
    if key.state == "offline":
        return "No heartbeat for a day or more. See that the plugin is active and the site's scheduled tasks run."
    return None


def site_problems(site: SiteView) -> list[str]:
    """Return the problems of a location apart from its keys, and what to do about them."""
    found = []
    if "unverified" in site.problems:
        state = site.row.verification_state.lower().replace("_", " ")
        found.append(f"Not verified at the provider ({state}): sync cannot run before it is.")
    if site.drift:
        several = len(site.drift) > 1
        names = ", ".join(map(field_name, site.drift[:3])) + (", …" if len(site.drift) > 3 else "")
        found.append(f"{len(site.drift)} field{'s' * several} differ{'s' * (not several)} at the provider: {names}.")
    if site.rejected:
        found.append(f"{site.rejected} post{'s' * (site.rejected > 1)} rejected by the provider.")
    return found
