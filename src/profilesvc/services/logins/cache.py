"""The providers of connected logins that this process has used."""

import asyncio
from weakref import WeakValueDictionary

from profilesvc.provider.port import Provider

Slot = tuple[int, int, str]  # owner, connection, encrypted refresh token


class Logins:
    """The most recently used ones, each with its access token."""

    def __init__(self, size: int = 1_000) -> None:
        self._size = size
        self._providers: dict[Slot, Provider] = {}
        self._locks = WeakValueDictionary[int, asyncio.Lock]()

    def lock(self, owner_id: int) -> asyncio.Lock:
        """Return the lock of an owner's consents; it exists while it is used."""
        return self._locks.setdefault(owner_id, asyncio.Lock())

    def get(self, slot: Slot) -> Provider | None:
        provider = self._providers.pop(slot, None)
        if provider is not None:
            self._providers[slot] = provider
        return provider

    def put(self, slot: Slot, provider: Provider) -> None:
        while len(self._providers) >= self._size:
            del self._providers[next(iter(self._providers))]
        self._providers[slot] = provider
