"""Forms with a file: larger and slower than other bodies, and whole even if the file is too large."""

from typing import NamedTuple

BYTES_PER_SECOND = 16 * 1024  # at least, after the first seconds; a phone in a bad network has three times as much
SECONDS = 400  # at most


class Upload(NamedTuple):
    """The rule for a form with a file, in bytes: how many may arrive, and how many of a file are kept.

    If a form with a larger file were rejected before it is read, the user would lose what was typed in its fields.
    """

    largest: int
    file: int
