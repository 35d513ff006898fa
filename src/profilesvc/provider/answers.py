"""Reading the provider's answers: bounded, JSON objects only, and refusals as ProviderError."""

import json
from typing import Any

import httpx

from profilesvc.provider.port import Document, ProviderError

MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_MESSAGE = 500


async def read_body(response: httpx.Response) -> bytes:
    """The whole body of a streamed response; larger than 10 MB is refused."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ProviderError("unavailable", retryable=False, provider_message="answer larger than 10 MB")
    return bytes(body)


def read_answer(status: int, body: bytes) -> Document:
    """The JSON object of a 200; every other answer raises ProviderError."""
    document = json_object(body)
    if status >= 300:
        raise _refusal(status, document or {})
    if document is None:
        raise ProviderError("unavailable", retryable=True, http_status=status, provider_message="unreadable answer")
    return document


def json_object(body: bytes) -> Document | None:
    """The body as a JSON object, or None."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refusal(status: int, document: Document) -> ProviderError:
    """Details are told apart by `@type`, refusals by HTTP status, as the provider's texts change (format §10)."""
    error = document.get("error")
    error = error if isinstance(error, dict) else {}
    found = _Details(error.get("details"))
    arguments: dict[str, Any] = {
        "http_status": status,
        "provider_status": _text(error.get("status")),
        "provider_reason": found.reason,
        "provider_message": found.message or _text(error.get("message")),
        "fields": tuple(found.fields),
    }
    if status < 400:
        return ProviderError("unavailable", retryable=False, **arguments)
    if status == 429:
        return ProviderError("rate_limited", retryable=True, **arguments)
    if status >= 500:
        return ProviderError("unavailable", retryable=True, **arguments)
    return ProviderError("rejected", retryable=False, **arguments)


class _Details:
    """The reason, the fields and the most telling message of an error's details."""

    def __init__(self, details: object) -> None:
        self.reason: str | None = None
        self.message: str | None = None
        self.fields: list[str] = []
        for detail in _objects(details):
            self._read(detail)

    def _read(self, detail: Document) -> None:
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


def _objects(value: object) -> list[Document]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    """A short text or number as text; anything else is not the provider's word."""
    return str(value)[:_MAX_MESSAGE] if isinstance(value, str | int) and not isinstance(value, bool) else None
