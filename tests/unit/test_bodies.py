"""Slots and memory that addresses share, and bodies that are late."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from profilesvc.api import guard
from profilesvc.api import request as body
from profilesvc.api.guard import Capacity, Shares, Slot
from profilesvc.api.request import KB, SLOT, AwaitedBody, Upload
from profilesvc.domain.errors import ServiceError

Receive = Callable[[], Any]


def taken(shares: Shares, address: str) -> int:
    """How many more an address can take, one by one."""
    count = 0
    while shares.fits(address, 1):
        shares.add(address, 1)
        count += 1
    return count


def test_one_address_can_take_most_and_never_all() -> None:
    assert taken(Shares(lambda: 1000), "a") == 800
    assert taken(Shares(lambda: 1), "a") == 1


def test_a_part_is_left_for_each_new_address() -> None:
    shares = Shares(lambda: 1000)
    had = [taken(shares, f"192.0.2.{n}") for n in range(100)]
    assert min(had[:4]) > 0
    assert sum(had) <= 1000
    assert had == sorted(had, reverse=True)


def test_a_released_amount_can_be_reserved_again() -> None:
    shares = Shares(lambda: 10)
    count = taken(shares, "a")
    shares.add("a", -count)
    assert shares.held == 0
    assert taken(shares, "b") == count


def test_queued_requests_count() -> None:
    shares = Shares(lambda: 10)
    assert shares.fits("a", 1, 9)
    assert not shares.fits("a", 1, 10)


def place(shared: Capacity, address: str = "192.0.2.1") -> Slot:
    made = Slot(shared, address)
    made.enter()
    return made


def awaited(receive: Receive, held: Slot, announced: int | None = None) -> AwaitedBody:
    return AwaitedBody(announced, KB, {SLOT: held, "headers": []}, receive)


def pieces(*sizes: int, pause: float = 0.0) -> Receive:
    """A body in pieces of these sizes."""
    left = list(sizes)

    async def receive() -> Any:
        await asyncio.sleep(pause)
        size = left.pop(0)
        return {"type": "http.request", "body": bytes(size), "more_body": bool(left)}

    return receive


async def never() -> Any:
    await asyncio.Event().wait()


@pytest.fixture
def refusals() -> list[str]:
    return []


@pytest.fixture
def shared(refusals: list[str]) -> Capacity:
    return Capacity(lambda: 3, lambda: refusals.append("full"))


async def refused(reading: Any) -> str:
    with pytest.raises(ServiceError) as raised:
        await reading
    return raised.value.kind.code


async def test_a_request_has_no_slot_while_it_waits_for_its_body(shared: Capacity) -> None:
    mine = place(shared)
    reading = asyncio.ensure_future(awaited(never, mine, 100).read(KB))
    await asyncio.sleep(0)
    assert (shared.active.held, shared.waiting, shared.memory.held) == (0, 1, 100)
    reading.cancel()
    await asyncio.wait([reading])
    assert (shared.active.held, shared.waiting, shared.memory.held) == (0, 0, 0)
    assert len(await awaited(pieces(10, 20), mine).read(KB)) == 30
    assert (shared.active.held, shared.waiting, shared.memory.held) == (1, 0, 0)


async def test_without_a_slot_when_its_body_has_arrived_it_is_rejected(shared: Capacity, refusals: list[str]) -> None:
    mine = place(shared)
    body = awaited(pieces(1, 1, pause=0.01), mine)
    reading = asyncio.ensure_future(body.read(KB))
    await asyncio.sleep(0)
    others = [place(shared, f"192.0.2.{n}") for n in range(2, 5)]
    assert await refused(reading) == "SERVICE_UNAVAILABLE"
    assert refusals == ["full"]
    assert shared.active.held == len(others)


async def test_unfinished_bodies_of_all_have_bounded_room(shared: Capacity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MEMORY_BYTES", 1000)
    mine, other = place(shared), place(shared, "192.0.2.2")
    reading = asyncio.ensure_future(awaited(never, mine, 800).read(KB))
    await asyncio.sleep(0)
    assert await refused(awaited(never, mine, 200).read(KB)) == "SERVICE_UNAVAILABLE"
    assert len(await awaited(pieces(200), other, 200).read(KB)) == 200
    assert await refused(awaited(never, other).read(KB)) == "SERVICE_UNAVAILABLE"  # it may become a whole KB
    reading.cancel()
    await asyncio.wait([reading])


@pytest.mark.slow
async def test_a_body_has_a_least_rate(shared: Capacity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "GRACE_SECONDS", 0.2)
    assert await refused(awaited(never, place(shared)).read(KB)) == "REQUEST_TIMEOUT"
    trickle = pieces(*[1] * 1000, pause=0.05)
    assert await refused(awaited(trickle, place(shared)).read(KB)) == "REQUEST_TIMEOUT"
    monkeypatch.setattr(body, "MIN_BYTES_PER_SECOND", 1)
    assert len(await awaited(pieces(*[1] * 10, pause=0.05), place(shared)).read(KB)) == 10


async def test_a_body_ends_in_time_at_any_rate(shared: Capacity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_SECONDS", 0.2)
    assert await refused(awaited(pieces(*[9] * 100, pause=0.05), place(shared)).read(KB)) == "REQUEST_TIMEOUT"


async def test_no_more_is_collected_than_the_limit(shared: Capacity) -> None:
    taken_pieces = pieces(*[400] * 10)
    assert await refused(awaited(taken_pieces, place(shared)).read(KB)) == "PAYLOAD_TOO_LARGE"
    assert (await taken_pieces())["more_body"]  # the rest was not asked for


@pytest.mark.slow
async def test_a_form_with_a_file_has_a_rate_of_its_own(shared: Capacity, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow line has the time that it needs, and a client that only holds the connection has not."""

    async def length(receive: Receive) -> int:
        taken = bytearray()
        await awaited(receive, place(shared)).feed(Upload(10 * KB, KB), KB, taken.extend)
        return len(taken)

    monkeypatch.setattr(body, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(body, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(body, "UPLOAD_BYTES_PER_SECOND", 2 * KB)
    assert await length(pieces(*[KB] * 10, pause=0.05)) == 10 * KB
    assert await refused(length(pieces(*[1] * 1000, pause=0.05))) == "REQUEST_TIMEOUT"
    monkeypatch.setattr(body, "UPLOAD_SECONDS", 0.2)
    assert await refused(length(pieces(*[KB] * 10, pause=0.05))) == "REQUEST_TIMEOUT"
    assert await refused(length(pieces(*[KB] * 11))) == "PAYLOAD_TOO_LARGE"
