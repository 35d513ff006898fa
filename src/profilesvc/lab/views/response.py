"""An HTTP response as a card: the request, the status, the error code, headers and bodies."""

from html import escape
from urllib.parse import parse_qsl

import httpx

from profilesvc.lab.views.hints import HINTS
from profilesvc.lab.views.record import body_of, code_of
from profilesvc.lab.views.snippets import curl, php
from profilesvc.lab.views.view import (
    GREEN,
    HIDDEN,
    MAX_LINES,
    RED,
    SECRET_FIELDS,
    View,
    badge,
    box,
    folded,
    hide,
    hide_in,
    plain_folded,
    pretty,
    small,
)

_NAMES = ("Authorization", "Content-Type", "X-Idempotency-Key", "Origin")
_RECEIVED = (
    "Retry-After",
    "Allow",
    "WWW-Authenticate",
    "Idempotency-Replayed",
    "X-Data-Age",
    "Access-Control-Allow-Origin",
    "X-Request-Id",
)
_EMPTY = ";r=0;"  # only a RateLimit without remaining requests is shown, because every response has one
_FORM = "application/x-www-form-urlencoded"
_NOT_STORED = "no-store"  # other values of Cache-Control are not shown
MASKED_NOTE = "Secrets and tokens are shortened to their first four characters here. The response has them in full."


def _target(request: httpx.Request) -> str:
    """Return path and query without percent-encoding, and without the host, which differs from run to run."""
    query = "&".join(f"{name}={value}" for name, value in request.url.params.multi_items())
    return hide_in(f"{request.url.path}?{query}" if query else request.url.path)


def _headers(message: httpx.Request | httpx.Response, names: tuple[str, ...]) -> list[str]:
    lines = []
    for name in names:
        value = message.headers.get(name)
        if value is None:
            continue
        scheme, _, credential = value.partition(" ")
        lines.append(f"{name}: {f'{scheme} {hide(credential)}' if name == 'Authorization' else hide_in(value)}")
    return lines


def _body(message: httpx.Request | httpx.Response, most: int) -> str:
    """Return a body as text: JSON or a form without secrets, or the type and size of anything else."""
    value = body_of(message)
    if value is not None:
        return pretty(value, most)
    if not message.content:
        return ""
    kind = message.headers.get("Content-Type", "").split(";")[0]
    if kind == _FORM:
        pairs = parse_qsl(message.content.decode(errors="replace"))
        return "\n&".join(f"{name}={hide(value) if name in SECRET_FIELDS else hide_in(value)}" for name, value in pairs)
    return f"{kind or 'bytes'}, {len(message.content)} bytes"


def response_card(response: httpx.Response, most: int = MAX_LINES) -> View:
    """Show the request, the response, and a hint for an error. Bodies have at most `most` lines."""
    request = response.request
    sent_body = "" if request.method == "GET" else _body(request, most)
    head, received = _headers(request, _NAMES), _headers(response, _RECEIVED)
    if _EMPTY in response.headers.get("RateLimit", ""):
        received += _headers(response, ("RateLimit",))
    if _NOT_STORED in response.headers.get("Cache-Control", "").split(", "):
        received += _headers(response, ("Cache-Control",))
    # The phrases are httpx's, because those of the standard library change with versions.
    status = f"{response.status_code} {httpx.codes.get_reason_phrase(response.status_code)}".rstrip()
    code = code_of(response) or ""
    hint = HINTS.get(code, "")
    body = _body(response, most)
    note = MASKED_NOTE if HIDDEN in f"{sent_body}{body}" else ""
    text = [f"{request.method} {_target(request)}", *head, *([sent_body] if sent_body else [])]
    text += ["", f"→ {status}{f'  {code}' if code else ''}", *received, *([body] if body else [])]
    text += [f"Hint: {hint}"] * bool(hint) + [note] * bool(note)
    colour = RED if response.is_error else GREEN
    mark = "✗" if response.is_error else "✓"
    html = [
        f'<div style="overflow-wrap:anywhere"><strong>{escape(request.method)}</strong> '
        f"<code>{escape(_target(request))}</code> ",
        badge(colour, f"{mark} {status}"),
        f" <code>{escape(code)}</code></div>" if code else "</div>",
        folded("sent", "\n".join([*head, *([sent_body] if sent_body else [])])) if head or sent_body else "",
        folded("response", "\n".join([*received, body])),
        plain_folded("curl", curl(request)),
        plain_folded("PHP", php(request)),
        f"<div>💡 {escape(hint)}</div>" if hint else "",
        small(escape(note)) if note else "",
    ]
    return View("\n".join(text), box(colour, *html))


def error_card(error: object) -> View:
    """Show an error of the client library: code, status, message, details, request id, and a hint."""
    code, status = str(getattr(error, "code", type(error).__name__)), getattr(error, "status", None)
    details, request_id = getattr(error, "details", None), getattr(error, "request_id", None)
    message, hint = hide_in(str(getattr(error, "message", error))), HINTS.get(code, "")
    name = type(error).__name__
    text = [f"{name}: {code}{f' ({status})' if status else ''}", message, *([pretty(details)] if details else [])]
    text += [f"request id {request_id}"] * bool(request_id) + [f"Hint: {hint}"] * bool(hint)
    html = [
        f"<div><strong>{escape(name)}</strong> {badge(RED, f'✗ {code}')} {escape(str(status or ''))}</div>",
        f"<div>{escape(message)}</div>",
        folded("details", pretty(details)) if details else "",
        small(f"request id {escape(str(request_id))}") if request_id else "",
        f"<div>💡 {escape(hint)}</div>" if hint else "",
    ]
    return View("\n".join(text), box(RED, *html))
