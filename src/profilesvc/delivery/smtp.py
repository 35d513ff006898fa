"""Sends messages: by SMTP, or in development to files in `var/mail`."""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import EmailPolicy
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiosmtplib

from profilesvc.settings import Settings

_SECONDS = 10.0  # for one command
_SECONDS_IN_ALL = 20.0
_NO_MAILBOX = (550, 551, 553)
_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


class _Policy(EmailPolicy):
    """Leaves the header of RFC 8058 as it is, because mail programs do not decode a URL that is split and encoded."""

    def fold(self, name: str, value: str) -> str:
        return f"{name}: {value}{self.linesep}" if name == UNSUBSCRIBE else super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        return self.fold(name, value).encode() if name == UNSUBSCRIBE else super().fold_binary(name, value)


UNSUBSCRIBE = "List-Unsubscribe"
_POLICY = _Policy(linesep="\r\n")


class Rejected(Exception):
    """The mail server rejects the address for good; other addresses may be accepted."""


class Unsent(Exception):
    """The message was not accepted; the next attempt may succeed. The text has no secret."""


class Mailer:
    """One SMTP connection for each message. Alerts are rare, and a server closes idle connections."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.mail.url.get_secret_value()
        self._from = settings.mail.from_
        self._folder = None if settings.production else settings.data_dir / "mail"

    async def send(self, message: EmailMessage, address: str, name: str) -> None:
        """Send a message to an address; `name` is that of the file in development.

        Raises:
            Rejected: the server rejects the address.
            Unsent: for any other reason.
        """
        content = message.as_bytes(policy=_POLICY)
        if self._url:
            with _failures():
                async with asyncio.timeout(_SECONDS_IN_ALL), _client(self._url) as client:
                    await client.sendmail(self._from, [address], content)
        elif self._folder is not None:
            _write(self._folder, f"{name}.eml", content)
        else:
            raise Unsent("PROFILESVC_MAIL__URL is not set")

    async def check(self) -> None:
        """Connect to the server and log in, without a message.

        Raises:
            Unsent: it does not work.
        """
        with _failures():
            async with asyncio.timeout(_SECONDS), _client(self._url):
                pass


def _client(url: str) -> aiosmtplib.SMTP:
    parts = urlsplit(url)
    return aiosmtplib.SMTP(
        hostname=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        use_tls=parts.scheme == "smtps",
        start_tls=parts.scheme == "smtp+starttls",
        timeout=_SECONDS,
    )


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Raise what the server or the connection raises as one of our two errors."""
    try:
        yield
    except aiosmtplib.SMTPRecipientsRefused as error:
        (refused,) = error.recipients
        if _is_of_recipient(refused.code, refused.message):
            raise Rejected(f"the mail server rejects the address: {refused.code}") from None
        raise Unsent(f"the mail server does not accept the address now: {refused.code}") from None
    except aiosmtplib.SMTPResponseException as error:
        raise Unsent(f"the mail server responds {error.code}") from None
    except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
        raise Unsent(f"the mail server cannot be reached: {type(error).__name__}") from None


def _is_of_recipient(code: int, text: str) -> bool:
    """Return whether a rejection is permanent and because of the address: it does not exist or accepts no mail.

    A server whose settings or ours are wrong also rejects addresses: it does not relay, or requires a login. The
    enhanced code is 5.7 then (RFC 3463); not every server sends one.
    """
    is_policy = re.match(r"5\.7\.|5\.[345]\.", text) or re.search(r"relay|authenticat", text, re.IGNORECASE)
    return code in _NO_MAILBOX and not is_policy


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
