"""Read the provider's responses: bounded in size, JSON objects only, and errors as ProviderError."""

import json
import math
from dataclasses import dataclass

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.contract.retry_after import retry_after
from profilesvc.domain.time import DAY, HOUR, SECOND, Clock
from profilesvc.provider.port import ProviderError, Reason

MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_MESSAGE = 500
_RETIRED = 501


@dataclass(frozen=True, slots=True)
class Received:
    """A response that was read; `retry_after` is in seconds, at most a day, if the provider sent it."""

    status: int
    body: bytes
    retry_after: float | None = None


async def read_response(response: httpx.Response, clock: Clock) -> Received:
    """Read a streamed response. A body larger than 10 MB is rejected."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ProviderError("unavailable", retryable=False, provider_message="response larger than 10 MB")
    wait = retry_after(response.headers.get("Retry-After"), clock.now() / SECOND)
    return Received(response.status_code, bytes(body), None if wait is None else min(wait, DAY / SECOND))


def read_document(received: Received) -> JsonObject:
    """Return the JSON object of a 200.

    Raises:
        ProviderError: Any other response.
    """
    document, status = json_object(received.body), received.status
    if status >= 300:
        raise _error_of(received, document or {})
    if document is None:
        raise ProviderError(
            "unavailable", retryable=True, http_status=status, provider_message="response is no JSON object"
        )
    return document


def json_object(body: bytes) -> JsonObject | None:
    """Return the body as a JSON object, or None."""
    try:
        document = json.loads(body, parse_constant=_not_json, parse_float=_finite, parse_int=_int64)
        json.dumps(document, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _not_json(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("number out of range")
    return number


def _int64(text: str) -> int:
    if not -(2**63) <= (number := int(text)) < 2**63:
        raise ValueError("number out of range")
    return number


def _error_of(received: Received, document: JsonObject) -> ProviderError:
    """Build the error from `@type` of the details and the HTTP status, because the provider's messages change."""
    error = document.get("error")
    error = error if isinstance(error, dict) else {}
    details = _Details(error.get("details"))
    reason, retryable = _reason_of(received.status)
    is_throttled = reason == "rejected" and details.reason == "THROTTLED"  # the field cannot be edited for hours
    return ProviderError(
        reason,
        retryable=retryable or is_throttled,
        http_status=received.status,
        provider_code=_text(error.get("status")),
        provider_reason=details.reason,
        provider_message=details.message or _text(error.get("message")),
        fields=tuple(details.fields),
        retry_after=HOUR / SECOND if is_throttled else received.retry_after,
    )


def _reason_of(status: int) -> tuple[Reason, bool]:
    """Return the reason for an HTTP status, and whether the request may be sent again."""
    if status == 429:
        return "rate_limited", True
    if 400 <= status < 500:
        return "rejected", False
    return "unavailable", status >= 500 and status != _RETIRED


class _Details:
    """The reason, the fields and the most specific message of an error's details."""

    def __init__(self, details: object) -> None:
        self.reason: str | None = None
        self.message: str | None = None
        self.fields: list[str] = []
        for detail in _objects(details):
            self._read(detail)

    def _read(self, detail: JsonObject) -> None:
        kind = str(detail.get("@type", "")).rpartition(".")[2]
        if kind == "ErrorInfo":
            self.reason = _text(detail.get("reason"))
            metadata = detail.get("metadata")
            self._note(metadata.get("field_mask") if isinstance(metadata, dict) else None, None)
        elif kind == "BadRequest":
            for violation in _objects(detail.get("fieldViolations")):
                self._note(violation.get("field"), violation.get("description"))
        elif kind == "ValidationError":
            for problem in _objects(detail.get("errorDetails")):
                self._note(problem.get("field"), problem.get("message"))
                self.reason = self.reason or _text(problem.get("code"))

    def _note(self, field: object, message: object) -> None:
        if isinstance(field, str) and field:
            self.fields.append(field)
        self.message = self.message or _text(message)


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    """Return a short string, or a number as a string; None for anything else."""
    return str(value)[:_MAX_MESSAGE] if isinstance(value, str | int) and not isinstance(value, bool) else None
