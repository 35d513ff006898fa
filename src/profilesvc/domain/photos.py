"""Which photos the provider accepts: their format and size, read from the bytes and not from what a browser claims."""

import struct
from typing import Literal

MediaType = Literal["image/jpeg", "image/png"]
SMALLEST, LARGEST = 10 * 1024, 5 * 1024 * 1024  # bytes
SIDE = 250  # pixels of each side, at least
_PNG = b"\x89PNG\r\n\x1a\n"
_SEGMENTS = 1_000  # before the frame, at most; a file of 5 MB has room for a million empty ones
_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # the JPEG markers that start a frame


def media_type(content: bytes) -> MediaType:
    """Return the format of a photo.

    Raises:
        ValueError: why the provider would reject it.
    """
    if content.startswith(_PNG):
        found: MediaType = "image/png"
        sides = struct.unpack(">II", content[16:24]) if content[12:16] == b"IHDR" and len(content) >= 24 else None
    elif content.startswith(b"\xff\xd8\xff"):
        found, sides = "image/jpeg", _jpeg_sides(content)
    else:
        raise ValueError("must be a JPEG or PNG image")
    if sides is None:
        raise ValueError("is not a complete image")
    if not SMALLEST <= len(content) <= LARGEST:
        raise ValueError("must have 10 KB to 5 MB")
    if min(sides) < SIDE:
        raise ValueError(f"must have at least {SIDE} pixels on each side")
    return found


def _jpeg_sides(content: bytes) -> tuple[int, ...] | None:
    at = 2
    for _ in range(_SEGMENTS):
        if at + 9 > len(content) or content[at] != 0xFF:
            break
        marker, length = content[at + 1], int.from_bytes(content[at + 2 : at + 4])
        if marker in _SIZES:
            return struct.unpack(">HH", content[at + 5 : at + 9])
        at += 2 + length
    return None
