"""What was called, by whom, and what came of it: kept for diagrams and for the proof that every page is true."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the service, without its bodies; `provider` are the calls to the provider that it led to."""

    caller: str
    method: str
    path: str
    status: int
    code: str | None = None
    provider: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """`GET /api/v1/posts 200`."""
        return f"{self.method} {self.path} {self.status}"


Note = Callable[[str, httpx.Request, httpx.Response], None]


class LabClosed(RuntimeError):
    """Something was asked of a lab that is closed."""

    def __init__(self) -> None:
        super().__init__("This lab is closed. Run the first cell of the page again to open a new one, then this cell.")

    def _render_traceback_(self) -> list[str]:
        """For IPython: one line, because the reader's code has no error that a traceback would help to find."""
        return [f"LabClosed: {self}"]


class Recording(httpx.BaseTransport):
    """A transport that calls `note` for every response, with the caller's name."""

    def __init__(self, inner: httpx.BaseTransport, caller: str, note: Note) -> None:
        self._inner, self._caller, self._note = inner, caller, note
        self._closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on and read the whole answer. LabClosed."""
        if self._closed:
            raise LabClosed
        response = self._inner.handle_request(request)
        response.read()
        self._note(self._caller, request, response)
        return response

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._inner.close()


def body_of(message: httpx.Request | httpx.Response) -> Any:
    """The JSON of a body; None when there is none."""
    try:
        return httpx.Response(200, content=message.content).json() if message.content else None
    except (ValueError, httpx.RequestNotRead):
        return None


def code_of(response: httpx.Response) -> str | None:
    """The error code of an answer; None for a success."""
    body = body_of(response)
    error = body.get("error") if isinstance(body, dict) else None
    return str(error["code"]) if isinstance(error, dict) and "code" in error else None
