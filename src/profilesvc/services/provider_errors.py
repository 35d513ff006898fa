"""How a failure at the provider is told to the caller."""

import math
from typing import Any

from profilesvc.contract.errors import PROVIDER_API_ERROR
from profilesvc.domain.errors import ServiceError
from profilesvc.provider.port import ProviderError

_MESSAGES = {
    "rejected": "The external provider did not accept the request",
    "unavailable": "The external provider is not available; try again later",
    "timeout": "The external provider did not answer in time; try again",
    "rate_limited": "The external provider takes no more requests for now; try again later",
}


def provider_failure(error: ProviderError) -> ServiceError:
    """PROVIDER_API_ERROR whose details are `reason`, `retryable` and what is known of the provider's own answer.

    That is `provider_status` (its HTTP status), `provider_code` (such as INVALID_ARGUMENT), `provider_reason`,
    `provider_message` and `fields`; each is absent when unknown. The message names the fields (D-01, D-75). Where it
    is known when to try again, `retry_after` says so.
    """
    refused = error.http_status is not None and error.http_status >= 400
    said = {
        "provider_status": error.http_status,
        "provider_code": error.provider_status,
        "provider_reason": error.provider_reason,
        "provider_message": error.provider_message if refused else None,  # else it is the adapter's own remark
        "fields": list(error.fields),
    }
    details: dict[str, Any] = {name: value for name, value in said.items() if value}
    message = _MESSAGES[error.reason]
    if not error.retryable:
        message = message.partition(";")[0]  # no advice to try again
    if error.fields:
        message += f" at {', '.join(error.fields)}"
    if error.reason == "rejected" and error.provider_message:
        message += f": {error.provider_message}"
    message = message if message.endswith(".") else f"{message}."
    wait = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
    known = {"reason": error.reason, "retryable": error.retryable, **details}
    return ServiceError(PROVIDER_API_ERROR, message, retry_after=wait, **known)
