"""Responses that a client may cache: entity tags and content codings.

RFC 9110 §8.8, §12.5.3 and §13.1.2. Only a response that may be cached has an ETag, and only
such a response is compressed, so no response with a secret is.
"""

import asyncio
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import xxhash
from quart import Response
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags

RequestHeaders = Mapping[bytes, Sequence[bytes]]
_CONDITIONS = frozenset({b"if-none-match", b"accept-encoding"})
_MIN_COMPRESSED, _MIN_ON_THREAD = 1024, 64 * 1024
_LEVEL, _LEVEL_OF_DOCUMENTS = 5, 9
# What servers in front add to the tag of a body that they compress: Apache -gzip and -br, Jetty --gzip, others ;gzip.
_SUFFIX = re.compile(r'(?:(?:--?|;)(?:gzip|br|zstd|deflate))+"', re.ASCII)
_GZIP = 31  # zlib's number for gzip's format with its largest window


def tag_of(body: bytes) -> str:
    """Return the entity tag of a body: weak, because compression keeps it. An attacker must not choose the body."""
    return f'W/"{xxhash.xxh3_128_hexdigest(body)}"'


def compressed_once(body: bytes) -> bytes | None:
    """Return a body compressed once for all clients, or None if it is too short."""
    return zlib.compress(body, _LEVEL_OF_DOCUMENTS, _GZIP) if len(body) > _MIN_COMPRESSED else None


async def negotiated(requested: RequestHeaders, response: Response, tag: str) -> Response:
    """Make a tagged response a 304 if the client has it already, and compress its body if the client accepts gzip."""
    if _CONDITIONS.isdisjoint(requested):
        return response
    if response.status_code != 200 or not isinstance(response.response, DataBody):
        return response
    known = parse_etags(_SUFFIX.sub('"', _joined(requested, b"if-none-match")))
    if known.star_tag or known.contains_weak(tag[3:-1]):
        response.status_code, response.response = 304, DataBody(b"")
        response.headers.remove("Content-Type")
        response.headers.remove("Content-Length")
        return response
    return await compressed(requested, response)


async def compressed(requested: RequestHeaders, response: Response) -> Response:
    """Compress the body of a response if the client accepts gzip. The length of the result reveals what repeats."""
    assert isinstance(response.response, DataBody), "a response with its whole body"
    body = response.response.data
    if len(body) > _MIN_COMPRESSED and _accepts_gzip(_joined(requested, b"accept-encoding")):
        packed = getattr(response, "compressed", None) or await _compressed(body)
        response.response = DataBody(packed)
        response.headers["Content-Length"] = str(len(packed))
        response.headers["Content-Encoding"] = "gzip"
    return response


async def _compressed(body: bytes) -> bytes:
    """Compress a long body on a thread, where zlib releases the interpreter's lock."""
    if len(body) <= _MIN_ON_THREAD:
        return zlib.compress(body, _LEVEL, _GZIP)
    return await asyncio.to_thread(zlib.compress, body, _LEVEL, _GZIP)


@lru_cache(64)  # clients send few different values
def _accepts_gzip(accepted: str) -> bool:
    parsed = parse_accept_header(accepted, Accept)
    return parsed.quality("gzip") > 0 and parsed.quality("gzip") >= parsed.quality("identity")


def _joined(requested: RequestHeaders, name: bytes) -> str:
    return b", ".join(requested.get(name, ())).decode("latin1")
