"""The service behind a real socket, and bytes to and from it as they are."""

import asyncio
import concurrent.futures
import contextlib
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from conftest import make_settings
from profilesvc.bootstrap import Runtime, create_app, open_services
from profilesvc.emulator.faults import Fault
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import tokens
from profilesvc.settings import Settings
from support.api import ALICE, assert_ok
from support.waiting import until

KEYS = "/api/v1/developer/credentials"
POSTS = "/api/v1/posts?locationId=locations/111"


class InFlight:
    """An ASGI app that counts the requests it has not finished: what hangs shows up here."""

    def __init__(self, app: Any) -> None:
        self._app, self.count = app, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.count += scope["type"] == "http"
        try:
            await self._app(scope, receive, send)
        finally:
            self.count -= scope["type"] == "http"


@dataclass
class Served:
    """A running server, and who may call it."""

    server: EmbeddedServer
    settings: Settings
    in_flight: InFlight
    user: str
    app: Any
    world: Runtime

    def client(self, token: str | None = None, timeout: float = 20) -> httpx.Client:
        """An ordinary client of the server."""
        headers = {"Authorization": f"Bearer {token or self.user}"}
        return httpx.Client(base_url=self.server.base_url, headers=headers, timeout=timeout, trust_env=False)

    def site(self, **members: Any) -> tuple[dict[str, Any], str]:
        """A new key of locations/111 and an access token of it."""
        body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111", **members}
        with self.client() as http:
            key = assert_ok(http.post(KEYS, json=body), 201)
            grant = {"grant_type": "client_credentials"} | {n: key[n] for n in ("client_id", "client_secret")}
            return key, assert_ok(http.post("/api/v1/auth/token", json=grant))["access_token"]


def seeded(template: Path, folder: Path, **overrides: Any) -> Settings:
    """Settings over a copy of the seeded databases."""
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return make_settings(folder, **overrides)


async def user_token(settings: Settings, email: str = ALICE) -> str:
    """A token of a user of the demo data, as the operator's command issues it."""
    async with open_services(settings, Runtime()) as services:
        return await tokens.user_token(services, email)


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """The service of these settings on a socket, by the machine's clock."""
    user, world = asyncio.run(user_token(settings)), Runtime()
    app = create_app(settings, world)
    in_flight = InFlight(app)
    with EmbeddedServer(in_flight) as server:
        yield Served(server, settings, in_flight, user, app, world)


REFRESH = "/api/v1/external-business/locations/111/refresh-verification"


def slow_call(served: Served, seconds: float) -> concurrent.futures.Future[httpx.Response]:
    """A request that is under way now and takes that long at the provider."""
    assert served.world.emulator is not None
    served.world.emulator.extensions["emulator"].faults.add(Fault(kind="delay", seconds=seconds))
    pool = concurrent.futures.ThreadPoolExecutor(1)

    def call() -> httpx.Response:
        with served.client() as http:
            return http.post(REFRESH)

    future = pool.submit(call)
    until(lambda: served.in_flight.count, "the request to arrive", every=0.01)
    pool.shutdown(wait=False)
    return future


@dataclass
class Reply:
    """One HTTP answer as it came."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    def problem(self) -> str | None:
        """Why this is not an answer that the service may give to anything."""
        if self.status >= 500:
            return f"{self.status}: {self.body[:200]!r}"
        content = self.headers.get(b"content-type", b"")
        if content.startswith(b"text/plain") and self.status == 400 and b"x-request-id" not in self.headers:
            return None  # the server refused before the application (D-02)
        if content != b"application/json" or b"x-request-id" not in self.headers:
            return f"not the service's answer: {self.headers!r}"
        envelope = orjson.loads(self.body)
        wanted = {"status", "error"} if self.status >= 400 else {"status", "data"}
        return None if set(envelope) == wanted else f"not the envelope: {self.body[:200]!r}"


@dataclass
class Exchange:
    """The responses on a connection, in order, and whether the server closed it."""

    replies: list[Reply] = field(default_factory=list)
    continued: bool = False
    closed: bool = False
    rest: bytes = b""

    @property
    def status(self) -> int:
        """The status of the first answer; 0 when there is none."""
        return self.replies[0].status if self.replies else 0

    def take(self, data: bytes) -> None:
        """Parse what has arrived."""
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            head, _, body = self.rest.partition(b"\r\n\r\n")
            start, *lines = head.split(b"\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
            status, length = int(start.split()[1]), int(headers.get(b"content-length", b"0"))
            if len(body) < length:
                return
            self.rest = body[length:]
            if status == 100:
                self.continued = True
            else:
                self.replies.append(Reply(status, headers, body[:length]))


async def exchange(port: int, data: bytes, *, answers: int = 1, wait: float = 15, after: float = 0.05) -> Exchange:
    """Send the bytes; return when that many answers came and nothing more in `after` seconds, or at the close."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen = Exchange()
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        while True:
            patience = wait if len(seen.replies) < answers else after
            received = await asyncio.wait_for(reader.read(65536), patience)
            seen.take(received)
            if not received:
                seen.closed = True
                return seen
    except TimeoutError:
        return seen
    except ConnectionError:
        seen.closed = True
        return seen
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def connect(port: int) -> socket.socket:
    """A plain blocking connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
