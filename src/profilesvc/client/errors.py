"""The errors of the client: one class per error code, and one for the network."""

from dataclasses import dataclass

from profilesvc.contract.json import JsonObject


class ProfileError(Exception):
    """The base of all errors of a client; `sent` is False if the operation was not carried out."""

    sent = True


class TransportFailed(ProfileError):
    """A missing response: the connection failed or took too long. The httpx error is the cause.

    If `sent` is True, the service may have carried out the operation.
    """

    def __init__(self, message: str, sent: bool = True) -> None:
        super().__init__(message, sent)
        self.message, self.sent = message, sent

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ProfileApiError(ProfileError):
    """An error response of the service (docs/api-contract.md#error-catalogue).

    A code always has the same status. Unknown codes are kept as they are.
    `request_id` identifies the response in the service's log; `retry_after` is in seconds.
    """

    code: str
    status: int
    message: str
    details: JsonObject
    request_id: str | None = None
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.message}"


class UnreadableResponse(ProfileApiError):
    """A successful response that does not match the contract, such as the HTML page of a proxy."""


class ValidationFailed(ProfileApiError):
    """An invalid field in the request."""

    @property
    def errors(self) -> list[dict[str, str]]:
        """`{in, field, problem}` for each invalid field."""
        return list(self.details.get("errors", []))


class InvalidToken(ProfileApiError):
    """A rejected token or rejected credentials."""

    @property
    def reason(self) -> str | None:
        """`missing`, `malformed`, `invalid`, `expired` or `revoked`; None if the credentials were rejected."""
        return self.details.get("reason")


class InsufficientPermissions(ProfileApiError):
    """A request that the caller may not make."""

    @property
    def reason(self) -> str | None:
        """Return the reason, such as `other_location`; None for a deactivated key. docs/errors.md lists them."""
        return self.details.get("reason")

    @property
    def required(self) -> str | None:
        """The permission that the service token lacks, if that is the cause."""
        return self.details.get("required")


class KeyDeactivated(InsufficientPermissions):
    """A deactivated API key. It can be reactivated."""

    @property
    def deactivation_reason(self) -> str:
        """`billing_issue`, `plan_downgrade`, `security_concern` or `user_requested`."""
        return str(self.details["deactivation_reason"])

    @property
    def deactivated_at(self) -> str | None:
        """The time of the deactivation in ISO 8601, UTC."""
        return self.details.get("deactivated_at")

    @property
    def upgrade_url(self) -> str | None:
        """The URL where the owner can fix the cause."""
        return self.details.get("upgrade_url")


class PlanRestriction(ProfileApiError):
    """A feature that the owner's plan does not include."""


class NotFound(ProfileApiError):
    """A resource that does not exist, or that the caller has no access to."""


class MethodNotAllowed(ProfileApiError):
    """A method that the path does not support."""


class RequestTimedOut(ProfileApiError):
    """A request that did not arrive in time."""


class Conflict(ProfileApiError):
    """A request that conflicts with the current state."""


class LocationNotVerified(ProfileApiError):
    """A location that is not verified at the provider."""

    @property
    def verification_state(self) -> str | None:
        """The state at the provider, such as UNVERIFIED."""
        return self.details.get("verificationState")


class SyncDisabled(ProfileApiError):
    """A location whose sync is switched off."""


class IdempotencyInProgress(ProfileApiError):
    """A request whose idempotency key is used by a request that is still running."""


class IdempotencyKeyReused(ProfileApiError):
    """An idempotency key that was used with a different request."""


class PayloadTooLarge(ProfileApiError):
    """A body that is larger than the endpoint accepts."""


class UnsupportedMediaType(ProfileApiError):
    """A body that was not sent as JSON."""


class HeadersTooLarge(ProfileApiError):
    """Request headers that are larger than the service accepts."""


class RateLimited(ProfileApiError):
    """Too many requests. The request was not carried out."""


class QuotaExceeded(ProfileApiError):
    """A used-up monthly post limit. A retry before `resets_at` fails too."""

    @property
    def limit(self) -> int | None:
        """The limit in posts per month."""
        return self.details.get("limit")

    @property
    def used(self) -> int | None:
        """The number of posts in this month."""
        return self.details.get("used")

    @property
    def resets_at(self) -> str | None:
        """The time of the reset in ISO 8601, UTC."""
        return self.details.get("resets_at")


class ProviderFailed(ProfileApiError):
    """A failure of the external provider: it rejected the request, failed or did not respond."""

    @property
    def reason(self) -> str | None:
        """`rejected`, `unavailable`, `timeout`, `rate_limited`, `quota` or `reauth_required`."""
        return self.details.get("reason")

    @property
    def retryable(self) -> bool:
        """Return whether the same request may succeed later."""
        return bool(self.details.get("retryable", False))


class InternalError(ProfileApiError):
    """A failure inside the service."""


class ServiceUnavailable(ProfileApiError):
    """A temporary failure of the service."""
