"""The texts of the dashboard: states, problems and what to do about them."""

from profilesvc.contract.alerts import AlertEntry
from profilesvc.contract.errors import IDEMPOTENCY_KEY_REUSED
from profilesvc.contract.events import EventType
from profilesvc.contract.webhooks import DeliveryAttempt, DeliveryState, WebhookEntry
from profilesvc.dashboard.values import field as field_name
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, HOUR, MINUTE
from profilesvc.language.texts import N_, Words, _
from profilesvc.services.alerts import Failure
from profilesvc.services.overview import KeyView, SiteView

STATES = Words(
    {
        "online": N_("Online"),
        "idle": N_("Idle"),
        "offline": N_("Offline"),
        "deactivated": N_("Deactivated"),
        "none": N_("No key"),
    }
)
DEACTIVATED = Words(
    {
        "billing_issue": N_(
            "A payment failed or the subscription was cancelled. Pay the invoice to reactivate the key."
        ),
        "plan_downgrade": N_("Your plan does not include this location. Upgrade the plan, or free another location."),
        "security_concern": N_("Deactivated because of suspicious activity. Ask the operator for a new secret."),
        "user_requested": N_("You deactivated the key. You can reactivate it on the key's page."),
    }
)
VERDICTS = Words(
    {
        "in_step": N_("In sync"),
        "changed_here": N_("Changed here"),
        "changed_at_provider": N_("Changed at the provider"),
        "changed_in_both": N_("Changed in both"),
        "filtered": N_("Never sent (plan or format)"),
    }
)
EDITS = Words(
    {
        "pending": N_("The provider reviews an edit of this field."),
        "overridden_by_provider": N_("The public sees a value that the provider has set itself."),
    }
)
OPEN_STATES = Words(
    {
        "OPEN": N_("Open"),
        "CLOSED_TEMPORARILY": N_("Closed temporarily"),
        "CLOSED_PERMANENTLY": N_("Closed permanently"),
    }
)
SERVED = Words(
    {
        "CUSTOMER_AND_BUSINESS_LOCATION": N_("At the address and in areas"),
        "CUSTOMER_LOCATION_ONLY": N_("Only in areas, not at the address"),
    }
)
POST_STATES = Words(
    {
        "LIVE": N_("Live"),
        "PROCESSING": N_("In review"),
        "REJECTED": N_("Rejected"),
        "SCHEDULED": N_("Scheduled"),
        "RECURRING": N_("Recurring"),
    }
)
POST_CLASSES = {"LIVE": "online", "PROCESSING": "idle", "REJECTED": "offline", "SCHEDULED": "idle"}
KINDS = {
    "STANDARD": ("Update", "News or a general update. It must have a text."),
    "EVENT": ("Event", "An event with a start and an end."),
    "OFFER": ("Offer", "A promotion, optionally with a coupon or terms."),
    "ALERT": ("Alert", "A special notice, such as changed opening hours in a pandemic."),
}
ACTIONS = Words(
    {
        "BOOK": N_("Book"),
        "ORDER": N_("Order"),
        "SHOP": N_("Shop"),
        "LEARN_MORE": N_("Learn more"),
        "SIGN_UP": N_("Sign up"),
        "CALL": N_("Call (the profile's phone)"),
    }
)
EVENTS = Words(
    {
        "key.created": N_("Key created"),
        "key.changed": N_("Key changed"),
        "key.rolled": N_("New secret"),
        "key.secret_ended": N_("Previous secret ended"),
        "key.deactivated": N_("Deactivated"),
        "key.reactivated": N_("Reactivated"),
        "key.revoked": N_("Revoked"),
        "key.expired": N_("Expired"),
        "key.badge": N_("Badge changed"),
        "alert.created": N_("Address for alerts added"),
        "alert.changed": N_("Address for alerts changed"),
        "alert.confirmed": N_("Address for alerts confirmed"),
        "alert.deleted": N_("Address for alerts deleted"),
        "alert.unsubscribed": N_("Address for alerts unsubscribed by its reader"),
        "webhook.created": N_("Webhook created"),
        "webhook.changed": N_("Webhook changed"),
        "webhook.rolled": N_("New secret of a webhook"),
        "webhook.deleted": N_("Webhook deleted"),
        "token.issued": N_("Token issued"),
        "token.refreshed": N_("Token renewed"),
        "token.refresh_replayed": N_("Token renewal repeated"),
        "token.refresh_reuse": N_("Old refresh token used again"),
        "auth.failed": N_("Wrong secret"),
        "user.login": N_("Signed in"),
        "user.signed_out": N_("Signed out everywhere"),
        "user.session_ended": N_("Session ended"),
        "user.exported": N_("Data downloaded"),
        "user.deletion_requested": N_("Deletion of the account requested"),
        "user.deleted": N_("Account deleted"),
        "provider.connected": N_("Login at the provider connected"),
        "provider.disconnected": N_("Login at the provider disconnected"),
        "provider.imported": N_("Locations imported"),
        "provider.update_accepted": N_("Change of the provider accepted"),
        "provider.update_rejected": N_("Change of the provider rejected"),
    }
)
KEY_STATUSES = Words({"active": N_("Active"), "deactivated": N_("Deactivated"), "revoked": N_("Revoked")})
KEY_CLASSES = {"active": "online", "deactivated": "deactivated", "revoked": "none"}
WHEN = Words({"immediate": N_("At once"), "daily": N_("Daily"), "never": N_("Never")})
ALERT_STATES = {
    "active": ("online", "Active"),
    "failing": ("offline", "Failing"),
    "unconfirmed": ("idle", "Not confirmed"),
    "disabled": ("deactivated", "Disabled"),
}
FORMATS = {
    "standard": "Standard Webhooks",
    "slack": "Slack",
    "teams": "Microsoft Teams",
    "discord": "Discord",
}
DELIVERY_STATES: dict[DeliveryState, tuple[str, str]] = {
    "pending": ("idle", "Waiting"),
    "delivered": ("online", "Delivered"),
    "failed": ("offline", "Failed"),
    "skipped": ("deactivated", "Not sent"),
}
_WEBHOOK_DISABLED = Words(
    {
        "owner": N_("You disabled the webhook."),
        "operator": N_("The operator of this service disabled the webhook."),
        "gone": N_("The endpoint responded that it no longer exists, so the webhook was disabled."),
        "failing": N_("Each attempt failed for 5 days, so the webhook was disabled."),
    }
)
# What a page reports after an action, by the `notice` in its address.
DONE = Words(
    {
        "key_changed": N_("The key is changed."),
        "secret_ended": N_("The previous secret has ended."),
        "posted": N_("The post was sent to the provider."),
        "changed": N_("The post is changed."),
        "unchanged": N_("Nothing was changed, so nothing was sent."),
        "deleted": N_("The post is deleted."),
        "key_exists": N_("This form has created this key before. If you did not copy its secret, give it a new one."),
        "drafted": N_("The draft is stored. It is not at the provider yet."),
        "scheduled": N_("The post is scheduled."),
        "draft-deleted": N_("The draft is deleted."),
        "replied": N_("The reply was sent to the provider."),
        "withdrawn": N_("The reply is withdrawn."),
        "on": N_("Sync is on."),
        "off": N_("Sync is off."),
        "synced": N_("The profile was sent to the provider."),
        "accepted": N_("The provider's values are yours now."),
        "rejected": N_("Your values were sent to the provider again."),
        "ours": N_("Your value was sent to the provider."),
        "theirs": N_("The provider's value is yours now."),
        "verified": N_("The verification was read from the provider."),
        "paused": N_("The key is deactivated."),
        "resumed": N_("The key is active again."),
        "revoked": N_("The key is revoked."),
        "template": N_("The template is saved."),
        "saved": N_("The settings are saved."),
        "removed": N_("It is deleted."),
        "connected": N_("The login is connected. Choose its locations next."),
        "disconnected": N_("The login is disconnected, and its data here is deleted."),
        "webhook-created": N_("The webhook is created."),
        "enabled": N_("The webhook is enabled."),
        "disabled": N_("The webhook is disabled."),
        "test-queued": N_("A test event is on its way."),
        "queued": N_("The event is on its way again."),
        "moved": N_("The clock moved on by 25 hours."),
        "badge-off": N_("The badge is off."),
        "session-ended": N_("The session is ended."),
        "sessions-ended": N_("All other sessions are ended."),
    }
)
SNOOZE_DAYS = {1: "a day", 3: "three days", 7: "a week", 30: "30 days"}
CONNECTION_STATES = Words({"active": N_("Connected"), "reauth_required": N_("Ended by the provider")})
REFUSALS = Words(
    {
        "unavailable": N_("not available"),
        "not_found": N_("the login does not see it"),
        "plan": N_("imported into no business, because your plan includes no more locations"),
        "other_business": N_("it stays in another business"),
    }
)
PERMISSIONS = Words(
    {"business.read": N_("Read profiles, posts and reviews"), "business.write": N_("Change profiles, create posts")}
)
# Fields of the API, with the input of the form that shows their problems and its label.
_INPUTS = {
    "name": ("name", "Name"),
    "email": ("email", "E-mail address"),
    "summary": ("summary", "Text"),
    "callToAction.actionType": ("action", "Button"),
    "callToAction.url": ("action_url", "Button link"),
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
    "media": ("photo", "Photo"),
    "site": ("site", "Sites"),
    "due_at": ("publish_date", "Publish at"),
    "zone": ("zone", "Time zone"),
    "languageCode": ("language", "Language"),
    "comment": ("comment", "Your reply"),
    "primary_domain": ("primary_domain", "Domain of the site"),
    "allowed_domains": ("allowed_domains", "Additional domains"),
    "permissions": ("permissions", "Permissions"),
    "assigned_location_id": ("location", "Location"),
    "business_id": ("business_id", "Business"),
    "expires_at": ("expires_on", "Valid until"),
    "overlap_seconds": ("overlap_seconds", "Old secret"),
    "address": ("address", "Address"),
    "digest_at": ("digest_at", "Daily message at"),
    "time_zone": ("time_zone", "Time zone"),
    "quiet_time": ("quiet_from", "Quiet time"),
    "quiet_time.from": ("quiet_from", "Quiet from"),
    "quiet_time.to": ("quiet_to", "Quiet until"),
    "url": ("url", "URL"),
    "description": ("description", "Description"),
    "format": ("format", "Format"),
    "types": ("types", "Events"),
    "since": ("since", "Since"),
    "grace_seconds": ("grace", "Grace"),
    "snoozed_until": ("days", "Snooze"),
    "sure": ("sure", "Confirmation"),
    "updateMask": ("", "Change"),
}
_UNITS = (("day", DAY), ("hour", HOUR), ("minute", MINUTE))


