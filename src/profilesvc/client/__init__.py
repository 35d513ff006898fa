"""A client of the service for threads and for asyncio. It needs httpx and pydantic but no server code.

An example::

    from profilesvc.client import ProfileClient, SyncDisabled, verdicts

    with ProfileClient.service("https://profiles.example", client_id, client_secret) as profiles:
        profiles.heartbeat(plugin_version="2.4.1")
        for post in profiles.iter_posts("locations/111"):
            print(post.name, post.state)
        try:
            profiles.sync("locations/111", {"phoneNumbers": {"primaryPhone": "+31 20 555 0100"}})
        except SyncDisabled:
            profiles.set_sync("locations/111", True)
        for leaf in verdicts(profiles.compare("locations/111")):
            print(leaf.field, leaf.verdict)

Tokens are requested, cached and renewed automatically. `ProfileClient.user(base_url, token)` uses a user token instead,
and `ProfileClient.signed_in(base_url, id_token, nonce)` uses the ID token of a user who has just signed in.
Requests contain secrets, so `http://` is accepted only for this machine, and redirects are not followed.
Temporary failures are retried if a retry cannot do anything twice. `create_post` and `sync` send an idempotency key, so
they are retried too. Every failure is a ProfileError: a ProfileApiError with the service's code, or TransportFailed.
`verify_webhook` checks what a webhook receives.
AsyncProfileClient has the same methods as coroutines. Its `iter_` methods are for `async for`.
"""

from profilesvc.client.async_client import AsyncOptions, AsyncProfileClient
from profilesvc.client.auth import BearerAuth, ServiceAuth
from profilesvc.client.client import ProfileClient, SyncOptions
from profilesvc.client.errors import (
    Conflict,
    HeadersTooLarge,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientPermissions,
    InternalError,
    InvalidToken,
    KeyDeactivated,
    LocationNotVerified,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    PlanRestriction,
    ProfileApiError,
    ProfileError,
    ProviderFailed,
    QuotaExceeded,
    RateLimited,
    RequestTimedOut,
    ServiceUnavailable,
    SyncDisabled,
    TransportFailed,
    UnreadableResponse,
    UnsupportedMediaType,
    ValidationFailed,
)
from profilesvc.client.operations import Connection
from profilesvc.client.receiving import WebhookRejected, verify_webhook
from profilesvc.client.retries import Retries
from profilesvc.domain.verdicts import FieldVerdict, Verdict, verdicts

__all__ = [
    "AsyncOptions",
    "AsyncProfileClient",
    "BearerAuth",
    "Conflict",
    "Connection",
    "FieldVerdict",
    "HeadersTooLarge",
    "IdempotencyInProgress",
    "IdempotencyKeyReused",
    "InsufficientPermissions",
    "InternalError",
    "InvalidToken",
    "KeyDeactivated",
    "LocationNotVerified",
    "MethodNotAllowed",
    "NotFound",
    "PayloadTooLarge",
    "PlanRestriction",
    "ProfileApiError",
    "ProfileClient",
    "ProfileError",
    "ProviderFailed",
    "QuotaExceeded",
    "RateLimited",
    "RequestTimedOut",
    "Retries",
    "ServiceAuth",
    "ServiceUnavailable",
    "SyncDisabled",
    "SyncOptions",
    "TransportFailed",
    "UnreadableResponse",
    "UnsupportedMediaType",
    "ValidationFailed",
    "Verdict",
    "WebhookRejected",
    "verdicts",
    "verify_webhook",
]
