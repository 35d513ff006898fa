"""HTTP caching and compression: Cache-Control, Vary, entity tags and content codings.

RFC 9111 §3, RFC 9110 §8.8, §12.5.3, §12.5.5 and §13.1.2. Only a response that may be cached has an ETag, and only
such a response is compressed, so no response with a secret is.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import xxhash
from quart import Response
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags

RequestHeaders = Mapping[bytes, Sequence[bytes]]
Header = tuple[bytes, bytes]
_CONDITIONS = frozenset({b"if-none-match", b"accept-encoding"})
_MIN_COMPRESSED, _MIN_ON_THREAD = 1024, 64 * 1024
_LEVEL, _LEVEL_OF_DOCUMENTS = 5, 9
_GZIP = 31  # zlib's number for gzip's format with its largest window
# Also for responses that may not be cached, because a cache may be configured to store them all the same.
_BY_CALLER = (b"Authorization", ("/api/", "/oauth2/", "/metrics"))
_BY_SESSION = (b"Cookie", ("/dashboard",))
_PRIVATE = (b"cache-control", b"private, no-store")


def cache_headers(path: str, headers: Iterable[Header]) -> list[Header]:
    """Return Vary for a response with these headers, and Cache-Control if it has none."""
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
    """Return the entity tag of a body: weak, because compression keeps it. An attacker must not choose the body."""
    return f'W/"{xxhash.xxh3_128_hexdigest(body)}"'


def compressed_once(body: bytes) -> bytes | None:
    """Return a body compressed once for all clients, or None if it is too short."""
    return zlib.compress(body, _LEVEL_OF_DOCUMENTS, _GZIP) if len(body) > _MIN_COMPRESSED else None


async def negotiated(requested: RequestHeaders, response: Response) -> Response:
    """Make the response a 304 if the client has it already, and compress its body if the client accepts gzip."""
    if _CONDITIONS.isdisjoint(requested):
        return response
    tag = response.headers.get("ETag")
    if response.status_code != 200 or tag is None or not isinstance(response.response, DataBody):
        return response
    if _has(requested, tag):
        response.status_code, response.response = 304, DataBody(b"")
        response.headers.remove("Content-Type")
        response.headers.remove("Content-Length")
        return response
    body = response.response.data
    if len(body) > _MIN_COMPRESSED and _accepts_gzip(_joined(requested, b"accept-encoding")):
        compressed = getattr(response, "compressed", None) or await _compressed(body)
        response.response = DataBody(compressed)
        response.headers["Content-Length"] = str(len(compressed))
        response.headers["Content-Encoding"] = "gzip"
    return response


async def _compressed(body: bytes) -> bytes:
    """Compress a long body on a thread, where zlib releases the interpreter's lock."""
    if len(body) <= _MIN_ON_THREAD:
        return zlib.compress(body, _LEVEL, _GZIP)
    return await asyncio.to_thread(zlib.compress, body, _LEVEL, _GZIP)


def _has(requested: RequestHeaders, tag: str) -> bool:
    tags = parse_etags(_joined(requested, b"if-none-match"))
    return tags.star_tag or tags.contains_weak(tag[3:-1])


@lru_cache(64)  # clients send few different values
def _accepts_gzip(accepted: str) -> bool:
    parsed = parse_accept_header(accepted, Accept)
    return parsed.quality("gzip") > 0 and parsed.quality("gzip") >= parsed.quality("identity")


def _joined(requested: RequestHeaders, name: bytes) -> str:
    return b", ".join(requested.get(name, ())).decode("latin1")
