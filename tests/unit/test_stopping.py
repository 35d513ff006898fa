"""Commands that a signal stops: what they have opened is closed, and nothing breaks the event loop."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
from quart import Quart

from profilesvc.cli._process.stopping import until_stopped
from profilesvc.server.serving import bind, serve_forever

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_outside_of_a_loop_ends_the_block(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with until_stopped():
        signal.raise_signal(number)
        pytest.fail("the block went on")
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_a_callback_of_a_loop_cancels_the_main_task(number: signal.Signals) -> None:
    """An exception in a callback would leave the loop as it is: `asyncio.run` could wait for its threads forever."""
    order: list[str] = []

    def interrupt() -> None:
        signal.raise_signal(number)
        order.append("the callback ends")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(interrupt)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            order.append("closed")

    with until_stopped():
        asyncio.run(main())
        pytest.fail("the block went on")
    assert order == ["the callback ends", "closed"]


@pytest.mark.parametrize("lost", [False, True])
def test_a_server_that_is_stopped_while_it_opens_does_not_start(lost: bool) -> None:
    """A cancellation may be lost, or be due when the services are open."""
    order: list[str] = []

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        signal.raise_signal(signal.SIGTERM)
        if lost:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        try:
            yield
        finally:
            await asyncio.sleep(0)
            order.append("closed")

    with bind("127.0.0.1", 0) as listener, until_stopped():
        serve_forever(app(order), [listener], lambda: None, lambda: None, opened=opened())
    assert order == ["closed"]


def app(order: list[str]) -> Any:
    """An app that notes its start."""
    made = Quart("started")
    made.before_serving(lambda: order.append("started"))
    return made
