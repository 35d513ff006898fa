"""Addresses of clients: which one is to be believed, and how much of it is kept."""

from functools import lru_cache
from ipaddress import ip_address, ip_network

_REMEMBERED = 1024  # parsing an address costs more than a look at the database


def client_address(peer: str | None, forwarded_for: list[str], trusted_hops: int) -> str | None:
    """The Nth address from the right of X-Forwarded-For with N trusted proxies in front; the peer's own with none.

    Entries further left are written by the client and can be forged. With fewer entries than hops, or an entry that is
    not an address, return the peer.
    """
    if trusted_hops == 0:
        return _normal(peer)
    entries = [entry.strip() for header in forwarded_for for entry in header.split(",")]
    if len(entries) < trusted_hops:
        return _normal(peer)
    return _normal(entries[-trusted_hops]) or _normal(peer)


@lru_cache(_REMEMBERED)
def _normal(text: str | None) -> str | None:
    """An address in its one spelling; an IPv4 address that came as IPv6 is an IPv4 address."""
    try:
        address = ip_address((text or "").strip("[]"))
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


@lru_cache(_REMEMBERED)
def network(address: str, v4_bits: int, v6_bits: int) -> str:
    """The network of an address in CIDR notation."""
    bits = v4_bits if ip_address(address).version == 4 else v6_bits
    return str(ip_network(f"{address}/{bits}", strict=False))
