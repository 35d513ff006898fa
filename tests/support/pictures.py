"""Pictures for uploads."""

import struct
import zlib


def png(side: int = 300, size: int = 12_000) -> bytes:
    """A picture with random-looking bytes after its header, so that it has the size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x" * size) + chunk(b"IEND", b"")
