"""Ids of syncs."""

from profilesvc.domain.entropy import Entropy

_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"


def new_sync_id(now: int, entropy: Entropy) -> str:
    """Return `sync_` and 20 characters: ten of the time, so that ids sort by it, and ten random ones."""
    number = (now << 50) | (int.from_bytes(entropy.token_bytes(7), "big") & ((1 << 50) - 1))
    return "sync_" + "".join(_BASE32[(number >> shift) & 31] for shift in range(95, -1, -5))
