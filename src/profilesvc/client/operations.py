"""The operations on keys, connections and tokens: what to send and how to read the response, without I/O.

Both clients have these functions, and those of `profiles`, as methods. Every operation can raise InvalidToken,
InsufficientPermissions, KeyDeactivated, RateLimited, ServiceUnavailable, InternalError and TransportFailed. If a key or
location does not exist, or the caller has no access to it, it raises NotFound. `Raises:` lists the other errors.
"""

from collections.abc import Sequence
from typing import Required, TypedDict, Unpack

from profilesvc.client.operation import PREFIX, Operation, Pages, segment
from profilesvc.contract.audit import AuditEntry, AuditTrail
from profilesvc.contract.connection import (
    ConnectionStatus,
    CredentialsInvalid,
    CredentialsValid,
    HeartbeatReceived,
    StatePeriod,
)
from profilesvc.contract.envelope import Success
from profilesvc.contract.events import EventList, EventType, PublishedEvent
from profilesvc.contract.keys import BusinessList, KeyCreated, KeyDetails, KeyList, KeyRevoked, KeyRolled, KeyStanding
from profilesvc.contract.requests import KeyRequests, LoggedRequest
from profilesvc.contract.tokens import Token, UserToken

TOKEN_PATH = f"{PREFIX}/auth/token"
_KEYS = f"{PREFIX}/developer/credentials"


class Connection(ConnectionStatus):
    """The connection status; `history` is None unless it was requested."""

    history: list[StatePeriod] | None = None


class NewKey(TypedDict, total=False):
    """The fields of a new key (docs/api-contract.md#create_key)."""

    name: Required[str]
    business_id: Required[int]
    assigned_location_id: Required[str]
    primary_domain: str | None
    allowed_domains: list[str] | None
    permissions: list[str] | None
    expires_at: str | None


class KeyFields(TypedDict, total=False):
    """The fields of a key that can be changed (docs/api-contract.md#change_key)."""

    name: str
    primary_domain: str | None
    allowed_domains: list[str] | None


class Report(TypedDict, total=False):
    """The fields of a heartbeat (docs/api-contract.md#send_heartbeat)."""

    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    detected_plugins: list[str] | None


def _key(client_id: str, action: str = "") -> str:
    return f"{_KEYS}/{segment(client_id)}{action}"


def create_key(**fields: Unpack[NewKey]) -> Operation[KeyCreated]:
    """Create an API key. Its `client_secret` is in this response only.

    There is no retry after a lost response, because it would create a second key.

    Raises:
        ValidationFailed: A field is invalid.
        Conflict: The location belongs to another business, or it has too many keys.
        PlanRestriction: The plan does not include another location.
    """
    return Operation("POST", _KEYS, Success[KeyCreated], body=fields)


def list_keys(include_revoked: bool = False, limit: int | None = None, before: str | None = None) -> Operation[KeyList]:
    """List the user's keys, newest first. A page has at most 100 keys; `before=page.next_before` gets the next one."""
    params = {"include_revoked": "true"} if include_revoked else {}
    params |= {} if limit is None else {"limit": str(limit)}
    params |= {} if before is None else {"before": before}
    return Operation("GET", _KEYS, Success[KeyList], params, repeatable=True)


def get_key(client_id: str) -> Operation[KeyDetails]:
    """Read a key, live or not, with its domains and the end of its previous secret."""
    return Operation("GET", _key(client_id), Success[KeyDetails], repeatable=True)


def change_key(client_id: str, **fields: Unpack[KeyFields]) -> Operation[KeyDetails]:
    """Change the name or the domains of a key; the other fields keep their values.

    Raises:
        ValidationFailed: A field is invalid, or there is none.
    """
    return Operation("PATCH", _key(client_id), Success[KeyDetails], body=fields, repeatable=True)


def end_previous_secret(client_id: str) -> Operation[KeyDetails]:
    """End the secret before the last roll now. Tokens stay valid."""
    return Operation("POST", _key(client_id, "/end-previous-secret"), Success[KeyDetails], repeatable=True)


def revoke_key(client_id: str) -> Operation[KeyRevoked]:
    """Revoke a key permanently; its tokens end immediately.

    There is no retry after a lost response, because only that response has the time of the revocation. If you call
    again, NotFound means that the key is revoked.
    """
    return Operation("DELETE", _key(client_id), Success[KeyRevoked])


def roll_key(client_id: str, overlap_seconds: int = 86_400) -> Operation[KeyRolled]:
    """Give a key a new secret, which is in this response only. The old secret stays valid for the overlap.

    Use an overlap of 0 if a secret leaked: all older secrets and all tokens end immediately. There is no retry.

    Raises:
        Conflict: The key is deactivated or already has two valid secrets.
    """
    return Operation("POST", _key(client_id, "/roll"), Success[KeyRolled], body={"overlap_seconds": overlap_seconds})


def deactivate_key(client_id: str) -> Operation[KeyStanding]:
    """Deactivate a key until it is reactivated."""
    return Operation("POST", _key(client_id, "/deactivate"), Success[KeyStanding], repeatable=True)


def reactivate_key(client_id: str) -> Operation[KeyStanding]:
    """Reactivate a key that its owner deactivated.

    Raises:
        KeyDeactivated: The key is deactivated for another reason, which the error names.
    """
    return Operation("POST", _key(client_id, "/reactivate"), Success[KeyStanding], repeatable=True)


def list_key_audit(client_id: str, limit: int = 50, before: str | None = None) -> Operation[AuditTrail]:
    """List one page of a key's audit trail, at most 100 entries, newest first. The key may be revoked."""
    return Operation("GET", _key(client_id, "/audit"), Success[AuditTrail], _page(limit, before), repeatable=True)


