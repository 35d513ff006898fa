"""The addresses of host names that owners choose (D-131).

A name server that is silent may stop only the owner whose name it serves. So these lookups have a deadline and can be
cancelled, an owner has one at a time, and a name that failed is not looked up again for a minute. Names that the
operator configures (provider, mail, identity, database) never wait for them: they use the resolver of the event loop,
whose few threads cannot be interrupted and which no owner can reach.
"""

import asyncio
import contextlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import dns.asyncresolver
import dns.exception
import dns.resolver

from profilesvc.services.context import Resolver, Services

SECONDS = 4.0  # for a lookup
_QUESTION_SECONDS = 3.0  # less, because some name servers respond to the question for IPv4 addresses only
_MOST_SECONDS = 60.0  # for a name without an address, and at most for one with addresses
_MOST_NAMES = 4_096  # names
_MOST_ADDRESSES = 16  # of a name
_WAITING = 256  # lookups of an owner behind the one that runs
_AT_A_TIME = 100  # lookups of all owners; each has a socket for IPv4 and one for IPv6 addresses
_LOOPBACK = ["127.0.0.1", "::1"]
Parsed = TypeVar("Parsed")


class Resolved(NamedTuple):
    """The addresses of a name, and for how many seconds they may be used."""

    addresses: list[str]
    seconds: float


Query = Callable[[str], Awaitable[Resolved]]


@dataclass
class _Turn:
    """The lookups of an owner: how many there are, and which of them runs."""

    lookups: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Lookups:
    """The lookups of this process, a `Resolver`."""

    def __init__(self, query: Query | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._query, self._clock = query or SystemNames().query, clock
        self._turns: dict[int, _Turn] = {}
        self._slots = asyncio.Semaphore(_AT_A_TIME)
        self._cache: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()  # until when, and the addresses if any

    async def __call__(self, owner_id: int, host: str) -> list[str]:
        """Return the addresses of a host.

        Raises:
            OSError: It has none, its name server did not respond in time, or the owner has too many lookups.
        """
        if _is_address(host):
            return [host]
        addresses = self._remembered(host)
        if addresses is None:
            async with self._turn(owner_id):
                addresses = self._remembered(host)  # another lookup of the owner may have had the same name
                if addresses is None:
                    addresses = await self._look_up(host)
        if not addresses:
            raise OSError("the host name has no address")
        return addresses

    @contextlib.asynccontextmanager
    async def _turn(self, owner_id: int) -> AsyncIterator[None]:
        """Wait until the owner has no other lookup. Owners get a free slot in the order in which they asked."""
        turn = self._turns.setdefault(owner_id, _Turn())
        if turn.lookups > _WAITING:
            raise OSError("too many lookups of the owner are waiting")
        turn.lookups += 1
        try:
            async with turn.lock, self._slots:
                yield
        finally:
            turn.lookups -= 1
            if turn.lookups == 0:
                del self._turns[owner_id]

    async def _look_up(self, host: str) -> list[str]:
        try:
            async with asyncio.timeout(SECONDS):
                resolved = await self._query(host)
        except (OSError, dns.exception.DNSException):  # OSError: also TimeoutError
            resolved = Resolved([], _MOST_SECONDS)
        addresses = resolved.addresses[:_MOST_ADDRESSES]
        if len(self._cache) >= _MOST_NAMES:
            self._cache.popitem(last=False)
        self._cache.pop(host, None)
        self._cache[host] = self._clock() + min(resolved.seconds, _MOST_SECONDS), addresses
        return addresses

    def _remembered(self, host: str) -> list[str] | None:
        until, addresses = self._cache.get(host, (0.0, []))
        return addresses if self._clock() < until else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class SystemNames:
    """Names by the hosts file and the name servers of the system. The files are read again when they have changed."""

    def __init__(
        self, hosts: Path = Path("/etc/hosts"), servers: Callable[[], dns.asyncresolver.Resolver] | None = None
    ) -> None:
        self._hosts = _File(hosts, _parsed_hosts)
        self._servers = servers or _File(Path("/etc/resolv.conf"), _parsed_servers)

    async def query(self, host: str) -> Resolved:
        """Return the addresses of a host, those of IPv4 first because more networks have it.

        Like getaddrinfo, look in the hosts file first, then ask for the name and for the ones of the search list.

        Raises:
            OSError: There is no name server.
            dns.exception.DNSException: The name has no address, or no name server has responded.
        """
        if addresses := self._hosts().get(host):
            return Resolved(addresses, 0)
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 section 6.3
            return Resolved(_LOOPBACK, 0)
        servers = self._servers()
        questions = (servers.resolve(host, kind, search=True, lifetime=_QUESTION_SECONDS) for kind in ("A", "AAAA"))
        answers = await asyncio.gather(*questions, return_exceptions=True)
        responses = [answer for answer in answers if not isinstance(answer, BaseException)]
        if not responses:
            raise next(answer for answer in answers if isinstance(answer, BaseException))
        addresses = [str(record.address) for answer in responses for record in answer]
        return Resolved(addresses, min(answer.chaining_result.minimum_ttl for answer in responses))


class _File(Generic[Parsed]):
    """The content of a small file, parsed again when the file has changed."""

    def __init__(self, path: Path, parse: Callable[[Path], Parsed]) -> None:
        self._path, self._parse = path, parse
        self._parsed: tuple[int, Parsed] | None = None

    def __call__(self) -> Parsed:
        """Return the parsed file; what `parse` makes of a file that does not exist."""
        try:
            changed_at = self._path.stat().st_mtime_ns
        except OSError:
            changed_at = 0
        if self._parsed is None or self._parsed[0] != changed_at:
            self._parsed = changed_at, self._parse(self._path)
        return self._parsed[1]


def _parsed_hosts(path: Path) -> dict[str, list[str]]:
    """Return the addresses by name, in lower case (hosts(5))."""
    by_name: dict[str, list[str]] = {}
    try:
        lines = path.read_text(errors="replace").lower().splitlines()
    except OSError:
        return by_name
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        if _is_address(address):
            for name in names:
                by_name.setdefault(name, []).append(address)
    return by_name


def _parsed_servers(path: Path) -> dns.asyncresolver.Resolver:
    try:
        return dns.asyncresolver.Resolver(str(path))
    except dns.resolver.NoResolverConfiguration:  # resolv.conf(5): without the file it is the one of this machine
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        return resolver


def resolver_of(services: Services) -> Resolver:
    """Return the resolver of a service: the one that it was given, or the lookups of this process."""
    return services.resolver or services.part(Lookups)
