"""Forms with a file: larger and slower than other bodies, and whole even if the file is too large."""

from typing import NamedTuple

from werkzeug.http import parse_options_header

BYTES_PER_SECOND = 16 * 1024  # at least, after the first seconds; a phone in a bad network has three times as much
SECONDS = 400  # at most
_HEAD = 8 * 1024  # of a part of a form


class Upload(NamedTuple):
    """The rule for a form with a file, in bytes: how many may arrive, how many are kept, and how many of a file."""

    largest: int
    kept: int
    file: int


class Form:
    """Cuts off the parts of a form beyond `most` bytes and their heads; the check of a file finds that too large.

    If such a form were rejected before it is read, the user would lose what was typed in its fields.
    """

    def __init__(self, boundary: bytes, most: int) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._most, self._left = most + _HEAD, 0
        self._unread = bytearray(b"\r\n")  # the first delimiter has no line before it

    def cut(self, piece: bytes) -> bytes:
        """Return what is kept of what has arrived, except for a piece that may be the start of a delimiter."""
        self._unread += piece
        kept = b""
        while (end := self._unread.find(self._delimiter)) >= 0:
            kept += self._keep(end) + self._delimiter
            del self._unread[: len(self._delimiter)]
            self._left = self._most
        return kept + self._keep(len(self._unread) - len(self._delimiter) + 1)

    def _keep(self, count: int) -> bytes:
        count = max(count, 0)
        kept = bytes(self._unread[: min(count, self._left)])
        self._left = max(self._left - count, 0)
        del self._unread[:count]
        return kept

    def rest(self) -> bytes:
        """Return what is kept of the end."""
        return self._keep(len(self._unread))


def form_of(content_type: str, upload: Upload) -> Form | None:
    """Return what cuts a body of this type, or None if it is not a form with parts."""
    media_type, options = parse_options_header(content_type)
    if media_type != "multipart/form-data" or not options.get("boundary"):
        return None
    return Form(options["boundary"].encode("latin-1", "replace"), upload.file)
