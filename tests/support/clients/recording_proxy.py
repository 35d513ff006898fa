"""A service in front of the real one: it records requests, and answers some of them itself where a test says so."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

_DROPPED = {"content-length", "transfer-encoding", "connection", "content-encoding", "date", "server"}


@dataclass(frozen=True)
class Recorded:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Scripted:
    """A response of the proxy's own. Status 0 closes the connection without a response."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class RecordingProxy:
    """Forwards to `target`, except for requests whose path starts with one that has scripted responses.

    It removes the request headers that `removes` names, in lower case.
    """

    def __init__(self) -> None:
        self.target = ""
        self.delay = 0.0
        self.removes: set[str] = set()
        self.requests: list[Recorded] = []
        self._scripted: dict[str, list[Scripted]] = {}
        self.url = ""

    def reset(self, target: str) -> None:
        """Forward to this address, and forget what was recorded and scripted."""
        self.target, self.delay, self.removes = target, 0.0, set()
        self.requests.clear()
        self._scripted.clear()

    def script(self, path: str, *responses: Scripted) -> None:
        """Answer the next requests for this path with these responses; the last one stays."""
        self._scripted[path] = list(responses)

    def error(self, path: str, status: int, code: str, **options: Any) -> None:
        """Answer this path with an error. Options are `details` and headers."""
        details = options.pop("details", {})
        headers = {name.replace("_", "-"): value for name, value in options.items()}
        error = {"code": code, "message": "A message for developers.", "details": details}
        self.script(path, Scripted(status, {"status": "error", "error": error}, headers))

    def sent(self, path: str) -> list[Recorded]:
        """Return the requests whose path starts so."""
        return [each for each in self.requests if each.path.startswith(path)]

    def scripted(self, path: str) -> Scripted | None:
        """Return the next scripted response for a path."""
        for prefix, responses in self._scripted.items():
            if path.startswith(prefix):
                return responses.pop(0) if len(responses) > 1 else responses[0]
        return None


def _handler(proxy: RecordingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            proxy.requests.append(Recorded(self.command, self.path, headers, body))
            time.sleep(proxy.delay)
            own = proxy.scripted(self.path)
            if own is None:
                dropped = {"host", "connection", *proxy.removes}
                forwarded = {name: value for name, value in headers.items() if name not in dropped}
                done = httpx.request(self.command, proxy.target + self.path, content=raw, headers=forwarded)
                self._write(done.status_code, dict(done.headers), done.content)
            elif own.status:
                text = own.body if isinstance(own.body, str) else json.dumps(own.body)
                self._write(own.status, own.headers, text.encode())

        def _write(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _DROPPED:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        def log_message(self, *_arguments: Any) -> None:
            """Write nothing."""

    return Handler


@contextmanager
def recording_proxy() -> Iterator[RecordingProxy]:
    """Serve a proxy on a free port of this machine."""
    proxy = RecordingProxy()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy)) as server:
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
