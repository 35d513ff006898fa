"""The traffic that production may send without TLS: on this machine, or in a network of the operator (D-138)."""

import ipaddress
import re

_ALLOW = "or set PROFILESVC_PRIVATE_NETWORK=true if the network is private"


def redis_problem(url: str) -> str | None:
    """Return why production must not use this address of the counters, as the end of a sentence, or None."""
    scheme = url.partition("://")[0].removesuffix("+cluster")
    if scheme in ("memory", "unix", "rediss", "valkeys") or all(map(_is_this_machine, _hosts(url))):
        return None
    return f"must use TLS to another host in production: use rediss:// or valkeys://, {_ALLOW}"


def traces_problem(url: str) -> str | None:
    """Return why production must not send traces to this address, as the end of a sentence, or None."""
    if not url or url.lower().startswith("https://") or all(map(_is_this_machine, _hosts(url))):
        return None
    return f"must start with https:// in production, because traces name owners and requests; {_ALLOW}"


def _hosts(url: str) -> list[str]:
    """Return the hosts of a URL, which are several in a cluster."""
    addresses = re.split(r"[/?#\\]", url.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
    return [re.sub(r":[0-9]*\Z", "", address).strip("[]").lower() for address in addresses.split(",")]


def _is_this_machine(host: str) -> bool:
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
