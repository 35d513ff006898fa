"""Ports for programs whose port is an argument."""

import random
import socket
from contextlib import ExitStack

# Below the range from which systems select ports for connections and for servers on port 0. A port of that range may be
# in use by the time the program listens.
_RANGE = range(10_000, 32_768)
_random = random.SystemRandom()  # the tests' own seed is the same in all processes


def free_ports(count: int) -> list[int]:
    """Return different ports on which nothing listens."""
    found = list[int]()
    with ExitStack() as stack:
        while len(found) < count:
            try:
                server = stack.enter_context(socket.create_server(("127.0.0.1", _random.choice(_RANGE))))
            except OSError:
                continue
            found.append(server.getsockname()[1])
    return found


def free_port() -> int:
    return free_ports(1)[0]


def listens(port: int) -> bool:
    """Return whether a program listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
