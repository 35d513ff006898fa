"""The `webhooks` of the OpenAPI document: what each type of event sends, with an example."""

from pydantic import BaseModel

from profilesvc.api.openapi.schemas import reference
from profilesvc.contract import events
from profilesvc.contract.events import EVENT_TYPES, EventType
from profilesvc.contract.json import JsonObject

_LOCATION, _AT = "locations/111", "2026-01-03T03:05:00.000Z"
_CLIENT_ID = "svcid_1_1767323045678_harbour_coffee_website"
_KEY: JsonObject = {
    "id": 1,
    "client_id": _CLIENT_ID,
    "name": "Harbour Coffee website",
    "assigned_location_id": _LOCATION,
    "primary_domain": "harbour.example",
    "created_at": "2026-01-02T03:04:05.678Z",
    "last_used_at": None,
    "status": "active",
    "deactivation_reason": None,
    "expires_at": None,
}
_SITE: JsonObject = {
    "connection_status": "online",
    "last_heartbeat_at": "2026-01-02T03:04:05.678Z",
    "plugin_version": "2.4.1",
    "wp_version": "6.8",
    "php_version": "8.3.2",
    "reason_hint": None,
}
_SYNC: JsonObject = {"syncId": "sync_1", "timestamp": _AT, "status": "success", "fieldsUpdated": 1, "direction": "push"}
_POST: JsonObject = {"name": "locations/111/localPosts/11101", "summary": "Fresh beans.", "state": "LIVE"}
_REVIEW: JsonObject = {"name": "locations/111/reviews/111002", "starRating": "FIVE", "comment": "Lovely."}
_HERE: JsonObject = {"location_id": _LOCATION}
_LOGIN = events.ProviderConnectionChanged


def _login(state: str) -> JsonObject:
    url = "https://profiles.example.com/dashboard/connections"
    return {"connection": {"id": 1, "state": state, "url": url}}


