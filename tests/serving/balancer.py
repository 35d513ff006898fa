"""One port in front of several servers, as a proxy is: a connection goes to the next one that takes it."""

import contextlib
import selectors
import socket
import threading
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 65_536


class Balancer:
    """A context manager; `ports` are the servers behind it and may be changed while it runs."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._turn = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The callers have hung up before."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                caller, _ = self._listener.accept()
                thread = threading.Thread(target=self._pass, args=(caller,))
                self._threads.append(thread)
                thread.start()

    def _pass(self, caller: socket.socket) -> None:
        with caller, contextlib.suppress(ConnectionError), self._connected() as server:
            _pump(caller, server)

    def _connected(self) -> socket.socket:
        """A connection to the next server that takes one. ConnectionRefusedError when none does."""
        ports, self._turn = list(self.ports), self._turn + 1
        for offset in range(len(ports)):
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", ports[(self._turn + offset) % len(ports)]))
        raise ConnectionRefusedError


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Both directions, until either ends."""
    with selectors.DefaultSelector() as ready:
        ready.register(one, selectors.EVENT_READ, other)
        ready.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in ready.select():
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(_CHUNK_BYTES)
                if not data:
                    return
                key.data.sendall(data)
