"""The requests of a key in words: what the site did, what went wrong, and what its owner can do about it."""

from typing import NamedTuple

from profilesvc.contract.requests import LoggedRequest
from profilesvc.dashboard.words import words
from profilesvc.dashboard.words.values import field as field_name
from profilesvc.language.texts import N_, Words, _

_API = "/api/v1"
# What a request is for, by the start of its path; the longest start that fits decides.
_OPERATIONS = Words(
    {
        "/": N_("Another request"),
        "/oauth2/token": N_("Token"),
        "/oauth2/introspect": N_("Check of a token"),
        "/oauth2/revoke": N_("End of a token"),
        f"{_API}/auth/token": N_("Token"),
        f"{_API}/auth/validate": N_("Check of the credentials"),
        f"{_API}/api-keys/heartbeat": N_("Heartbeat"),
        f"{_API}/external-business/locations": N_("Profile"),
        f"{_API}/posts": N_("Posts"),
        f"{_API}/reviews": N_("Reviews"),
        f"{_API}/sync": N_("Sync"),
    }
)


class Explained(NamedTuple):
    """The words for a failure: the event, and the advice."""

    what: str
    do: str


_NEW_SECRET = N_("Copy the client id and the client secret into the plugin again, or create a new secret on this page.")
_AUTHOR = N_("Update the plugin. If it happens again, send this line to the author of the plugin.")
_BY_ITSELF = N_("Nothing to do: the plugin tries again by itself. If it lasts for hours, ask the operator.")
_NO_CREDENTIALS = Explained(N_("The secret or the token was wrong."), _NEW_SECRET)
_INVALID = Explained(N_("The plugin sent something that is not valid."), _AUTHOR)
_UNKNOWN = Explained(N_("The request was rejected."), _AUTHOR)
_UNAVAILABLE = Explained(N_("This service was not available for a moment."), _BY_ITSELF)
_TOO_MANY = Explained(
    N_("The site sent too many requests."),
    N_("Nothing to do if it happens seldom. Otherwise look for a second copy of the site with the same key."),
)
_DEACTIVATED = N_("The key was deactivated.")
# By the code of the error, or by the code and the reason in its details.
_EXPLAINED: dict[str | tuple[str, str], Explained] = {
    "AUTH_INVALID_TOKEN": _NO_CREDENTIALS,
    "invalid_client": _NO_CREDENTIALS,
    "invalid_token": _NO_CREDENTIALS,
    "invalid_grant": Explained(N_("The token for renewal has ended or was used before."), _NEW_SECRET),
    ("AUTH_INVALID_TOKEN", "expired"): Explained(
        N_("The token of the site had expired."),
        N_("Nothing to do: the plugin gets a new one. If it happens all day, update the plugin."),
    ),
    ("AUTH_INVALID_TOKEN", "revoked"): Explained(
        N_("The token has ended, because the key was revoked or its secret replaced."),
        N_("Enter the new secret in the plugin, or create a new key."),
    ),
    ("AUTH_INSUFFICIENT_PERMISSIONS", "permission_missing"): Explained(
        N_("The key does not have the permission for this."),
        N_("Create a key that has the permission, and enter it in the plugin."),
    ),
    ("AUTH_INSUFFICIENT_PERMISSIONS", "permissions_not_allowed"): Explained(
        N_("The plugin asked for permissions that the key does not have."),
        N_("Create a key that has the permissions, and enter it in the plugin."),
    ),
    ("AUTH_INSUFFICIENT_PERMISSIONS", "other_location"): Explained(
        N_("The plugin asked for another location than that of the key."),
        N_("Create a key for that location, and enter it in the plugin."),
    ),
    ("AUTH_INSUFFICIENT_PERMISSIONS", "origin_not_allowed"): Explained(
        N_("A page of a domain that the key does not allow used the key."),
        N_("If it is your domain, add it to the domains of the key."),
    ),
    "AUTH_INSUFFICIENT_PERMISSIONS": Explained(N_("The key may not do this."), _AUTHOR),
    "PLAN_RESTRICTION": Explained(
        N_("Your plan does not include this."), N_("Choose a plan that includes it, or switch it off in the plugin.")
    ),
    "NOT_FOUND": Explained(
        N_("What the plugin asked for does not exist, or no longer."),
        N_("Nothing to do if it happens once. Otherwise update the plugin."),
    ),
    "VALIDATION_ERROR": _INVALID,
    "invalid_request": _INVALID,
    "PAYLOAD_TOO_LARGE": Explained(N_("The plugin sent more than is accepted at a time."), _AUTHOR),
    "LOCATION_NOT_VERIFIED": Explained(
        N_("The location is not verified at the provider."), N_("Verify it there, then sync again.")
    ),
    "SYNC_DISABLED": Explained(
        N_("Sync is switched off for this location."), N_("Switch it on on the page of the site.")
    ),
    "CONFLICT": Explained(N_("Another change was under way at the same time."), _BY_ITSELF),
    "IDEMPOTENCY_IN_PROGRESS": Explained(N_("The same request was still under way."), _BY_ITSELF),
    "QUOTA_EXCEEDED": Explained(
        N_("The posts of this month are used up."), N_("Wait for the next month, or choose a larger plan.")
    ),
    "RATE_LIMITED": _TOO_MANY,
    "temporarily_unavailable": _UNAVAILABLE,
    "SERVICE_UNAVAILABLE": _UNAVAILABLE,
    "REQUEST_TIMEOUT": Explained(N_("The request did not arrive in time."), _BY_ITSELF),
    ("PROVIDER_API_ERROR", "rejected"): Explained(
        N_("The provider did not accept the change."), N_("Correct the content, then send it again.")
    ),
    ("PROVIDER_API_ERROR", "reauth_required"): Explained(
        N_("The provider has ended your login."), N_("Connect it again on the page of your connections.")
    ),
    "PROVIDER_API_ERROR": Explained(N_("The provider was not available."), _BY_ITSELF),
    "INTERNAL_ERROR": Explained(
        N_("A defect of this service."), N_("Send this line to the operator, with the request id.")
    ),
}


def operation(one: LoggedRequest) -> str:
    fitting = [start for start in _OPERATIONS if one.path.startswith(start)]
    return _OPERATIONS[max(fitting, key=len, default="/")]


def explained(one: LoggedRequest) -> Explained:
    """Return what went wrong with a request, and what to do about it."""
    code, reason = one.code or "", one.reason or ""
    if reason in words.DEACTIVATED:
        return Explained(_(_DEACTIVATED), words.DEACTIVATED[reason])
    entry = _EXPLAINED.get((code, reason)) or _EXPLAINED.get(code, _UNKNOWN)
    what = _(entry.what)
    if one.field:
        what += " " + _("The field: %(name)s.", name=field_name(one.field))
    return Explained(what, _(entry.do))


def guide(one: LoggedRequest) -> str:
    """Return the path of what the documentation has about the error of a request."""
    code = one.code or ""
    return f"/guides/docs/errors.html#{code.lower()}" if code.isupper() else "/guides/docs/oauth.html#errors"
