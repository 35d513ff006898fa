"""Ports for programs that are told where to listen."""

import random
import socket
from contextlib import ExitStack

# Below the ports that systems give to servers on port 0 and to connections: one of these would take a port that is free
# now before the program listens on it.
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
