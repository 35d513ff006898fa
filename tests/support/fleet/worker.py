"""The processes that `make deployed` tests: the service's own workers, which serve whatever the test deploys.

The clock and the number of the deployment are in a file that the test and every worker have mapped. A worker that finds
another deployment wanted closes the app that it has and opens that one, as a restart would, before it answers.
"""

import asyncio
import contextlib
import functools
import logging
import mmap
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import httpx
from quart import Quart

from profilesvc.bootstrap import Runtime, create_app
from profilesvc.cli._process.listening import announce, bound
from profilesvc.cli._process.workers import serve_workers
from profilesvc.domain.rates import Standing, Window
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import schedule
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.settings import Settings, load
from support.parts import changed, no_jobs

NOW, DEPLOYMENT, CHANGE = range(3)
SETTLED_SECONDS = 5.0


class Board:
    """Whole numbers that several processes see: the time, and how often something was deployed and changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (folder / "board").open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast("q")

    @staticmethod
    def lay(folder: Path) -> "Board":
        """A new one, all zeros."""
        (folder / "board").write_bytes(bytes(mmap.PAGESIZE))
        return Board(folder)

    def __getitem__(self, place: int) -> int:
        return self._numbers[place]

    def __setitem__(self, place: int, number: int) -> None:
        self._numbers[place] = number

    def tell(self, place: int, what: Any) -> None:
        """Leave something for the workers, and then the number by which they see that it is new."""
        (self.folder / str(place)).write_bytes(pickle.dumps(what))
        self[place] += 1

    def told(self, place: int) -> Any:
        """The last stored value."""
        return pickle.loads((self.folder / str(place)).read_bytes())


class SharedClock(FrozenClock):
    """A frozen clock with the same time in all processes; with a start it is set, otherwise only read."""

    def __init__(self, board: Board, start: int | None = None) -> None:
        self._board = board
        super().__init__(board[NOW] if start is None else start)

    @property
    def _now(self) -> int:
        return self._board[NOW]

    @_now.setter
    def _now(self, instant: int) -> None:
        self._board[NOW] = instant


class OneCount:
    """The windows of all processes in one place, as in Redis, but by the shared clock; see Windows."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, verify=False, trust_env=False, timeout=30)

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        granted, *standing = await self._ask("take", bucket, window)
        return granted, Standing(*standing)

    async def standing(self, bucket: str, window: Window) -> Standing:
        return Standing(*await self._ask("standing", bucket, window))

    async def strike(self, bucket: str, window: Window) -> int:
        delay: int
        (delay,) = await self._ask("strike", bucket, window)
        return delay

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, what: str, bucket: str, window: Window) -> Any:
        answer = await self._http.post(f"/{what}", json=[bucket, window.limit, window.length])
        return answer.raise_for_status().json()


class Worker:
    """The app of a process of the deployment, which can be replaced between tests."""

    def __init__(self, folder: Path, counting: str) -> None:
        self.extensions = {"profilesvc.draining": asyncio.Event()}
        self._board, self._windows = Board(folder), OneCount(counting)
        self._seen = dict.fromkeys((NOW, DEPLOYMENT, CHANGE), 0)
        self._deployed = contextlib.AsyncExitStack()
        self._app: Quart
        self._opened: Services
        self._turn = asyncio.Lock()
        self._answered = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        async with self._turn:
            await self._catch_up()
        self._answered += 1
        await self._app(scope, receive, functools.partial(self._after_its_work, send))

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._deployed.aclose()
        await self._windows.close()
        (self._board.folder / f"answered-{os.getpid()}").write_text(str(self._answered))
        await send({"type": "lifespan.shutdown.complete"})

    async def _catch_up(self) -> None:
        if self._is_new(DEPLOYMENT):
            await self._deployed.aclose()
            self._app = create_app(self._board.told(DEPLOYMENT), Runtime(SharedClock(self._board)))
            await self._deployed.enter_async_context(self._app.test_app())  # type: ignore[arg-type]
            self._opened = self._app.extensions["profilesvc"]
        moved, is_changed = self._is_new(NOW), self._is_new(CHANGE)
        if moved or is_changed:  # what a process does every two seconds
            await self._opened.signing_keys.reload()
        if is_changed:
            self._opened.provider._transport._tokens._expires = 0  # type: ignore[attr-defined]  # of another test's time
            self._app.extensions["profilesvc"] = changed(self._opened, self._windows, **self._board.told(CHANGE))

    def _is_new(self, place: int) -> bool:
        seen, self._seen[place] = self._seen[place], self._board[place]
        return self._board[place] != seen

    async def _after_its_work(self, send: Any, message: Any) -> None:
        """End an answer when what follows it is done too, for which the tests could only wait by the time."""
        if message["type"] == "http.response.body" and not message.get("more_body"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._settle()), SETTLED_SECONDS)
        await send(message)

    async def _settle(self) -> None:
        await self._opened.part(PendingEvents).write(self._opened)
        await self._opened.part(RequestLog).write(self._opened)
        await self._opened.background.drain()


def made(folder: Path, counting: str, _settings: Settings) -> Any:
    """The app of a process, in which a test runs the jobs that it needs."""
    schedule.jobs = no_jobs  # type: ignore[assignment]
    return Worker(folder, counting)


def main(folder: str, workers: str, counting: str) -> None:
    """Serve until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    make = functools.partial(made, Path(folder), counting)
    with bound("127.0.0.1", 0) as listener:
        serve_workers(load(), [listener], int(workers), announce("127.0.0.1", listener), make)


if __name__ == "__main__":
    main(*sys.argv[1:])
