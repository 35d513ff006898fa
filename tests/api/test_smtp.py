"""Messages to a real mail server, and what it can answer."""

import asyncio
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from pydantic import SecretStr, ValidationError

from conftest import make_settings
from profilesvc.delivery import smtp
from profilesvc.delivery.smtp import Mailer, Rejected, Unsent
from profilesvc.settings import MailSettings


class Handler:
    """Answers each recipient with `reply`, and keeps the messages."""

    def __init__(self) -> None:
        self.reply, self.pause, self.received = "250 OK", 0.0, list[Any]()

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: list[str]) -> str:
        await asyncio.sleep(self.pause)
        if self.reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.reply

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.received.append(envelope)
        return "250 OK"


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
async def server(handler: Handler) -> AsyncIterator[asyncio.Server]:
    def authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=(data.login, data.password) == (b"user", b"p@ss"), handled=False)

    def protocol() -> SMTP:
        return SMTP(handler, hostname="mail.example", authenticator=authenticate, auth_require_tls=False)

    async with await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0) as listening:
        yield listening


def mailer(tmp_path: Path, url: str) -> Mailer:
    return Mailer(make_settings(tmp_path, mail=MailSettings.model_validate({"url": url, "from": "alerts@p.example"})))


def message() -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "alerts@p.example", "alice@example.com", "The site “Pier” is offline"
    made.set_content("Ünïcode")
    return made


def address_of(server: asyncio.Server) -> str:
    return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("login", ["", "user:p%40ss@"])
async def test_a_message_arrives(tmp_path: Path, server: asyncio.Server, handler: Handler, login: str) -> None:
    await mailer(tmp_path, f"smtp://{login}{address_of(server)}").send(message(), "alice@example.com", "1")
    (envelope,) = handler.received
    assert (envelope.mail_from, envelope.rcpt_tos) == ("alerts@p.example", ["alice@example.com"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("550 No such user", Rejected),
        ("550 5.1.1 <alice@example.com>: Recipient address rejected", Rejected),
        ("450 Try later", Unsent),
        ("452 4.2.2 Mailbox full", Unsent),
        ("550 relay not permitted", Unsent),
        ("554 5.7.1 <alice@example.com>: Relay access denied", Unsent),
        ("530 5.7.0 Authentication required", Unsent),
        ("550 5.7.26 Unauthenticated email is not accepted", Unsent),
        ("503 Bad sequence of commands", Unsent),
    ],
)
async def test_an_address_can_be_rejected(
    tmp_path: Path, server: asyncio.Server, handler: Handler, reply: str, error: type[Exception]
) -> None:
    handler.reply = reply
    with pytest.raises(error):
        await mailer(tmp_path, f"smtp://{address_of(server)}").send(message(), "alice@example.com", "1")
    assert handler.received == []


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("smtp://user:wrong@", "responds 535"),
        ("smtp+starttls://", "cannot be reached: SMTPException"),
        ("smtps://", "cannot be reached: SMTPConnectError"),
    ],
)
async def test_a_server_that_rejects_the_connection_gets_another_attempt(
    tmp_path: Path, server: asyncio.Server, scheme: str, reason: str
) -> None:
    with pytest.raises(Unsent) as failure:
        await mailer(tmp_path, f"{scheme}{address_of(server)}").send(message(), "alice@example.com", "1")
    assert str(failure.value) == f"the mail server {reason}"


async def test_a_slow_server_gets_another_attempt(
    tmp_path: Path, server: asyncio.Server, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is in time, but not all of them together."""
    handler.pause = 0.2
    monkeypatch.setattr(smtp, "_SECONDS_IN_ALL", 0.1)
    with pytest.raises(Unsent):
        await mailer(tmp_path, f"smtp://{address_of(server)}").send(message(), "alice@example.com", "1")
    assert handler.received == []


async def test_a_server_that_is_gone_gets_another_attempt(tmp_path: Path, server: asyncio.Server) -> None:
    address = address_of(server)
    server.close()
    with pytest.raises(Unsent):
        await mailer(tmp_path, f"smtp://{address}").send(message(), "alice@example.com", "1")


@pytest.mark.parametrize("url", ["http://mail.example", "smtp://", "smtp+starttls://host/path", "mail.example:25"])
def test_other_addresses_of_servers_are_rejected(url: str) -> None:
    with pytest.raises(ValidationError):
        MailSettings.model_validate({"url": SecretStr(url)})


async def test_production_without_a_server_writes_no_files(tmp_path: Path) -> None:
    settings = make_settings(tmp_path).model_copy(update={"environment": "production"})
    with pytest.raises(Unsent, match="PROFILESVC_MAIL__URL is not set"):
        await Mailer(settings).send(message(), "alice@example.com", "1")
    assert not (settings.data_dir / "mail").exists()
