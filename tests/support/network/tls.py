"""TLS for the tests: a certificate, and a proxy that terminates TLS in front of a port."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def certificate(folder: Path, days: int) -> Path:
    """A certificate of 127.0.0.1 that is valid for so many days and an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days, hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / "certificate.pem"
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def tls_in_front(port: int, certificate_file: Path) -> Iterator[str]:
    """Terminate TLS in front of a port of 127.0.0.1; gives the origin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file)

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # the service has not started yet
            writer.write(_BAD_GATEWAY)
            writer.close()
            return
        await asyncio.gather(_copy(reader, behind_writer), _copy(behind_reader, writer))

    with start_blocking_portal() as portal:
        server = portal.call(partial(asyncio.start_server, forward, "127.0.0.1", 0, ssl=context))
        try:
            yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            portal.call(server.close)
