"""The texts of the dashboard: states, problems and what to do about them."""

from profilesvc.dashboard.words import values
from profilesvc.domain.time import DAY, HOUR, MINUTE, iso
from profilesvc.language.formats import utc
from profilesvc.language.texts import N_, Words, _, ngettext
from profilesvc.services.insight.overview import KeyView, SiteView

STATES = Words(
    online=N_("Online"),
    idle=N_("Idle"),
    offline=N_("Offline"),
    refused=N_("Credentials rejected"),
    deactivated=N_("Deactivated"),
    none=N_("No key"),
)
DEACTIVATED = Words(
    billing_issue=N_("A payment failed or the subscription was cancelled. Pay the invoice to reactivate the key."),
    plan_downgrade=N_("Your plan does not include this location. Upgrade the plan, or free another location."),
    security_concern=N_("Deactivated because of suspicious activity. Ask the operator for a new secret."),
    user_requested=N_("You deactivated the key. You can reactivate it on the key's page."),
)
VERDICTS = Words(
    in_step=N_("In sync"),
    changed_here=N_("Changed here"),
    changed_at_provider=N_("Changed at the provider"),
    changed_in_both=N_("Changed in both"),
    filtered=N_("Never sent (plan or format)"),
)
EDITS = Words(
    pending=N_("The provider reviews an edit of this field."),
    overridden_by_provider=N_("The public sees a value that the provider has set itself."),
)
OPEN_STATES = values.OPEN_STATES
SERVED = Words(
    CUSTOMER_AND_BUSINESS_LOCATION=N_("At the address and in areas"),
    CUSTOMER_LOCATION_ONLY=N_("Only in areas, not at the address"),
)
POST_STATES = Words(
    LIVE=N_("Live"),
    PROCESSING=N_("In review"),
    REJECTED=N_("Rejected"),
    SCHEDULED=N_("Scheduled"),
    RECURRING=N_("Recurring"),
)
ACTORS = Words(user=N_("user"), key=N_("key"), operator=N_("operator"), client=N_("client"), service=N_("service"))
POST_CLASSES = {"LIVE": "online", "PROCESSING": "idle", "REJECTED": "offline", "SCHEDULED": "idle"}
KINDS = {
    "STANDARD": (N_("Update"), N_("News or a general update. It must have a text.")),
    "EVENT": (N_("Event"), N_("An event with a start and an end.")),
    "OFFER": (N_("Offer"), N_("A promotion, optionally with a coupon or terms.")),
    "ALERT": (N_("Alert"), N_("A special notice, such as changed opening hours in a pandemic.")),
}
ACTIONS = Words(
    BOOK=N_("Book"),
    ORDER=N_("Order"),
    SHOP=N_("Shop"),
    LEARN_MORE=N_("Learn more"),
    SIGN_UP=N_("Sign up"),
    CALL=N_("Call (the profile's phone)"),
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
        "connected": N_("The login is connected. Open it to choose the locations to import."),
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
SNOOZE_DAYS = {1: N_("a day"), 3: N_("three days"), 7: N_("a week"), 30: N_("30 days")}
CONNECTION_STATES = Words({"active": N_("Connected"), "reauth_required": N_("Ended by the provider")})
REFUSALS = Words(
    unavailable=N_("not available"),
    not_found=N_("the login does not see it"),
    plan=N_("imported into no business, because your plan includes no more locations"),
    other_business=N_("it stays in another business"),
)
PERMISSIONS = Words(
    {"business.read": N_("Read profiles, posts and reviews"), "business.write": N_("Change profiles, create posts")}
)
REASONS = Words(
    billing_issue=N_("billing issue"),
    plan_downgrade=N_("plan downgrade"),
    security_concern=N_("security concern"),
    user_requested=N_("user requested"),
    unknown=N_("unknown"),
    output_only=N_("output only"),
    immutable=N_("immutable"),
    plan=N_("plan"),
)
OUTCOMES = Words({"success": N_("Success"), "skipped": N_("Skipped"), "failed": N_("Failed")})
VERIFICATIONS = Words(
    VERIFIED=N_("verified"),
    SUSPENDED=N_("suspended"),
    DUPLICATE=N_("duplicate"),
    VERIFICATION_REQUESTED=N_("verification requested"),
    UNVERIFIED=N_("unverified"),
)


def ago(instant: int, now: int) -> str:
    """Return the time since `instant`, such as `3 hours ago`. Both arguments are milliseconds."""
    past = now - instant
    if past >= DAY:
        return ngettext("%(num)s day ago", "%(num)s days ago", past // DAY)
    if past >= HOUR:
        return ngettext("%(num)s hour ago", "%(num)s hours ago", past // HOUR)
    if past >= MINUTE:
        return ngettext("%(num)s minute ago", "%(num)s minutes ago", past // MINUTE)
    return _("just now")


def reason(name: str) -> str:
    return REASONS.get(name) or name.replace("_", " ")


def verification(state: str) -> str:
    return VERIFICATIONS.get(state) or state.lower().replace("_", " ")


def agent(browser: str, system: str) -> str:
    """Return the names of a browser and its system, such as `Firefox on Windows`."""
    if browser and system:
        return _("%(browser)s on %(system)s", browser=browser, system=system)
    return browser or system or _("Unknown browser")


def event(name: str) -> str:
    return EVENTS.get(name, name)


_REFUSED = ("secret_changed", "token_revoked", "secret_rejected")


def shown_state(key: KeyView) -> str:
    """Return `deactivated`, `refused` for credentials that are not valid any more, or the state of the connection."""
    if key.hint in _REFUSED:
        return "refused"
    return "deactivated" if key.hint == "deactivated" else key.state


def key_problem(key: KeyView) -> str | None:
    """Return the problem of a key and what to do about it, or None."""
    if key.row.hold_reason is not None:
        return DEACTIVATED[key.row.hold_reason]
    at = "" if key.hint_at is None else utc(iso(key.hint_at))
    if key.hint == "secret_changed":
        return _(
            "The key got a new secret on %(at)s, and the site has not used it yet. Enter it in the plugin's settings.",
            at=at,
        )
    if key.hint == "token_revoked":
        return _(
            "The site's token was rejected on %(at)s, because it was revoked. Enter the client id and the current "
            "secret in the plugin's settings.",
            at=at,
        )
    if key.hint == "secret_rejected":
        return _("A wrong secret was sent on %(at)s. Enter the secret again in the plugin's settings, whole.", at=at)
    if key.hint == "origin_not_allowed":
        return _(
            "A page of a domain that the key does not allow used it on %(at)s. If it is your domain, add it to the "
            "domains of the key.",
            at=at,
        )
    if key.hint == "never_connected":
        return _("Never connected. Paste the client id and secret into the plugin's settings.")
    if key.hint == "site_mismatch":
        return _(
            "Heartbeats come from another site (%(host)s), probably a clone or a staging copy. "
            "Create a separate key for it.",
            host=key.row.site_host,
        )
    if key.state == "offline":
        return _(
            "No heartbeat for a day or more. Check that the plugin is active and that the site's scheduled tasks run."
        )
    return None


def site_problems(site: SiteView) -> list[str]:
    """Return the problems of a location apart from its keys, and what to do about them."""
    problems = []
    if "unverified" in site.problems:
        state = verification(site.row.verification_state)
        problems.append(_("Not verified at the provider (%(state)s), so sync cannot run.", state=state))
    if not site.can_have_posts:
        problems.append(_("The provider does not accept posts for this location."))
    if site.drift:
        names = ", ".join(map(values.field, site.drift[:3])) + (", …" if len(site.drift) > 3 else "")
        problems.append(
            ngettext(
                "%(num)s field differs at the provider: %(fields)s.",
                "%(num)s fields differ at the provider: %(fields)s.",
                len(site.drift),
                fields=names,
            )
        )
    if site.is_overridden:
        problems.append(_("The provider changed this profile. Open the site to accept or reject the changes."))
    if site.rejected:
        text = ngettext(
            "%(num)s post rejected by the provider.", "%(num)s posts rejected by the provider.", site.rejected
        )
        problems.append(text)
    return problems
