"""What can go wrong, as types: one class per code of the catalogue, and one for the network."""

from dataclasses import dataclass
from typing import Any


class ProfileError(Exception):
    """The base of all errors of a client; `sent` is False if the operation was certainly not carried out."""

    sent = True


class TransportFailed(ProfileError):
    """No answer came: the connection failed or took too long. The httpx error is the cause.

    With `sent` True the service may have carried out the operation.
    """

    def __init__(self, message: str, sent: bool = True) -> None:
        super().__init__(message, sent)
        self.message, self.sent = message, sent

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ProfileApiError(ProfileError):
    """The service rejected the request or failed (docs/api-contract.md#error-catalogue).

    A code always has the same status. A code that this client does not know is passed through.
    `request_id` identifies the response in the service's log; `retry_after` is in seconds.
    """

    code: str
    status: int
    message: str
    details: dict[str, Any]
    request_id: str | None = None
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.message}"


class UnreadableAnswer(ProfileApiError):
    """A success that is not the service's envelope or lacks what the contract promises: a proxy's page, say."""


class ValidationFailed(ProfileApiError):
    """Something in the request is not valid."""

    @property
    def errors(self) -> list[dict[str, str]]:
        """`{in, field, problem}` for each invalid field."""
        return list(self.details.get("errors", []))


class InvalidToken(ProfileApiError):
    """The token, or the credentials that were to get one, are refused."""

    @property
    def reason(self) -> str | None:
        """`missing`, `malformed`, `invalid`, `expired` or `revoked`; None if a grant was rejected."""
        return self.details.get("reason")


class InsufficientPermissions(ProfileApiError):
    """The caller may not do this."""

    @property
    def required(self) -> str | None:
        """The permission that a service token lacks, when that is the cause."""
        return self.details.get("required")


class KeyDeactivated(InsufficientPermissions):
    """The API key is deactivated. It can be reactivated."""

    @property
    def deactivation_reason(self) -> str:
        """billing_issue, plan_downgrade, security_concern or user_requested."""
        return str(self.details["deactivation_reason"])

    @property
    def deactivated_at(self) -> str | None:
        """ISO 8601, UTC."""
        return self.details.get("deactivated_at")

    @property
    def upgrade_url(self) -> str | None:
        """The address where the owner can fix it."""
        return self.details.get("upgrade_url")


class PlanRestriction(ProfileApiError):
    """The owner's plan does not include this."""


class NotFound(ProfileApiError):
    """There is nothing there that the caller may see."""


class MethodNotAllowed(ProfileApiError):
    """The path does not take that method."""


class RequestTimedOut(ProfileApiError):
    """The request did not arrive in time."""


class Conflict(ProfileApiError):
    """The request conflicts with the current state."""


class LocationNotVerified(ProfileApiError):
    """The location must be verified at the provider first."""

    @property
    def verification_state(self) -> str | None:
        """The state at the provider, such as UNVERIFIED."""
        return self.details.get("verificationState")


class SyncDisabled(ProfileApiError):
    """Sync is switched off for the location."""


class IdempotencyInProgress(ProfileApiError):
    """The first request with the same idempotency key is still running."""


class IdempotencyKeyReused(ProfileApiError):
    """The idempotency key was used with another request before."""


class PayloadTooLarge(ProfileApiError):
    """The body is larger than the route accepts."""


class UnsupportedMediaType(ProfileApiError):
    """The body was not sent as JSON."""


class HeadersTooLarge(ProfileApiError):
    """The request headers are larger than the service accepts."""


class RateLimited(ProfileApiError):
    """Too many requests; nothing was done."""


class QuotaExceeded(ProfileApiError):
    """The monthly post limit is reached; asking again does not help before `resets_at`."""

    @property
    def limit(self) -> int | None:
        """Posts a month."""
        return self.details.get("limit")

    @property
    def used(self) -> int | None:
        """Posts of this month."""
        return self.details.get("used")

    @property
    def resets_at(self) -> str | None:
        """ISO 8601, UTC."""
        return self.details.get("resets_at")


class ProviderFailed(ProfileApiError):
    """The external provider refused, failed or did not answer."""

    @property
    def reason(self) -> str | None:
        """rejected, unavailable, timeout or rate_limited."""
        return self.details.get("reason")

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return bool(self.details.get("retryable", False))


class InternalError(ProfileApiError):
    """The service failed."""


class ServiceUnavailable(ProfileApiError):
    """The service cannot answer right now."""
