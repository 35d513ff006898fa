"""The work of a block, counted instead of timed, so that a busy machine changes nothing."""

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType


class Work:
    """The calls of functions, of Python and of C, that this thread has made in the block."""

    calls = 0


@contextlib.contextmanager
def counted() -> Iterator[Work]:
    """Count the calls of a block. Long work of one C function counts as one call: see `make fuzz` for its time."""
    work = Work()

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            work.calls += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield work
    finally:
        sys.setprofile(before)
