"""The schedule of docs/events.md to the second, by the moved clock, for each way in which a receiver fails."""

import asyncio
import contextlib
import itertools
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.webhook_rounds import channel, deliver, deliveries_of, happen, only, only_channel
from profilesvc.delivery import transport
from profilesvc.delivery.transport import Transport
from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND, FrozenClock
from profilesvc.services.context import Services
from support.network.receivers import Respond, close, drip, garbage, hang, receiving, responding
from support.network.tls import certificate

pytestmark = [
    pytest.mark.in_process("runs the rounds of the worker itself"),
    pytest.mark.parametrize("database", ["sqlite"]),
]
# As docs/events.md says: each up to a tenth later.
WAITS = [
    *(5 * SECOND, 5 * MINUTE, 30 * MINUTE),
    *(2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR),
]
FAILING: dict[str, Respond | None] = {
    "refuses": None,
    "hangs": hang,
    "one byte at a time": drip,
    "garbage": garbage,
    "closes": close,
    "500": responding(500),
    "404": responding(404),
    "redirect": responding(307, "Location: http://127.0.0.1:1/"),
    "429 without Retry-After": responding(429),
    "500 with 10 MB": responding(500, body=b"x" * 10_000_000),
}


@contextlib.asynccontextmanager
async def at(respond: Respond | None) -> AsyncIterator[str]:
    """The URL of a receiver; without a response, that of a port at which no program listens."""
    if respond is None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
        return
    async with receiving(respond) as receiver:
        yield receiver.url


async def attempts(services: Services, by: Transport, clock: FrozenClock) -> list[int]:
    """Deliver until nothing is pending, and return when each attempt was made."""
    made = []
    while True:
        await deliver(services, by)
        row, attempt = await only(services)
        made.append(attempt["at"])
        assert row.tries == len(made)
        if row.next_at is None:
            return made
        clock.advance(milliseconds=row.next_at - clock.now() - 1)
        await deliver(services, by)
        assert (await only(services))[0].tries == len(made), "no attempt before its time"
        clock.advance(milliseconds=1)


def assert_by_the_schedule(made: list[int]) -> None:
    waited = [after - before for before, after in itertools.pairwise(made)]
    assert len(waited) == len(WAITS)
    assert all(plan <= wait <= plan + plan // 10 for plan, wait in zip(WAITS, waited, strict=True))
    jitter = {wait / plan for plan, wait in zip(WAITS, waited, strict=True)}
    assert len(jitter) == len(WAITS), "each wait has a chance of its own"


@pytest.mark.parametrize("respond", FAILING.values(), ids=FAILING)
@pytest.mark.slow
async def test_A161_the_attempts_follow_the_schedule(
    allowed: Services, local: Transport, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, respond: Respond | None
) -> None:
    monkeypatch.setattr(transport, "SECONDS", 0.3)
    async with at(respond) as url:
        await channel(allowed, url)
        await happen(allowed)
        assert_by_the_schedule(await attempts(allowed, local, clock))
    row, _ = await only(allowed)
    assert (row.state, row.finished_at) == ("failed", clock.now())
    assert (await only_channel(allowed)).disabled_at is None, "it has failed for less than five days"


async def test_A161_so_do_those_that_fail_by_tls(allowed: Services, clock: FrozenClock, tmp_path: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate(tmp_path, 1))
    strict = Transport(allow_private=True)
    async with receiving(responding(200), server) as receiver:
        await channel(allowed, f"https://127.0.0.1:{receiver.port}/")
        await happen(allowed)
        assert_by_the_schedule(await attempts(allowed, strict, clock))
        assert receiver.got == [], "nothing is sent before the certificate is checked"
    await strict.aclose()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("asked", "least"), [("1", None), ("3600", HOUR), ("864000", DAY)])
async def test_A161_retry_after_delays_each_attempt(
    allowed: Services, local: Transport, clock: FrozenClock, status: int, asked: str, least: int | None
) -> None:
    """It never makes a wait shorter, and none longer than a day."""
    async with receiving(responding(status, f"Retry-After: {asked}")) as receiver:
        await channel(allowed, receiver.url)
        await happen(allowed)
        made = await attempts(allowed, local, clock)
    if least is None:
        assert_by_the_schedule(made)
        return
    for plan, (before, after) in zip(WAITS, itertools.pairwise(made), strict=False):
        assert max(plan, least) <= after - before <= max(plan + plan // 10, least)
    if least == DAY:
        assert (await only_channel(allowed)).disabled_reason == "failing"
        assert made[-1] - made[0] == 5 * DAY
    else:
        assert len(made) == 1 + len(WAITS)


async def test_a_webhook_that_fails_for_five_days_is_disabled_with_its_next_attempt(
    allowed: Services, local: Transport, clock: FrozenClock
) -> None:
    began = clock.now()
    async with receiving(responding(500)) as receiver:
        await channel(allowed, receiver.url)
        for day in range(5):
            clock.advance(milliseconds=began + day * DAY - clock.now())
            await happen(allowed)
            await deliver(allowed, local)
            assert (await only_channel(allowed)).disabled_at is None
        clock.advance(milliseconds=began + 5 * DAY - clock.now())
        await happen(allowed)
        await deliver(allowed, local)
        found = await only_channel(allowed)
        assert (found.disabled_at, found.disabled_reason) == (clock.now(), "failing")
        sent = len(receiver.got)
        clock.advance(milliseconds=2 * DAY)
        for _ in range(8):
            await deliver(allowed, local)
        assert len(receiver.got) == sent, "a disabled webhook gets nothing"


async def test_one_call_at_a_time_after_a_failure_and_four_when_it_is_well(
    allowed: Services, local: Transport, clock: FrozenClock
) -> None:
    calls = most = 0
    is_well = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls, most
        calls += 1
        most = max(most, calls)
        await asyncio.sleep(0.05)
        calls -= 1
        await responding(200 if is_well.is_set() else 500)(reader, writer)

    async with receiving(respond) as receiver:
        await channel(allowed, receiver.url)
        for _ in range(8):
            await happen(allowed)
        await deliver(allowed, local)
        assert (most, len(receiver.got)) == (4, 4), "the receiver has not failed yet"
        most = 0
        clock.advance(milliseconds=6 * SECOND)
        await deliver(allowed, local)
        assert most == 1
        is_well.set()
        clock.advance(milliseconds=HOUR)
        for _ in range(8):
            await deliver(allowed, local)
        states = {row.state for row in await deliveries_of(allowed)}
        assert (states, most) == ({"delivered"}, 4)
