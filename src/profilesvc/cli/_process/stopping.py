"""Commands that run until a signal stops them."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """End the block without an error on SIGTERM or SIGINT. `asyncio.run` in it cancels its main task and closes it."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _interrupt}
    earlier_handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Do what SIGINT does now: `asyncio.run` handles that, because an exception would break its loop."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
