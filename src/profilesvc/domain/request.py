"""The current request: its client's address, caller, origin, rate limits and deadline."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from profilesvc.contract.json import JsonObject
from profilesvc.domain.domains import Origin
from profilesvc.domain.rates import Counted

_WITH_PORT = re.compile(r"(\[[^]]*\]|[0-9.]+):[0-9]{1,5}\Z", re.ASCII)
_CACHED = 1024  # parsing an address costs more than a database query


@dataclass(slots=True)
class RequestInfo:
    """The state of a request; the defaults are those of a command line.

    `address` is the client's (D-50). `actor` is `client` until the caller is authenticated, then `user:ID` or
    `key:ID`. `origin_header` is None if the request does not come from a page, and `origin` is None if the header is
    not a web origin. `may_read` means that the page may read the response; it can change during the request.
    """

    address: str | None = None
    request_id: str | None = None
    actor: str = "operator"
    origin_header: str | None = None
    origin: Origin | None = None
    may_read: bool = False
    buckets: list[Counted] = field(default_factory=list)
    database_seconds: float = math.inf  # the remaining time for database work, if it is less than the usual limit
    route: str = "unknown"  # the documented route for metrics and logs, because a path could contain secrets
    outcome: str = "ok"  # or the code of the failure, for metrics
    language: str = "en"  # of the page that the request shows
    details: JsonObject | None = None  # those of the failure
    rejected: str | None = None  # what was wrong with the credentials, for the owner's log only
    # The owner of the key that calls, and its number or client id; also of a key that is rejected.
    key: tuple[int, int | str] | None = None
    background: bool = False  # its calls of the provider may use half of the quota

    @property
    def client_network(self) -> str:
        """The network that an access provider assigns to a customer: an IPv4 address or an IPv6 /64."""
        return "local" if self.address is None else network(self.address, 32, 64)

    @property
    def tightest(self) -> Counted | None:
        """The bucket with the fewest remaining requests; among empty ones, the one that is empty longest."""
        return min(self.buckets, key=lambda counted: (counted.standing.left, -counted.standing.wait), default=None)


class Finished(NamedTuple):
    """A request with its response."""

    key: tuple[int, int | str] | None  # None if it is not one of a key
    request: RequestInfo
    method: str  # an unusual one is `other`
    status: int
    at: int  # when it arrived, by the service's clock, in milliseconds
    lasted: int  # how long the response took, in milliseconds


# The only context variable, because audit rows, rate limits and the database's deadline need the request far below the
# API. The guard sets it, and tasks of the request inherit it. A request inside the process of its caller has its own.
serving: ContextVar[RequestInfo | None] = ContextVar("request", default=None)


def current_request() -> RequestInfo:
    """Return the current request, or the state of a command line outside of one."""
    return serving.get() or RequestInfo()


@contextmanager
def low_priority() -> Iterator[None]:
    """Mark the calls of the provider in this block as background work, which may use half of the quota."""
    token = serving.set(replace(current_request(), background=True))
    try:
        yield
    finally:
        serving.reset(token)


def client_address(peer: str | None, forwarded_for: list[str], trusted_hops: int) -> str | None:
    """Return the Nth address from the right of X-Forwarded-For behind N trusted proxies; the peer's if N is 0.

    The client can forge entries further left. Some proxies add the client's port. Return the peer if there are fewer
    than N entries, or if the entry is not an address.
    """
    if trusted_hops == 0:
        return _normal(peer)
    entries = [entry.strip() for header in forwarded_for for entry in header.split(",")]
    if len(entries) < trusted_hops:
        return _normal(peer)
    return _normal(entries[-trusted_hops]) or _normal(peer)


@lru_cache(_CACHED)
def _normal(text: str | None) -> str | None:
    """Return an address in canonical form, without a port; an IPv4 address written as IPv6 becomes IPv4."""
    text = text or ""
    if with_port := _WITH_PORT.match(text):
        text = with_port[1]
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def ip_prefix(address: str | None) -> str | None:
    """Return the network of an address as it is stored: the /24, or the /48 of IPv6."""
    return None if address is None else network(address, 24, 48)


@lru_cache(_CACHED)
def network(address: str, v4_bits: int, v6_bits: int) -> str:
    """Return the network of an address in CIDR notation."""
    bits = v4_bits if ip_address(address).version == 4 else v6_bits
    return str(ip_network(f"{address}/{bits}", strict=False))
