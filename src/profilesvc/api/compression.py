"""How a body goes out: not at all to who has it already, packed to who can unpack it (RFC 9110 §8.8, §12.5.3, §13.1.2).

Only what carries an ETag is looked at, and only an answer that may be kept carries one: never what shows a secret.
"""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import xxhash
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags

Headers = list[tuple[bytes, bytes]]
ASKED = frozenset({b"if-none-match", b"accept-encoding"})  # what a request without has no use for any of this
_WORTH_PACKING, _LONG = 1024, 64 * 1024
_LEVEL, _LEVEL_OF_DOCUMENTS = 5, 9
_GZIP = 31  # zlib's name for gzip's format, with its largest window
_OF_A_BODY = frozenset({b"content-type", b"content-length"})


def tag_of(body: bytes) -> str:
    """The entity tag of a body: weak, as it stays the same when the body is packed. Not for what an attacker writes."""
    return f'W/"{xxhash.xxh3_128_hexdigest(body)}"'


def packed_once(body: bytes) -> bytes | None:
    """A body that is packed once for all who ask; None where that is not worth it."""
    return zlib.compress(body, _LEVEL_OF_DOCUMENTS, _GZIP) if len(body) > _WORTH_PACKING else None


async def fitted(
    asked: Mapping[bytes, Sequence[bytes]], status: int, headers: Headers, body: bytes, packed: bytes | None
) -> tuple[int, Headers, bytes]:
    """The answer as this request can take it; `packed` is the body's other form where there is one already."""
    tag = next((value for name, value in headers if name == b"etag"), None)
    if status != 200 or tag is None:
        return status, headers, body
    if _has(asked, tag):
        return 304, [header for header in headers if header[0] not in _OF_A_BODY], b""
    if len(body) <= _WORTH_PACKING or not _unpacks(_joined(asked, b"accept-encoding")):
        return status, headers, body
    packed = packed or await _packed(body)
    lengths = [(b"content-encoding", b"gzip"), (b"content-length", str(len(packed)).encode())]
    return status, [header for header in headers if header[0] != b"content-length"] + lengths, packed


async def _packed(body: bytes) -> bytes:
    """A long one on a thread, where zlib lets others go on."""
    if len(body) <= _LONG:
        return zlib.compress(body, _LEVEL, _GZIP)
    return await asyncio.to_thread(zlib.compress, body, _LEVEL, _GZIP)


def _has(asked: Mapping[bytes, Sequence[bytes]], tag: bytes) -> bool:
    given = parse_etags(_joined(asked, b"if-none-match"))
    return given.star_tag or given.contains_weak(tag.decode()[3:-1])


@lru_cache(64)  # there are few kinds of clients
def _unpacks(said: str) -> bool:
    accepted = parse_accept_header(said, Accept)
    return accepted.quality("gzip") > 0 and accepted.quality("gzip") >= accepted.quality("identity")


def _joined(asked: Mapping[bytes, Sequence[bytes]], name: bytes) -> str:
    return b", ".join(asked.get(name, ())).decode("latin1")
