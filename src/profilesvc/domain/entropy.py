"""Random bytes: from the operating system, or repeatable ones for tests and the lab."""

import hashlib
import secrets
from collections import Counter
from typing import Protocol

_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # of the ids of syncs


class Entropy(Protocol):
    """A source of random bytes."""

    def token_bytes(self, count: int) -> bytes: ...


class SystemEntropy:
    """The operating system's source."""

    token_bytes = staticmethod(secrets.token_bytes)


class SeededEntropy:
    """A source of the same bytes on every run: SHAKE-256 in counter mode over a seed. Rejected in production.

    Each length has its own counter, so that one more request does not change the secrets created after it.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._calls: Counter[int] = Counter()

    def token_bytes(self, count: int) -> bytes:
        self._calls[count] += 1
        return hashlib.shake_256(f"{self._seed}:{count}:{self._calls[count]}".encode()).digest(count)


def new_sync_id(now: int, entropy: Entropy) -> str:
    """Return `sync_` and 20 characters: ten of the time, so that ids sort by it, and ten random ones."""
    number = (now << 50) | (int.from_bytes(entropy.token_bytes(7), "big") & ((1 << 50) - 1))
    return "sync_" + "".join(_BASE32[(number >> shift) & 31] for shift in range(95, -1, -5))