_WHEN: dict[EventType, tuple[type[BaseModel], str, JsonObject]] = {
    "connection.online": (events.ConnectionChanged, "A site is connected", {}),
    "connection.idle": (
        events.ConnectionChanged,
        "A site was silent for 2 hours",
        {"connection_status": "idle", "reason_hint": "was_online"},
    ),
    "connection.offline": (
        events.ConnectionChanged,
        "A site was silent for 24 hours",
        {"connection_status": "offline", "reason_hint": "was_online"},
    ),
    "connection.never_connected": (
        events.ConnectionChanged,
        "A site never connected",
        {"connection_status": "offline", "last_heartbeat_at": None, "reason_hint": "never_connected"}
        | dict.fromkeys(("plugin_version", "wp_version", "php_version")),
    ),
    "connection.site_mismatch": (
        events.ConnectionChanged,
        "A second site uses the credentials",
        {"reason_hint": "site_mismatch", "warnings": ["site_mismatch"]},
    ),
    "key.created": (events.KeyChanged, "A key was created", {}),
    "key.rolled": (events.KeyChanged, "A key got a new secret", {}),
    "key.deactivated": (
        events.KeyChanged,
        "A key was deactivated",
        {"status": "deactivated", "deactivation_reason": "user_requested"},
    ),
    "key.reactivated": (events.KeyChanged, "A key was reactivated", {}),
    "key.revoked": (events.KeyChanged, "A key was revoked", {"status": "revoked"}),
    "key.expiring": (events.KeyChanged, "A key expires soon", {"expires_at": "2026-01-10T00:00:00.000Z"}),
    "token.reuse_detected": (events.KeyChanged, "A used refresh token came back", {}),
    "location.verification_changed": (
        events.VerificationChanged,
        "The verification changed",
        {**_HERE, "is_verified": True, "verification_state": "COMPLETED"},
    ),
    "location.sync_switched": (events.SyncSwitchChanged, "The sync was switched", {**_HERE, "sync_enabled": False}),
    "profile.drifted": (
        events.ProfileDrifted,
        "The profile differs from the last sync",
        {**_HERE, "differences": [{"field": "title", "source": "Harbour Coffee", "provider": "Harbour Café"}]},
    ),
    "sync.succeeded": (
        events.SyncEnded,
        "A sync succeeded",
        {**_HERE, "sync": _SYNC, "fields_updated": ["title"], "error": None},
    ),
    "sync.failed": (
        events.SyncEnded,
        "A sync failed",
        {
            **_HERE,
            "sync": {**_SYNC, "status": "failed", "fieldsUpdated": 0},
            "fields_updated": [],
            "error": "PROVIDER_API_ERROR",
        },
    ),
    "post.created": (events.PostChanged, "A post was created", {**_HERE, "post": {**_POST, "state": "PROCESSING"}}),
    "post.updated": (events.PostChanged, "A post was changed", {**_HERE, "post": _POST}),
    "post.deleted": (events.PostChanged, "A post was deleted", {**_HERE, "post": _POST}),
    "post.published": (events.PostChanged, "A post was published", {**_HERE, "post": _POST}),
    "post.rejected": (events.PostChanged, "A post was rejected", {**_HERE, "post": {**_POST, "state": "REJECTED"}}),
    "post.deleted_at_provider": (events.PostChanged, "A post was deleted at the provider", {**_HERE, "post": _POST}),
    "review.created": (events.ReviewChanged, "There is a new review", {**_HERE, "review": _REVIEW}),
    "review.updated": (events.ReviewChanged, "A review was changed", {**_HERE, "review": _REVIEW}),
    "review.replied": (
        events.ReplyChanged,
        "A review was replied to",
        {
            **_HERE,
            "review_name": _REVIEW["name"],
            "reply": {"comment": "Thank you.", "updateTime": _AT, "reviewReplyState": "PENDING"},
        },
    ),
    "review.reply_deleted": (
        events.ReplyChanged,
        "A reply was deleted",
        {**_HERE, "review_name": _REVIEW["name"], "reply": None},
    ),
    "quota.warning": (events.QuotaWarning, "Most posts are used", {"used": 800, "limit": 1000, "month": "2026-01"}),
    "webhook.disabled": (
        events.WebhookDisabled,
        "A webhook was disabled",
        {"webhook_id": 1, "host": "hooks.harbour.example", "disabled_reason": "failing"},
    ),
    "provider_connection.connected": (_LOGIN, "A login at the provider was connected", _login("active")),
    "provider_connection.reauth_required": (_LOGIN, "The provider has ended a login", _login("reauth_required")),
    "provider_connection.disconnected": (_LOGIN, "A login was disconnected", _login("disconnected")),
}
_HEADERS = {
    "webhook-id": "The id of the event, the same at each attempt.",
    "webhook-timestamp": "When this attempt was sent, in seconds since the epoch.",
    "webhook-signature": "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; two of them after a roll.",
}


def models() -> list[type[BaseModel]]:
    """Return the models of the data of all types."""
    return [events.PublishedEvent, *dict.fromkeys(model for model, *_ in _WHEN.values())]


def data_of(kind: EventType) -> JsonObject:
    model, _, data = _WHEN[kind]
    if model is events.ConnectionChanged:
        return {"client_id": _CLIENT_ID, **_HERE, "connection": {**_SITE, **data}}
    return {"key": {**_KEY, **data}} if "key" in model.model_fields else data


def webhooks() -> JsonObject:
    """Return one operation of the receiver for each type."""
    return {kind: {"post": _operation(kind, number)} for number, kind in enumerate(EVENT_TYPES, 1)}


def _operation(kind: EventType, number: int) -> JsonObject:
    model, summary, _ = _WHEN[kind]
    own = {"type": {"type": "string", "enum": [kind]}, "data": reference(model.__name__)}
    schema = {"allOf": [reference("PublishedEvent"), {"type": "object", "properties": own}]}
    example = {"id": f"evt_1_{number}", "type": kind, "created_at": _AT, "owner": {"id": 1}, "data": data_of(kind)}
    return {
        "x-internal": True,  # openapi-generator would write a client of the receiver, in Python an invalid one
        "operationId": f"on_{kind.replace('.', '_')}",
        "tags": ["Webhooks"],
        "summary": summary,
        "description": "Your endpoint receives this. Verify the signature, respond with 2xx within 10 seconds, and "
        "ignore an id that you have.",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
            for name, text in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}},
        "responses": {
            "2XX": {"description": "Delivered."},
            "410": {"description": "The endpoint is gone: the webhook is disabled."},
            "default": {"description": "Repeated later, at most nine times."},
        },
    }
