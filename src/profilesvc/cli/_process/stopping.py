"""Commands that run until they are told to stop."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """A block that SIGTERM and SIGINT end without an error, at whatever point it is."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