def input_of(path: str) -> tuple[str, str]:
    """Return the name and label of the input for a field of the API, or for the nearest field around it."""
    nearest = path
    while nearest and nearest not in _INPUTS:
        nearest = nearest.rpartition(".")[0]
    return _INPUTS.get(nearest, ("", path))


def problems_of(error: ServiceError) -> list[str]:
    """Return the problems of an error, each with the label of its field."""
    if error.kind is IDEMPOTENCY_KEY_REUSED:
        return [_("This form was sent to this site before, with other contents. For another post, start a new form.")]
    if "errors" not in error.details:
        provider_message = error.details.get("provider_message")
        return [error.message, *([f"The provider's message: {provider_message}"] if provider_message else [])]
    return [f"{input_of(one['field'])[1]}: {one['problem']}" for one in error.details["errors"]]


def ago(instant: int, now: int) -> str:
    """Return the time since `instant`, such as `3 hours ago`. Both arguments are milliseconds."""
    for name, size in _UNITS:
        if (count := (now - instant) // size) >= 1:
            return f"{count} {name}{'s' * (count > 1)} ago"
    return "just now"


def agent(browser: str, system: str) -> str:
    """Return the names of a browser and its system, such as `Firefox on Windows`."""
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Unknown browser"


def event(name: str) -> str:
    """Return the text of an audit event."""
    return EVENTS.get(name, name)


def shown_state(key: KeyView) -> str:
    """Return `deactivated`, or the state of the key's connection."""
    return "deactivated" if key.hint == "deactivated" else key.state


def key_problem(key: KeyView) -> str | None:
    """Return the problem of a key and what to do about it, or None."""
    if key.row.hold_reason is not None:
        return DEACTIVATED[key.row.hold_reason]
    if key.hint == "never_connected":
        return "Never connected. Paste the client id and secret into the plugin's settings."
    if key.hint == "site_mismatch":
        return (
            f"Heartbeats come from another site ({key.row.site_host}), probably a clone or a staging copy. "
            "Create a separate key for it."
        )
    if key.state == "offline":
        return (
            "No heartbeat for a day or more. Check that the plugin is active and that the site's scheduled tasks run."
        )
    return None


def alert_state(entry: AlertEntry, failure: Failure | None) -> str:
    """Return the state of an address: a name of ALERT_STATES."""
    return "failing" if entry.status == "active" and failure is not None else entry.status


def alert_summary(entry: AlertEntry) -> str:
    """Return what an address receives, in a line."""

    def kinds(names: list[EventType]) -> str:
        return f"{len(names)} {'kind' if len(names) == 1 else 'kinds'} of event"

    summary = f"Sent at once: {kinds(entry.immediate)}."
    summary += f" Sent daily at {entry.digest_at} ({entry.time_zone}): {kinds(entry.daily)}."
    if entry.quiet_time is not None:
        summary += f" Quiet from {entry.quiet_time.from_} to {entry.quiet_time.to}."
    if entry.reminders:
        summary += " Reminders every day."
    if muted := len(entry.muted_locations):
        summary += f" {muted} {'site is' if muted == 1 else 'sites are'} muted."
    return summary


def alert_problem(entry: AlertEntry, failure: Failure | None) -> str | None:
    """Return why an address receives nothing and what to do about it, or None."""
    reason = "" if failure is None or failure.error is None else f" The error: {failure.error}."
    if entry.status == "disabled":
        return {
            "owner": "You switched the alerts to this address off.",
            "unsubscribed": "The reader stopped the alerts by the link in a message.",
            "rejected": f"The mail server rejected the address.{reason}",
        }.get(str(entry.disabled_reason), f"The address is disabled.{reason}")
    if entry.status == "unconfirmed":
        return (
            "A message with a link was sent. Nothing else is sent until someone opens the link and confirms it. "
            "The link is valid for three days."
        )
    if failure is not None:
        return f"Messages cannot be sent at present. Each one is repeated for three days.{reason}"
    return None


def webhook_state(entry: WebhookEntry) -> tuple[str, str]:
    """Return the class and the text of a webhook's state."""
    if not entry.enabled:
        return "deactivated", "Disabled"
    return ("offline", "Failing") if entry.failing_since is not None else ("online", "Enabled")


def webhook_problem(entry: WebhookEntry) -> str | None:
    """Return why a webhook receives nothing and what to do about it, or None."""
    if not entry.enabled:
        missed = "Events are not queued while it is disabled. After you enable it, send the missed ones below."
        return f"{_WEBHOOK_DISABLED[str(entry.disabled_reason)]} {missed}"
    if entry.failing_since is not None:
        return "The deliveries fail and are repeated. After 5 days the webhook is disabled. The errors are below."
    return None


def attempt(tried: DeliveryAttempt) -> str:
    """Return how an attempt ended: the status of the response, or the error."""
    if tried.status is None:
        return (tried.error or "not sent").capitalize()
    return f"Status {tried.status}" + (f": {tried.error}" if tried.error == "redirects are not followed" else "")


def site_problems(site: SiteView) -> list[str]:
    """Return the problems of a location apart from its keys, and what to do about them."""
    problems = []
    if "unverified" in site.problems:
        state = site.row.verification_state.lower().replace("_", " ")
        problems.append(f"Not verified at the provider ({state}), so sync cannot run.")
    if site.drift:
        several = len(site.drift) > 1
        names = ", ".join(map(field_name, site.drift[:3])) + (", …" if len(site.drift) > 3 else "")
        problems.append(f"{len(site.drift)} field{'s' * several} differ{'s' * (not several)} at the provider: {names}.")
    if site.is_overridden:
        problems.append("The provider changed this profile. Open the site to accept or reject the changes.")
    if site.rejected:
        problems.append(f"{site.rejected} post{'s' * (site.rejected > 1)} rejected by the provider.")
    return problems
