"""The operations on keys, connections and tokens: what to send and how to read the response, without I/O.

Both clients have these functions, and those of `profiles`, as methods. Every operation can raise InvalidToken,
InsufficientPermissions, KeyDeactivated, RateLimited, ServiceUnavailable, InternalError and TransportFailed; further
errors are named in its docstring.
"""

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
from profilesvc.contract.keys import BusinessList, KeyCreated, KeyList, KeyRevoked, KeyRolled, KeyStanding
from profilesvc.contract.tokens import Token, UserToken

TOKEN_PATH = f"{PREFIX}/auth/token"
_KEYS = f"{PREFIX}/developer/credentials"


class Connection(ConnectionStatus):
    """The connection status; `history` is None unless it was asked for."""

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


class Report(TypedDict, total=False):
    """The fields of a heartbeat (docs/api-contract.md#send_heartbeat)."""

    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    detected_plugins: list[str] | None


def _key(client_id: str, what: str = "") -> str:
    return f"{_KEYS}/{segment(client_id)}{what}"


def create_key(**members: Unpack[NewKey]) -> Operation[KeyCreated]:
    """Create an API key; its `client_secret` is in this answer only. Never repeated: a second key would be made.

    ValidationFailed, NotFound, Conflict, PlanRestriction.
    """
    return Operation("POST", _KEYS, Success[KeyCreated], body=members)


def list_keys(include_revoked: bool = False, limit: int | None = None, before: str | None = None) -> Operation[KeyList]:
    """The user's keys, newest first. Revoked ones come in pages of 100: `before=page.next_before` gets the next one."""
    params = {"include_revoked": "true"} if include_revoked else {}
    params |= {} if limit is None else {"limit": str(limit)}
    params |= {} if before is None else {"before": before}
    return Operation("GET", _KEYS, Success[KeyList], params, repeatable=True)


def revoke_key(client_id: str) -> Operation[KeyRevoked]:
    """Revoke a key for good; its tokens are worth nothing at once. NotFound.

    There is no retry after a lost response, because the response has the time. Call again: NotFound means it is done.
    """
    return Operation("DELETE", _key(client_id), Success[KeyRevoked])


def roll_key(client_id: str, overlap_seconds: int = 86_400) -> Operation[KeyRolled]:
    """Give a key a new secret, in this response only; the old one is valid for the overlap. Never retried.

    0 is for a secret that leaked: every older secret and all tokens end at once. NotFound, Conflict.
    """
    return Operation("POST", _key(client_id, "/roll"), Success[KeyRolled], body={"overlap_seconds": overlap_seconds})


def deactivate_key(client_id: str) -> Operation[KeyStanding]:
    """Switch a key off until it is switched on again. NotFound."""
    return Operation("POST", _key(client_id, "/deactivate"), Success[KeyStanding], repeatable=True)


def reactivate_key(client_id: str) -> Operation[KeyStanding]:
    """Switch a key on that its owner switched off. NotFound; KeyDeactivated for another reason, which it names."""
    return Operation("POST", _key(client_id, "/reactivate"), Success[KeyStanding], repeatable=True)


def key_events(client_id: str, limit: int = 50, before: str | None = None) -> Operation[AuditTrail]:
    """One page of what happened to a key, revoked or not, newest first; at most 100. NotFound."""
    return Operation("GET", _key(client_id, "/audit"), Success[AuditTrail], _page(limit, before), repeatable=True)


def iter_key_events(client_id: str, limit: int = 100, before: str | None = None) -> Pages[AuditTrail, AuditEntry]:
    """All that happened to a key, newest first, fetched page by page."""

    def rest(page: AuditTrail) -> Pages[AuditTrail, AuditEntry] | None:
        return iter_key_events(client_id, limit, page.next_before) if page.next_before else None

    return Pages(key_events(client_id, limit, before), lambda page: page.events, rest)


def events(limit: int = 50, before: str | None = None) -> Operation[AuditTrail]:
    """One page of the user's log-ins and of what happened to all of their keys, newest first; at most 100."""
    return Operation("GET", f"{PREFIX}/audit", Success[AuditTrail], _page(limit, before), repeatable=True)


def _page(limit: int, before: str | None) -> dict[str, str]:
    return {"limit": str(limit)} | ({} if before is None else {"before": before})


def connection_status(client_id: str, history: bool = False) -> Operation[Connection]:
    """Whether the site of a key is connected; with `history` its changes of the last 30 days. NotFound."""
    params = {"history": "true"} if history else {}
    path = f"{PREFIX}/api-keys/{segment(client_id)}/status"
    return Operation("GET", path, Success[Connection], params, repeatable=True)


def businesses() -> Operation[BusinessList]:
    """List the user's businesses."""
    return Operation("GET", f"{PREFIX}/businesses", Success[BusinessList], repeatable=True)


def heartbeat(**report: Unpack[Report]) -> Operation[HeartbeatReceived]:
    """Report that the site is alive. Missing fields keep their last value. ValidationFailed."""
    return Operation("POST", f"{PREFIX}/api-keys/heartbeat", Success[HeartbeatReceived], body=report, repeatable=True)


def validate_credentials(
    client_id: str, client_secret: str, site_domain: str | None = None
) -> Operation[CredentialsValid | CredentialsInvalid]:
    """Check a pair and its site without getting a token; `valid` distinguishes the two responses."""
    body = {"client_id": client_id, "client_secret": client_secret, "site_domain": site_domain}
    path, answer = f"{PREFIX}/auth/validate-service-credentials", Success[CredentialsValid | CredentialsInvalid]
    return Operation("POST", path, answer, body=body, repeatable=True, bearer=False)


def client_credentials(client_id: str, client_secret: str, permissions: list[str] | None = None) -> Operation[Token]:
    """Exchange a key's id and secret for tokens; no permissions means all that the key has."""
    body = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    wanted = {"permissions": permissions} if permissions else {}
    return Operation("POST", TOKEN_PATH, Success[Token], body={**body, **wanted}, repeatable=True, bearer=False)


def refresh(refresh_token: str) -> Operation[Token]:
    """Exchange a refresh token for a new pair. The service accepts it once."""
    body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return Operation("POST", TOKEN_PATH, Success[Token], body=body, bearer=False)


def exchange_id_token(id_token: str, nonce: str | None = None) -> Operation[UserToken]:
    """Exchange an ID token of the identity provider for a user token. The service accepts it once.

    `nonce` is the value that the login was started with. There is no retry after a lost response: the user signs in
    again.

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
