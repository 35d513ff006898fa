"""The queue of faults: what goes wrong, for which calls and how often."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator
from quart import Response

from profilesvc.emulator.errors import ApiError

_HUGE_CHUNK, _HUGE_CHUNKS = b"x" * 1_048_576, 12
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class FaultMatch(BaseModel):
    """Which calls: regular expressions that must match the whole method and the start of the path.

    /token is hit only when it is named.
    """

    model_config = ConfigDict(extra="forbid")

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


class Fault(BaseModel):
    """One thing that goes wrong, `times` times.

    `status` answers that HTTP status in the error envelope, with `reason` as ErrorInfo and `headers`; `delay` waits
    `seconds` and goes on; `broken_body` answers 200 with half a JSON text; `truncated` and `disconnect` end the
    connection in the body and before it; `huge` answers 12 MB; `redirect` answers 302, `headers` may say where to;
    `flapping` answers as `status` does to the first call and to every second one after it, `times` counting all. With
    `after` the operation takes place first and only its answer is lost. `details` are the error's details, for any
    envelope of the provider.
    """

    model_config = ConfigDict(extra="forbid")

    match: FaultMatch = FaultMatch()
    times: int = Field(1, ge=1)
    kind: Literal["status", "delay", "broken_body", "truncated", "disconnect", "huge", "redirect", "flapping"]
    status: int = Field(503, ge=400, le=599)
    message: str = "Injected fault."
    reason: str = ""
    details: list[dict[str, Any]] = []
    headers: dict[str, str] = {}
    seconds: float = Field(1, ge=0, le=60)
    after: bool = False
    _seen: int = PrivateAttr(0)

    def hits(self, method: str, path: str) -> bool:
        """True when a call is meant."""
        return bool(re.fullmatch(self.match.method, method) and re.match(self.match.path, path))

    def strikes(self) -> bool:
        """Note one call that is meant; True when it is to go wrong."""
        self.times -= 1
        self._seen += 1
        return self.kind != "flapping" or self._seen % 2 == 1

    async def answer(self) -> Response | None:
        """The faulty answer; None when the call goes on (delay)."""
        if self.kind == "delay":
            await asyncio.sleep(self.seconds)
            return None
        if self.kind in ("status", "flapping"):
            return self._error()
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

    def _error(self) -> Response:
        details = [*self.details]
        if self.reason:
            details.append({"@type": _ERROR_INFO, "reason": self.reason, "domain": "googleapis.com"})
        body = ApiError(self.status, self.message, *details).body()
        return Response(json.dumps(body), self.status, {"Content-Type": "application/json", **self.headers})


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

    def add(self, fault: Fault) -> None:
        """Queue a fault."""
        self._queue.append(fault)

    def clear(self) -> None:
        """Forget all that did not happen."""
        self._queue.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The first fault that is meant for a call and strikes it; uses it up by one."""
        for fault in self._queue:
            if fault.hits(method, path):
                strikes = fault.strikes()
                if fault.times == 0:
                    self._queue.remove(fault)
                return fault if strikes else None
        return None

    def listing(self) -> list[dict[str, Any]]:
        """What is still queued."""
        return [fault.model_dump() for fault in self._queue]
