"""The queue of faults: which calls fail, how, and how often."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Literal

from pydantic import BaseModel, Field, PrivateAttr, field_validator
from quart import Response

from profilesvc.contract.json import JsonObject
from profilesvc.emulator.errors import ApiError, error_info

_HUGE_CHUNK, _HUGE_CHUNKS = b"x" * 1_048_576, 12


class FaultMatch(BaseModel, extra="forbid"):
    """The calls of a fault: regular expressions for the whole method and the start of the path.

    The default path does not include /token.
    """

    method: str = ".*"
    path: str = "/v[0-9]"

    @field_validator("method", "path")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class Fault(BaseModel, extra="forbid"):
    """A failure of the next `times` calls.

    `status` returns that HTTP status in the error envelope, with `reason` as ErrorInfo and with `headers`. `delay`
    waits `seconds` before the call, `hold` until the queue is emptied. `broken_body` returns 200 with incomplete JSON.
    `truncated` closes the connection in the body, `disconnect` before it. `huge` returns 12 MB. `redirect` returns 302;
    `headers` can set its Location. `flapping` works like `status` for the first call and then for every second one;
    `times` counts all of them. With `after`, the operation is carried out and only its response is lost. `details` are
    the details of the error.
    """

    match: FaultMatch = FaultMatch()
    times: int = Field(1, ge=1)
    kind: Literal["status", "delay", "hold", "broken_body", "truncated", "disconnect", "huge", "redirect", "flapping"]
    status: int = Field(503, ge=400, le=599)
    message: str = "Injected fault."
    reason: str = ""
    details: list[JsonObject] = []
    headers: dict[str, str] = {}
    seconds: float = Field(1, ge=0, le=60)
    after: bool = False
    _seen: int = PrivateAttr(0)
    _released: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)

    def matches(self, method: str, path: str) -> bool:
        """Return whether the fault applies to a call."""
        return bool(re.fullmatch(self.match.method, method) and re.match(self.match.path, path))

    def use(self) -> bool:
        """Count one matching call. Return whether it must fail."""
        self.times -= 1
        self._seen += 1
        return self.kind != "flapping" or self._seen % 2 == 1

    def release(self) -> None:
        """Continue the calls that `hold` stops."""
        self._released.set()

    async def response(self) -> Response | None:
        """Return the faulty response, or None if the call continues (`delay`, `hold`)."""
        if self.kind == "delay":
            await asyncio.sleep(self.seconds)
            return None
        if self.kind == "hold":
            await self._released.wait()
            return None
        if self.kind in ("status", "flapping"):
            details = [*self.details, *([error_info(self.reason)] if self.reason else [])]
            body = json.dumps(ApiError(self.status, self.message, *details).body())
            return Response(body, self.status, {"Content-Type": "application/json", **self.headers})
        if self.kind == "huge":
            return Response(_huge(), 200, {"Content-Type": "application/json"})
        if self.kind == "redirect":
            return Response("", 302, {"Location": "/v1/elsewhere", **self.headers})
        if self.kind == "broken_body":
            return Response('{"name": "locations/', 200, {"Content-Type": "application/json"})
        start = b'{"name": ' if self.kind == "truncated" else b""
        response = Response(_cut(start), 200, {"Content-Type": "application/json", "Content-Length": "1000"})
        response.timeout = None
        return response


async def _huge() -> AsyncIterator[bytes]:
    yield b'{"title": "'
    for _ in range(_HUGE_CHUNKS):
        yield _HUGE_CHUNK
    yield b'"}'


async def _cut(start: bytes) -> AsyncIterator[bytes]:
    yield start
    raise ConnectionAbortedError("injected disconnect")


class Faults:
    """The queue, in the order in which faults were added."""

    def __init__(self) -> None:
        self._queue: list[Fault] = []
        self._holding: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._queue.append(fault)
        self._holding += [fault] if fault.kind == "hold" else []

    def clear(self) -> None:
        self._queue.clear()
        for fault in self._holding:
            fault.release()
        self._holding.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Use up one call of the first matching fault. Return the fault if the call must fail."""
        for fault in self._queue:
            if fault.matches(method, path):
                must_fail = fault.use()
                if fault.times == 0:
                    self._queue.remove(fault)
                return fault if must_fail else None
        return None

    def listing(self) -> list[JsonObject]:
        return [fault.model_dump() for fault in self._queue]
