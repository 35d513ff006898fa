"""HTTP caching: who may keep a response, what it depends on, its entity tag and its content coding.

RFC 9111 §3, RFC 9110 §8.8, §12.5.3, §12.5.5 and §13.1.2. Only a response that may be kept carries an ETag, so nothing
that shows a secret is compressed.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import xxhash
from quart import Quart, Response
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags

from profilesvc.api.request import headers_of, this_request

Asked = Mapping[bytes, Sequence[bytes]]
Header = tuple[bytes, bytes]
_CONDITIONS = frozenset({b"if-none-match", b"accept-encoding"})
_WORTH_PACKING, _LONG = 1024, 64 * 1024
_LEVEL, _LEVEL_OF_DOCUMENTS = 5, 9
_GZIP = 31  # zlib's number for gzip's format with its largest window
# Also for responses that may not be kept: a cache may have been configured to keep them all the same.
_BY_CALLER = (b"Authorization", ("/api/", "/oauth2/", "/metrics"))
_BY_SESSION = (b"Cookie", ("/dashboard",))
_PRIVATE = (b"cache-control", b"private, no-store")


def cache_headers(path: str, headers: Iterable[Header]) -> list[Header]:
    """Return Vary for a response with these headers, and Cache-Control if it does not say who may keep it."""
    policy, vary, is_tagged = None, b"Origin", False
    for name, value in headers:
        if name == b"cache-control":
            policy = value
        elif name == b"etag":
            is_tagged = True
    if policy is None or b"no-store" in policy or b"private" in policy:
        for header, paths in (_BY_CALLER, _BY_SESSION):
            if path.startswith(paths):
                vary += b", " + header
    if is_tagged:
        vary += b", Accept-Encoding"
    return [(b"vary", vary)] if policy is not None else [_PRIVATE, (b"vary", vary)]


def tag_of(body: bytes) -> str:
    """Return the entity tag of a body: weak, because compression does not change it. Not for an attacker's text."""
    return f'W/"{xxhash.xxh3_128_hexdigest(body)}"'


def packed_once(body: bytes) -> bytes | None:
    """Return a body compressed once for all clients; None if that is not worth it."""
    return zlib.compress(body, _LEVEL_OF_DOCUMENTS, _GZIP) if len(body) > _WORTH_PACKING else None


def install(app: Quart) -> None:
    """Answer conditions and compress the responses of an app."""

    @app.after_request
    async def fit(response: Response) -> Response:
        return await fitted(headers_of(cast(Any, this_request().scope)), response)


async def fitted(asked: Asked, response: Response) -> Response:
    """Make it 304 if the client has it already, and compress its body if the client accepts that."""
    if _CONDITIONS.isdisjoint(asked):
        return response
    tag = response.headers.get("ETag")
    if response.status_code != 200 or tag is None or not isinstance(response.response, DataBody):
        return response
    if _has(asked, tag):
        response.status_code, response.response = 304, DataBody(b"")
        response.headers.remove("Content-Type")
        response.headers.remove("Content-Length")
        return response
    body = response.response.data
    if len(body) > _WORTH_PACKING and _unpacks(_joined(asked, b"accept-encoding")):
        packed = getattr(response, "packed", None) or await _packed(body)
        response.response = DataBody(packed)
        response.headers["Content-Length"] = str(len(packed))
        response.headers["Content-Encoding"] = "gzip"
    return response


async def _packed(body: bytes) -> bytes:
    """Compress a long body on a thread, where zlib releases the interpreter's lock."""
    if len(body) <= _LONG:
        return zlib.compress(body, _LEVEL, _GZIP)
    return await asyncio.to_thread(zlib.compress, body, _LEVEL, _GZIP)


def _has(asked: Asked, tag: str) -> bool:
    given = parse_etags(_joined(asked, b"if-none-match"))
    return given.star_tag or given.contains_weak(tag[3:-1])


@lru_cache(64)  # there are few kinds of clients
def _unpacks(accepted: str) -> bool:
    parsed = parse_accept_header(accepted, Accept)
    return parsed.quality("gzip") > 0 and parsed.quality("gzip") >= parsed.quality("identity")


def _joined(asked: Asked, name: bytes) -> str:
    return b", ".join(asked.get(name, ())).decode("latin1")
