"""A recorded request as a `curl` command and as PHP, with placeholders for secrets."""

import json
from typing import Any
from urllib.parse import parse_qsl

import httpx

from profilesvc.lab.views.record import body_of
from profilesvc.lab.views.view import SECRET_FIELDS, hide_in

_MAX_BODY = 4_000
_HEADERS = ("Content-Type", "X-Idempotency-Key", "Origin")
_INDENT = "    "


def curl(request: httpx.Request) -> str:
    """Return a command for a shell in which BASE_URL and TOKEN are set."""
    parts = [f'curl -X {request.method} "$BASE_URL{_path(request)}"']
    scheme = request.headers.get("Authorization", "").partition(" ")[0]
    if scheme == "Basic":
        parts.append('-u "$CLIENT_ID:$CLIENT_SECRET"')
    elif scheme:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    parts += [f"-H {quoted(f'{name}: {value}')}" for name, value in _headers(request).items()]
    body = _body(request)
    if body is not None:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        if "client_secret=" in text:  # encoded by curl, because the reader puts a secret with a + into it
            parts += [f"--data-urlencode {quoted(f'{name}={value}')}" for name, value in parse_qsl(text)]
        else:
            parts.append(f"-d {quoted(text)}")
    return " \\\n  ".join(parts)


def php(request: httpx.Request) -> str:
    """Return a call of WordPress' HTTP API, in which $base_url and $token are set."""
    headers = {name: _php(value) for name, value in _headers(request).items()}
    scheme = request.headers.get("Authorization", "").partition(" ")[0]
    if scheme == "Basic":
        headers["Authorization"] = "'Basic ' . base64_encode( \"$client_id:$client_secret\" )"
    elif scheme:
        headers["Authorization"] = '"Bearer $token"'
    lines = [f"$response = wp_remote_request( $base_url . {_php(_path(request))}, ["]
    lines.append(f"{_INDENT}'method'  => {_php(request.method)},")
    if headers:
        pairs = ", ".join(f"{_php(name)} => {value}" for name, value in headers.items())
        lines.append(f"{_INDENT}'headers' => [ {pairs} ],")
    body = _body(request)
    if body is not None:
        value = _php(body) if isinstance(body, str) else f"wp_json_encode( {_php(body)} )"
        lines.append(f"{_INDENT}'body'    => {value},")
    return "\n".join([*lines, "] );"])


def _path(request: httpx.Request) -> str:
    return hide_in(request.url.raw_path.decode())


def _headers(request: httpx.Request) -> dict[str, str]:
    return {name: hide_in(request.headers[name]) for name in _HEADERS if name in request.headers}


def _body(request: httpx.Request) -> Any:
    """Return the body as JSON or text, or None if there is none or if it is too long to copy."""
    if not request.content or len(request.content) > _MAX_BODY:
        return None
    value = body_of(request)
    if value is not None:
        return _with_placeholders(value)
    pairs = parse_qsl(request.content.decode(errors="replace"))
    return "&".join(f"{name}={_placeholder(name, value)}" for name, value in pairs)


def _placeholder(name: str, value: str) -> str:
    return f"YOUR_{name.upper()}" if name in SECRET_FIELDS else hide_in(value)


def _with_placeholders(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _placeholder(name, inner) if isinstance(inner, str) else _with_placeholders(inner)
            for name, inner in value.items()
        }
    return [_with_placeholders(item) for item in value] if isinstance(value, list) else value


def quoted(text: str) -> str:
    """Quote a string for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _php(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_php(name)} => {_php(inner)}" for name, inner in value.items())
        return f"[ {pairs} ]" if pairs else "new stdClass()"
    if isinstance(value, list):
        return f"[ {', '.join(_php(item) for item in value)} ]" if value else "[]"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value)  # numbers, booleans and null are the same in PHP
