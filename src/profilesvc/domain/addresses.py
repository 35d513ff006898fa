"""Client addresses: the trusted one, and its network."""

from functools import lru_cache
from ipaddress import ip_address, ip_network

_CACHED = 1024  # parsing an address costs more than a database query


def client_address(peer: str | None, forwarded_for: list[str], trusted_hops: int) -> str | None:
    """Return the Nth address from the right of X-Forwarded-For behind N trusted proxies; the peer's if N is 0.

    The client can forge entries further left. Return the peer if there are fewer than N entries, or if the entry is
    not an address.
    """
    if trusted_hops == 0:
        return _normal(peer)
    entries = [entry.strip() for header in forwarded_for for entry in header.split(",")]
    if len(entries) < trusted_hops:
        return _normal(peer)
    return _normal(entries[-trusted_hops]) or _normal(peer)


@lru_cache(_CACHED)
def _normal(text: str | None) -> str | None:
    """Return an address in canonical form; an IPv4 address written as IPv6 becomes IPv4."""
    try:
        address = ip_address((text or "").strip("[]"))
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


@lru_cache(_CACHED)
def network(address: str, v4_bits: int, v6_bits: int) -> str:
    """Return the network of an address in CIDR notation."""
    bits = v4_bits if ip_address(address).version == 4 else v6_bits
    return str(ip_network(f"{address}/{bits}", strict=False))
