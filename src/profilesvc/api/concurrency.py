"""Slots for requests at work and memory for unfinished bodies, shared fairly between the addresses of callers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.addresses import client_address, network
from profilesvc.domain.errors import ServiceError

PLACE = "profilesvc.place"  # where the guard leaves a request's place in the ASGI scope
FULL = "The service is full."
ROOM_BYTES = 64 * 1024 * 1024
_TIMES_FREE = 4


class Shares:
    """An amount that addresses share: each may hold four times what is still free.

    So one address alone can use four fifths, many use less each, and something is left for the next one.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._by_address: dict[str, int] = {}
        self.held = 0

    def fits(self, address: str, amount: int, waiting: int = 0) -> bool:
        """Return whether the address may have that much more; `waiting` counts if it is more than what is held."""
        free = self._most() - max(self.held, waiting)
        return amount <= free and self._by_address.get(address, 0) + amount <= _TIMES_FREE * free

    def add(self, address: str, amount: int) -> None:
        """Add to what the address holds; a negative amount is given back."""
        self.held += amount
        now = self._by_address.get(address, 0) + amount
        if now:
            self._by_address[address] = now
        else:
            self._by_address.pop(address, None)


class Places:
    """What the requests of a process share. `on_full` is called when one must be refused in the middle."""

    def __init__(self, most: Callable[[], int], on_full: Callable[[], None]) -> None:
        self.at_work, self.room, self.on_full = Shares(most), Shares(lambda: ROOM_BYTES), on_full
        self.waiting = 0


class Place:
    """What one request holds: a place at work, or room for its body while it waits for that."""

    __slots__ = ("_at_work", "_owner", "_places", "address", "reads")

    def __init__(self, places: Places, scope: Any, forwarded: list[bytes], hops: int) -> None:
        peer, entries = scope.get("client"), [value.decode("latin1") for value in forwarded]
        self.address = client_address(peer[0] if peer else None, entries, hops)
        self._owner = "local" if self.address is None else network(self.address, 32, 64)
        self._places, self._at_work = places, False
        self.reads = False  # whether the body was asked for

    def fits(self, came_before: int) -> bool:
        """Return whether it may be worked on; `came_before` requests had no response yet when this one arrived."""
        return self._places.at_work.fits(self._owner, 1, came_before - self._places.waiting)

    def enter(self) -> None:
        """Count as at work."""
        self._places.at_work.add(self._owner, 1)
        self._at_work = True

    def leave(self) -> None:
        """Give the place back, if it is held."""
        if self._at_work:
            self._places.at_work.add(self._owner, -1)
            self._at_work = False

    @contextmanager
    def waiting_for(self, size: int) -> Iterator[None]:
        """Open a block in which the request waits for so many bytes: it has memory for them and no place at work.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE without memory before the block, or without a place after it.
        """
        places = self._places
        self._require(places.room.fits(self._owner, size))
        self.leave()
        places.room.add(self._owner, size)
        places.waiting += 1
        try:
            yield
        finally:
            places.waiting -= 1
            places.room.add(self._owner, -size)
        self._require(self.fits(0))
        self.enter()

    def _require(self, fits: bool) -> None:
        if not fits:
            self._places.on_full()
            raise ServiceError(SERVICE_UNAVAILABLE, FULL, retry_after=1)
