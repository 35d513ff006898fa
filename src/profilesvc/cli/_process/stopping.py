"""Commands that run until a signal stops them."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """Run a block that SIGTERM and SIGINT end without an error."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, previous)
