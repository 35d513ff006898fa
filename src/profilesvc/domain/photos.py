"""The rules of the provider for photos: format and size, read from the bytes and not from what a browser claims.

A photo is published without its metadata, which has the position and the camera of who took it.
"""

import re
import struct
import zlib
from collections.abc import Iterator
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
        kind: MediaType = "image/png"
        sides = struct.unpack(">II", content[16:24]) if content[12:16] == b"IHDR" and len(content) >= 24 else None
    elif content.startswith(b"\xff\xd8\xff"):
        kind, sides = "image/jpeg", _jpeg_sides(content)
    else:
        raise ValueError("must be a JPEG or PNG image")
    if sides is None:
        raise ValueError("is not a complete image")
    if not SMALLEST <= len(content) <= LARGEST:
        raise ValueError("must have 10 KB to 5 MB")
    if min(sides) < SIDE:
        raise ValueError(f"must have at least {SIDE} pixels on each side")
    return kind


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


# What a PNG file needs to be shown: all other chunks are metadata, such as eXIf, tEXt, iTXt, zTXt and tIME.
_CHUNKS = frozenset(b"IHDR PLTE IDAT tRNS cHRM gAMA iCCP sBIT sRGB cICP bKGD pHYs acTL fcTL fdAT".split())
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a segment
# What a JPEG file needs to be shown (ITU-T T.81 table B.1): frames, tables, scans, DNL, DRI, DHP and EXP; of the
# segments of applications only those that say how colours are stored: JFIF, ICC and Adobe.
_NEEDED = _SIZES | {0xC4, 0xCC} | (_ALONE - {0x01}) | frozenset(range(0xDA, 0xE0))
_KEPT_APPS = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
_JFIF_THUMBNAIL = 16  # where the width and height of a small copy are, which may show what was cut off later
_FILL = re.compile(rb"\xff+(?=\xff)")
_EXIF = b"Exif\0\0"
_START_OF_SCAN, _END = 0xDA, 0xD9
_AFTER_SCAN = re.compile(rb"\xff++[^\x00\xd0-\xd7]")  # after a scan: the next marker
_ORIENTATION = 0x0112  # of TIFF: how the photo is turned when it is shown
_INCOMPLETE = "is not a complete image"


def without_metadata(content: bytes) -> bytes:
    """Return a photo without its metadata and whatever follows its end; only its orientation is kept.

    Raises:
        ValueError: why the provider would reject it.
    """
    if content.startswith(_PNG):
        return _PNG + b"".join(_png_chunks(content))
    if content.startswith(b"\xff\xd8\xff"):
        return b"\xff\xd8" + b"".join(_jpeg_segments(content))
    raise ValueError("must be a JPEG or PNG image")


def _png_chunks(content: bytes) -> Iterator[bytes]:
    at = len(_PNG)
    for _ in range(_SEGMENTS * 10):
        length, kind = int.from_bytes(content[at : at + 4]), content[at + 4 : at + 8]
        end = at + 12 + length
        if len(kind) < 4 or end > len(content):
            break
        if kind == b"IEND":
            yield _png_chunk(kind, b"")
            return
        if kind in _CHUNKS:
            yield content[at:end]
        elif kind == b"eXIf" and (turned := _orientation(content[at + 8 : end - 4])):
            yield _png_chunk(kind, _tiff(turned))
        at = end
    raise ValueError(_INCOMPLETE)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _jpeg_segments(content: bytes) -> Iterator[bytes]:
    at = 2
    for _ in range(_SEGMENTS):
        if filled := _FILL.match(content, at):  # a marker may be filled up
            at = filled.end()
        if content[at : at + 1] != b"\xff" or at + 2 > len(content):
            break
        marker = content[at + 1]
        if marker == _END:
            yield content[at : at + 2]
            return
        end = at + 2 if marker in _ALONE else at + 2 + int.from_bytes(content[at + 2 : at + 4])
        if end > len(content) or (marker not in _ALONE and end < at + 4):
            break
        if marker == _START_OF_SCAN:
            marker_at = _AFTER_SCAN.search(content, end)
            if marker_at is None:  # some cameras leave out the end
                yield content[at:] + b"\xff\xd9"
                return
            end = marker_at.end() - 2
        yield from _without_details(marker, content[at:end])
        at = end
    raise ValueError(_INCOMPLETE)


def _without_details(marker: int, segment: bytes) -> Iterator[bytes]:
    if marker == 0xE1 and segment[4:].startswith(_EXIF):
        if turned := _orientation(segment[4 + len(_EXIF) :]):
            data = _EXIF + _tiff(turned)
            yield b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data
    elif marker == 0xE0 and segment[4:].startswith(_KEPT_APPS[marker]) and len(segment) >= _JFIF_THUMBNAIL + 2:
        yield b"\xff\xe0\0\x10" + segment[4:_JFIF_THUMBNAIL] + b"\0\0"
    elif marker in _NEEDED or segment[4:].startswith(_KEPT_APPS.get(marker, b"\0none")):
        yield segment


def _orientation(tiff: bytes) -> int:
    """Return the orientation in the first directory of TIFF data; 0 if it is normal, missing or malformed."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None or len(tiff) < 8:
        return 0
    at = struct.unpack_from(f"{order}I", tiff, 4)[0]
    count = struct.unpack_from(f"{order}H", tiff, at)[0] if at + 2 <= len(tiff) else 0
    for entry in range(at + 2, min(at + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind, number, value = struct.unpack_from(f"{order}HHIH", tiff, entry)
        if (tag, kind, number) == (_ORIENTATION, 3, 1):
            return value if 2 <= value <= 8 else 0
    return 0


def _tiff(orientation: int) -> bytes:
    """Return TIFF data with nothing but an orientation."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, _ORIENTATION, 3, 1, orientation, 0, 0)
