"""Commands that run until a signal stops them."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """End the block without an error on SIGTERM or SIGINT."""
    earlier_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, earlier_handler)
