"""A process that only delivers; `python -m benchmarks.delivering PUBLISHED`.

It looks for deliveries PUBLISHED times per second, as a server does that publishes as many events itself.
"""

import asyncio
import contextlib
import signal
import sys

import uvloop

from profilesvc.bootstrap import Runtime, open_services
from profilesvc.settings import load


async def main(published: float) -> None:
    """Deliver until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_services(load(), Runtime()) as services:
        print("delivering", flush=True)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1 / published if published else 60)
            if published:
                services.due.set()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1])))  # the loop of a server
