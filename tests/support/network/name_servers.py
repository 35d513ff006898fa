"""Name servers on 127.0.0.1: one that is silent, and one that knows a few names."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from profilesvc.services.notify.resolving import SystemNames


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """A server that knows `names`, and does not respond to questions about any other name.

    It responds to questions of `kinds` only. A name without addresses does not exist. `asked` has all questions.
    """

    names: Mapping[str, list[str]]
    kinds: tuple[str, ...] = ("A", "AAAA")
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    _transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True), question.rdtype.name
        self.asked.append((name, kind))
        self.was_asked.set()
        if name not in self.names or kind not in self.kinds:
            return
        response = dns.message.make_response(query, recursion_available=True)
        if not self.names[name]:
            response.set_rcode(dns.rcode.NXDOMAIN)
        its = [text for text in self.names[name] if (":" in text) == (kind == "AAAA")]
        if its:
            response.answer.append(dns.rrset.from_text(question.name, 300, "IN", kind, *its))
        assert self._transport is not None
        self._transport.sendto(response.to_wire(), address)


@contextlib.asynccontextmanager
async def serving_names(
    names: Mapping[str, list[str]], kinds: tuple[str, ...] = ("A", "AAAA")
) -> AsyncIterator[NameServer]:
    """Run a name server for the block."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(names, kinds), local_addr=("127.0.0.1", 0)
    )
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()


def names_by(server: NameServer, *search: str) -> SystemNames:
    """The names of a system with only this server, and without a hosts file."""
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], server.port
    resolver.search = [dns.name.from_text(each) for each in search]
    resolver.domain = dns.name.root
    return SystemNames(servers=lambda: resolver)
