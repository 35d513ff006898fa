"""Recorded calls with caller and result, for diagrams and for the check of the notebooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from profilesvc.contract.json import JsonObject


@dataclass(frozen=True, slots=True)
class Call:
    """A call to the service without bodies. `provider` are the calls to the provider that it caused."""

    caller: str
    method: str
    path: str
    status: int
    code: str | None = None
    provider: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The call as `GET /api/v1/posts 200`."""
        return f"{self.method} {self.path} {self.status}"


Note = Callable[[httpx.Response], None]


class LabClosed(RuntimeError):
    """The error of using a closed lab."""

    def __init__(self) -> None:
        super().__init__("This lab is closed. Run the first cell of the page again to open a new one, then this cell.")

    def _render_traceback_(self) -> list[str]:
        """Return one line for IPython, because a traceback would not help the reader."""
        return [f"LabClosed: {self}"]


class Recording(httpx.BaseTransport):
    """A transport that calls each of `notes` for every response."""

    def __init__(self, inner: httpx.BaseTransport, *notes: Note) -> None:
        self._inner, self._notes = inner, notes
        self._closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and read the whole response.

        Raises:
            LabClosed: The lab is closed.
        """
        if self._closed:
            raise LabClosed
        response = self._inner.handle_request(request)
        response.read()
        response.request = request
        for note in self._notes:
            note(response)
        return response

    def close(self) -> None:
        self._closed = True
        self._inner.close()


def body_of(message: httpx.Request | httpx.Response) -> Any:
    """Return the JSON value of a body, or None."""
    try:
        return httpx.Response(200, content=message.content).json() if message.content else None
    except (ValueError, httpx.RequestNotRead):
        return None


def data_of(response: httpx.Response) -> JsonObject:
    """Return the `data` of a success, or an empty object."""
    body = body_of(response)
    data = body.get("data") if response.is_success and isinstance(body, dict) else None
    return data if isinstance(data, dict) else {}


def error_of(response: httpx.Response) -> JsonObject:
    """Return the `error` of a failure, or an empty object."""
    body = body_of(response)
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def code_of(response: httpx.Response) -> str | None:
    """Return the error code of a response, or None for a success."""
    error = error_of(response)
    return str(error["code"]) if "code" in error else None
