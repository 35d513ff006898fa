"""The texts of alerts and webhooks: states, problems and what to do about them."""

from profilesvc.contract.alerts import AlertEntry
from profilesvc.contract.events import EventType
from profilesvc.contract.webhooks import DeliveryAttempt, DeliveryState, WebhookEntry
from profilesvc.language.texts import N_, Words, _, ngettext
from profilesvc.services.notify.alerts import Failure

WHEN = Words({"immediate": N_("At once"), "daily": N_("Daily"), "never": N_("Never")})
ALERT_STATES = {
    "active": ("online", N_("Active")),
    "failing": ("offline", N_("Failing")),
    "unconfirmed": ("idle", N_("Not confirmed")),
    "disabled": ("deactivated", N_("Disabled")),
}
FORMATS = {"standard": "Standard Webhooks", "slack": "Slack", "teams": "Microsoft Teams", "discord": "Discord"}
DELIVERY_STATES: dict[DeliveryState, tuple[str, str]] = {
    "pending": ("idle", N_("Waiting")),
    "delivered": ("online", N_("Delivered")),
    "failed": ("offline", N_("Failed")),
    "skipped": ("deactivated", N_("Not sent")),
}
_WEBHOOK_DISABLED = Words(
    owner=N_("You disabled the webhook."),
    operator=N_("The operator of this service disabled the webhook."),
    gone=N_("The endpoint responded that it no longer exists, so the webhook was disabled."),
    failing=N_("Each attempt failed for 5 days, so the webhook was disabled."),
)
_ALERT_DISABLED = Words(
    owner=N_("You switched the alerts to this address off."),
    unsubscribed=N_("The reader stopped the alerts by the link in a message."),
    rejected=N_("The mail server rejected the address."),
)


def alert_state(entry: AlertEntry, failure: Failure | None) -> str:
    """Return the state of an address: a name of ALERT_STATES."""
    return "failing" if entry.status == "active" and failure is not None else entry.status


def alert_summary(entry: AlertEntry) -> str:
    """Return what an address receives, in a line."""

    def kinds(names: list[EventType]) -> str:
        return ngettext("%(num)s kind of event", "%(num)s kinds of event", len(names))

    daily = _(
        "Sent daily at %(time)s (%(zone)s): %(kinds)s.",
        time=entry.digest_at,
        zone=entry.time_zone,
        kinds=kinds(entry.daily),
    )
    summary = [_("Sent at once: %(kinds)s.", kinds=kinds(entry.immediate)), daily]
    if entry.quiet_time is not None:
        summary.append(_("Quiet from %(start)s to %(end)s.", start=entry.quiet_time.from_, end=entry.quiet_time.to))
    if entry.reminders:
        summary.append(_("Reminders every day."))
    if muted := len(entry.muted_locations):
        summary.append(ngettext("%(num)s site is muted.", "%(num)s sites are muted.", muted))
    return " ".join(summary)


def alert_problem(entry: AlertEntry, failure: Failure | None) -> str | None:
    """Return why an address receives nothing and what to do about it, or None."""
    if entry.status == "disabled":
        reason = str(entry.disabled_reason)
        cause = _ALERT_DISABLED.get(reason) or _("The address is disabled.")
        return cause if reason in ("owner", "unsubscribed") else f"{cause}{_error(failure)}"
    if entry.status == "unconfirmed":
        return _(
            "A message with a link was sent. Nothing else is sent until someone opens the link and confirms it. "
            "The link is valid for three days."
        )
    if failure is not None:
        return _("Messages cannot be sent at present. Each one is repeated for three days.") + _error(failure)
    return None


def _error(failure: Failure | None) -> str:
    if failure is None or failure.error is None:
        return ""
    return " " + _("The error: %(error)s.", error=failure.error)


def webhook_state(entry: WebhookEntry) -> tuple[str, str]:
    """Return the class and the text of a webhook's state."""
    if not entry.enabled:
        return "deactivated", _("Disabled")
    return ("offline", _("Failing")) if entry.failing_since is not None else ("online", _("Enabled"))


def webhook_problem(entry: WebhookEntry) -> str | None:
    """Return why a webhook receives nothing and what to do about it, or None."""
    if not entry.enabled:
        missed = _("Events are not queued while it is disabled. After you enable it, send the missed ones below.")
        return f"{_WEBHOOK_DISABLED[str(entry.disabled_reason)]} {missed}"
    if entry.failing_since is not None:
        return _("The deliveries fail and are repeated. After 5 days the webhook is disabled. The errors are below.")
    return None


def attempt(tried: DeliveryAttempt) -> str:
    """Return how an attempt ended: the status of the response, or the error."""
    if tried.status is None:
        return (tried.error or _("not sent")).capitalize()
    status = _("Status %(number)s", number=tried.status)
    return f"{status}: {tried.error}" if tried.error == "redirects are not followed" else status
