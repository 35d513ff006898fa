"""Translate errors of the provider to errors for the caller."""

import contextlib
import math
from collections.abc import Iterator

from profilesvc.contract.errors import NOT_FOUND, PROVIDER_API_ERROR
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import ServiceError
from profilesvc.provider.port import ProviderError

_MESSAGES = {
    "rejected": "The external provider rejected the request",
    "unavailable": "The external provider is not available; try again later",
    "timeout": "The external provider did not respond in time; try again",
    "reauth_required": "The owner's login at the external provider has ended and must be connected again",
    "quota": "The quota of requests to the external provider is used up; try again later",
    "rate_limited": "The external provider accepts no more requests for now; try again later",
}


def provider_failure(error: ProviderError) -> ServiceError:
    """Return PROVIDER_API_ERROR with `reason`, `retryable` and details of the provider's response.

    The details are `provider_status` (its HTTP status), `provider_code` (such as INVALID_ARGUMENT), `provider_reason`,
    `provider_message` and `fields`, each only if the provider sent it. The message names the fields. `reconnect_url` is
    where the owner can renew a login that has ended (`reauth_required`).
    """
    is_rejected = error.http_status is not None and error.http_status >= 400
    optional = {
        "provider_status": error.http_status,
        "provider_code": error.provider_code,
        "provider_reason": error.provider_reason,
        "provider_message": error.provider_message if is_rejected else None,  # otherwise our own words
        "fields": list(error.fields),
        "reconnect_url": error.link,
    }
    details: JsonObject = {"reason": error.reason, "retryable": error.retryable}
    details |= {name: value for name, value in optional.items() if value}
    message = _MESSAGES[error.reason]
    if error.reason == "quota" and error.provider_message:  # our own words, which name the limit
        message = f"{error.provider_message[0].upper()}{error.provider_message[1:]}; try again later"
    if not error.retryable:
        message = message.partition(";")[0]  # without the advice to try again
    if error.fields:
        message += f" at {', '.join(error.fields)}"
    if error.reason == "rejected" and error.provider_message:
        message += f": {error.provider_message}"
    message = message if message.endswith(".") else f"{message}."
    wait = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
    return ServiceError(PROVIDER_API_ERROR, message, retry_after=wait, **details)


@contextlib.contextmanager
def raising_provider_failure(not_found: str = "") -> Iterator[None]:
    """Raise the result of `provider_failure` in place of the error, or NOT_FOUND with the message `not_found`."""
    try:
        yield
    except ProviderError as error:
        if not_found and error.not_found:
            raise ServiceError(NOT_FOUND, not_found) from error
        raise provider_failure(error) from error
