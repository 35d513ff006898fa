"""A receiver of webhooks and a mail server on a thread of the test, which keep all that arrives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import Message
from typing import Any

from aiosmtpd.smtp import SMTP
from anyio.from_thread import start_blocking_portal

from support.network.receivers import Received, receiving, responding

_PAUSE_SECONDS = 0.01  # so that kills find deliveries that are on their way


@dataclass
class Arrived:
    """The addresses of both servers, and what arrived."""

    webhook_url: str = ""
    mail_url: str = ""
    requests: list[Received] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        """Accept a message; aiosmtpd calls this."""
        await asyncio.sleep(_PAUSE_SECONDS)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"


async def _accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(_PAUSE_SECONDS)
    await responding(200)(reader, writer)


@contextlib.asynccontextmanager
async def _serving() -> AsyncIterator[Arrived]:
    arrived = Arrived()
    mail = await asyncio.get_running_loop().create_server(
        lambda: SMTP(arrived, hostname="mail.example"), "127.0.0.1", 0
    )
    async with mail, receiving(_accept) as receiver:
        arrived.mail_url = f"smtp://127.0.0.1:{mail.sockets[0].getsockname()[1]}"
        arrived.webhook_url, arrived.requests = f"http://127.0.0.1:{receiver.port}", receiver.got
        yield arrived


@contextlib.contextmanager
def outbox() -> Iterator[Arrived]:
    """Run both servers for the block."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_serving()) as arrived:
        yield arrived
