"""The body of a request: read when a route asks for it, in bounded time and memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

from quart.wrappers.request import Body

from profilesvc.api.concurrency import PLACE
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT
from profilesvc.domain.errors import ServiceError
from profilesvc.server.scope import ARRIVED

KB = 1024
GRACE_SECONDS = 5
MOST_SECONDS = 10
LEAST_BYTES_PER_SECOND = KB


def too_large(limit: int) -> ServiceError:
    """The refusal of a body."""
    return ServiceError(PAYLOAD_TOO_LARGE, f"The body must not exceed {limit // KB} KB.")


class AwaitedBody(Body):
    """A body that stays with the server until somebody awaits it, unlike Quart's, which a task collects at once.

    It has 5 s, one more for each KB that has arrived, and 10 s in all. `was_late`: whether it had to be waited for.
    """

    def __init__(self, announced: int | None, limit: int, scope: Any, receive: Callable[[], Any]) -> None:
        super().__init__(None, None)
        self._announced, self._limit, self._scope, self._receive = announced, limit, scope, receive
        self._whole: bytes | None = None
        self.was_late = False

    def has_content(self) -> bool | None:
        """Whether it is not empty; None if that cannot be known before it is read."""
        if self._announced is not None:
            return self._announced > 0
        there, more = self._arrived()
        return None if more and not there else there > 0

    def require_size(self, limit: int) -> None:
        """Refuse a body by what is known of its size. PAYLOAD_TOO_LARGE."""
        if (self._announced or 0) > limit or self._arrived()[0] > limit:
            raise too_large(limit)

    async def read(self, limit: int) -> bytes:
        """The whole body. PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, SERVICE_UNAVAILABLE."""
        if self._whole is None:
            self.require_size(limit)
            self._scope[PLACE].reads = True
            if self._arrived()[1]:
                self.was_late = ARRIVED in self._scope
                self._whole = await self._collect(limit)
            else:
                self._whole = (await self._receive()).get("body", b"")
        if len(self._whole) > limit:
            raise too_large(limit)
        return self._whole

    def __await__(self) -> Generator[Any, None, bytes]:
        """The whole body, as Quart reads forms."""
        return self.read(self._limit).__await__()

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield await self.read(self._limit)

    def __aiter__(self) -> AsyncIterator[bytes]:  # type: ignore[override]  # used by Quart in `async for` only
        """The whole body as its only piece."""
        return self._pieces()

    def _arrived(self) -> tuple[int, bool]:
        """How many bytes are there to be read, and whether more will come."""
        arrived: tuple[int, bool] = self._scope.get(ARRIVED, _unknown)()
        return arrived

    async def _collect(self, limit: int) -> bytes:
        body, begun, more = bytearray(), asyncio.get_running_loop().time(), True
        with self._scope[PLACE].waiting_for(limit if self._announced is None else self._announced):
            while more:
                seconds = min(GRACE_SECONDS + len(body) / LEAST_BYTES_PER_SECOND, MOST_SECONDS)
                message = await self._next(begun + seconds)
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > limit:
                    raise too_large(limit)
        return bytes(body)

    async def _next(self, deadline: float) -> Any:
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            raise ServiceError(REQUEST_TIMEOUT, headers={"Connection": "close"}) from None
        if message["type"] != "http.request":  # the client has left
            raise ServiceError(REQUEST_TIMEOUT)
        return message


def _unknown() -> tuple[int, bool]:
    return 0, True