def key_requests(
    client_id: str, days: int = 7, *, errors_only: bool = False, limit: int = 50, before: str | None = None
) -> Operation[KeyRequests]:
    """Count the requests of a key per day, and list one page of at most 100 logged ones, newest first."""
    params = {**_page(limit, before), "days": str(days), "errors_only": "true" if errors_only else "false"}
    return Operation("GET", _key(client_id, "/requests"), Success[KeyRequests], params, repeatable=True)


def iter_key_requests(
    client_id: str, *, errors_only: bool = False, limit: int = 100, before: str | None = None
) -> Pages[KeyRequests, LoggedRequest]:
    """Iterate over the logged requests of a key, newest first, page by page."""

    def rest(page: KeyRequests) -> Pages[KeyRequests, LoggedRequest] | None:
        if page.next_before is None:
            return None
        return iter_key_requests(client_id, errors_only=errors_only, limit=limit, before=page.next_before)

    found = key_requests(client_id, errors_only=errors_only, limit=limit, before=before)
    return Pages(found, lambda page: page.requests, rest)


def list_events(
    after: str | None = None, types: Sequence[EventType] = (), client_id: str | None = None, limit: int = 100
) -> Operation[EventList]:
    """List one page of the events after one of them, oldest first."""
    parts = {"after": after, "types": ",".join(types) or None, "client_id": client_id}
    params = {name: value for name, value in parts.items() if value is not None} | {"limit": str(limit)}
    return Operation("GET", f"{PREFIX}/events", Success[EventList], params, repeatable=True)


def iter_events(
    after: str | None = None, types: Sequence[EventType] = (), client_id: str | None = None, limit: int = 100
) -> Pages[EventList, PublishedEvent]:
    """Return each event after one of them, oldest first, a page at a time. Store the id of the last one to continue."""

    def rest(page: EventList) -> Pages[EventList, PublishedEvent] | None:
        return iter_events(page.next_after, types, client_id, limit) if page.has_more else None

    return Pages(list_events(after, types, client_id, limit), lambda page: page.events, rest)


def iter_key_audit(client_id: str, limit: int = 100, before: str | None = None) -> Pages[AuditTrail, AuditEntry]:
    """Iterate over the audit trail of a key, newest first, page by page."""

    def rest(page: AuditTrail) -> Pages[AuditTrail, AuditEntry] | None:
        return iter_key_audit(client_id, limit, page.next_before) if page.next_before else None

    return Pages(list_key_audit(client_id, limit, before), lambda page: page.events, rest)


def list_audit(limit: int = 50, before: str | None = None) -> Operation[AuditTrail]:
    """List one page of the user's audit trail, at most 100 entries: logins and what happened to their keys."""
    return Operation("GET", f"{PREFIX}/audit", Success[AuditTrail], _page(limit, before), repeatable=True)


def _page(limit: int, before: str | None) -> dict[str, str]:
    return {"limit": str(limit)} | ({} if before is None else {"before": before})


def connection_status(client_id: str, history: bool = False) -> Operation[Connection]:
    """Return whether the site of a key is connected, and with `history` the changes of the last 30 days."""
    params = {"history": "true"} if history else {}
    path = f"{PREFIX}/api-keys/{segment(client_id)}/status"
    return Operation("GET", path, Success[Connection], params, repeatable=True)


def businesses() -> Operation[BusinessList]:
    """List the user's businesses."""
    return Operation("GET", f"{PREFIX}/businesses", Success[BusinessList], repeatable=True)


def heartbeat(**report: Unpack[Report]) -> Operation[HeartbeatReceived]:
    """Report that the site is alive. Missing fields keep their last value.

    Raises:
        ValidationFailed: A field is invalid.
    """
    return Operation("POST", f"{PREFIX}/api-keys/heartbeat", Success[HeartbeatReceived], body=report, repeatable=True)


def validate_credentials(
    client_id: str, client_secret: str, site_domain: str | None = None
) -> Operation[CredentialsValid | CredentialsInvalid]:
    """Check credentials and their site without requesting a token; `valid` distinguishes the two responses."""
    body = {"client_id": client_id, "client_secret": client_secret, "site_domain": site_domain}
    path, envelope = f"{PREFIX}/auth/validate-service-credentials", Success[CredentialsValid | CredentialsInvalid]
    return Operation("POST", path, envelope, body=body, repeatable=True, bearer=False)


def client_credentials(client_id: str, client_secret: str, permissions: list[str] | None = None) -> Operation[Token]:
    """Exchange a key's id and secret for tokens. The default is all permissions of the key."""
    body = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    subset = {"permissions": permissions} if permissions else {}
    return Operation("POST", TOKEN_PATH, Success[Token], body={**body, **subset}, repeatable=True, bearer=False)


def refresh(refresh_token: str) -> Operation[Token]:
    """Exchange a refresh token for a new pair. The service accepts it once."""
    body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return Operation("POST", TOKEN_PATH, Success[Token], body=body, bearer=False)


def exchange_id_token(id_token: str, nonce: str | None = None) -> Operation[UserToken]:
    """Exchange an ID token of the identity provider for a user token. The service accepts it once.

    `nonce` is the nonce of the sign-in request. There is no retry after a lost response; the user must sign in again.

    Raises:
        InvalidToken: The service rejected the ID token.
    """
    body = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": id_token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
    }
    proof = {"nonce": nonce} if nonce else {}
    return Operation("POST", TOKEN_PATH, Success[UserToken], body={**body, **proof}, bearer=False)
