"""The addresses that a webhook may use. An owner cannot make the service call its own network.

An address must be public in every respect: the list of special addresses of IANA, those of clouds, and the ranges that
contain an IPv4 address are rejected. A host is a name by the rule of `hosts.py`, or an address in its usual
form, because resolvers accept others.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from profilesvc.domain.hosts import is_address, written_host

MAX_URL = 2048
_CHARACTERS = "must be a URL without spaces, and of ASCII characters after the host; write others as %XX"
_GLOBAL = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",  # the host of a machine on Azure
        "192.0.0.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "2001::/23",  # with Teredo, ORCHID and benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4 contains an IPv4 address
        "2620:4f:8000::/48",
        "3fff::/20",
    )
]
_LOCAL = ("localhost", "local", "localdomain", "internal", "intranet", "private", "lan", "home", "corp", "home.arpa")


def is_public(text: str) -> bool:
    """Return whether an IP address is one of the public internet."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address not in _GLOBAL):
        return False  # also IPv4-mapped addresses and NAT64
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _NOT_PUBLIC if network.version == address.version)


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an accepted URL. `host` is in A-labels, and without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host and port as in the Host header, without the usual port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The one form of URLs that lead to the same place."""
        return f"{self.scheme}://{self.netloc}{self.path}"


_PORTS = {"https": 443, "http": 80}


def parse_target(url: str, *, allow_private: bool) -> Target:
    """Return the parts of a URL that events may be sent to.

    Raises:
        ValueError: The URL breaks a rule, which the message names.
    """
    if len(url) > MAX_URL:
        raise ValueError("must have at most 2,048 characters")
    if any(char <= " " or char in '\\"<>^`{|}\x7f' for char in url):
        raise ValueError(_CHARACTERS)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("must be a valid URL with a port from 1 to 65535") from None
    _check_form(parts, allow_private=allow_private)
    host = _canonical(parts)
    target = Target(
        parts.scheme,
        host.strip("[]"),
        _PORTS[parts.scheme] if port is None else port,
        (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
    )
    if target.port == 0 or (not allow_private and target.port != 443 and target.port <= 1023):
        raise ValueError("must have port 443 or a port above 1023")
    if not allow_private and not _may_be_public(target.host, is_address=is_address(host)):
        raise ValueError("must not lead to a private address")
    return target


def _canonical(parts: SplitResult) -> str:
    name = parts.hostname or ""
    host = written_host(f"[{name}]" if "[" in parts.netloc else name)
    if is_address(host) and host[0] != "[" and host != name.removesuffix("."):
        raise ValueError("must contain a host name, or an address in its usual form")
    return host


def _check_form(parts: SplitResult, *, allow_private: bool) -> None:
    if parts.scheme not in (("https", "http") if allow_private else ("https",)):
        raise ValueError("must start with https://")
    if "@" in parts.netloc:
        raise ValueError("must not contain a user or password")
    if parts.fragment:
        raise ValueError("must not contain a fragment (#)")
    if not parts.hostname:
        raise ValueError("must contain a host")
    if not (parts.path + parts.query).isascii():
        raise ValueError(_CHARACTERS)


def _may_be_public(host: str, *, is_address: bool) -> bool:
    if is_address:
        return is_public(host)
    return "." in host and not any(host == name or host.endswith(f".{name}") for name in _LOCAL)
