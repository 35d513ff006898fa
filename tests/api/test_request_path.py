"""The files that `POST /posts` passes: docs/architecture.md names them, and there are at most 26."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from quart import Quart

import profilesvc
from conftest import ON_ONE_DATABASE
from profilesvc.bootstrap import Runtime
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from support.api import Site, assert_ok
from support.posts import PATH, PIER

ROOT = Path(profilesvc.__file__).parent
TRANSPORT = str(ROOT / "provider" / "transport.py")  # where the walk ends: behind it are connections and the provider
EMULATOR = str(ROOT / "emulator")
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
SERVER = "server/protocol.py"  # before the app, which this test calls directly
MOST_FILES = 33
FOLLOWED: ContextVar[bool] = ContextVar("followed", default=False)


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is code of profilesvc that runs before the transport."""
    name = frame.f_code.co_filename
    if not name.startswith(f"{ROOT}/") or name.startswith(EMULATOR):
        return False
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename != TRANSPORT:
        caller = caller.f_back
    return caller is None


@contextmanager
def walk(app: Quart) -> Iterator[dict[str, None]]:
    """The files whose functions run between the ASGI app's entry and its response, in the order of first use."""
    files: dict[str, None] = {}
    served = app.asgi_app

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and FOLLOWED.get() and is_ours(frame):  # other tasks go on meanwhile
            files.setdefault(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    async def followed(scope: Any, receive: Any, send: Any) -> None:
        marked = FOLLOWED.set(True)
        sys.setprofile(note)
        try:
            await served(scope, receive, send)
        finally:
            sys.setprofile(None)
            FOLLOWED.reset(marked)

    app.asgi_app = followed  # type: ignore[method-assign]
    try:
        yield files
    finally:
        app.asgi_app = served  # type: ignore[method-assign]


def documented() -> set[str]:
    """The files in the table of the page's section on the path of a request."""
    section = PAGE.read_text("utf-8").partition("## The path of a request")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return set(re.findall(r"`([\w/]+\.py)`", "\n".join(row.rsplit("|", 2)[1] for row in rows)))


@pytest.fixture
def world(clock: FrozenClock) -> Runtime:
    """The entropy of production."""
    return Runtime(clock, SystemEntropy())


@pytest.mark.in_process("follows the functions that the request calls")
@ON_ONE_DATABASE
async def test_creating_a_post_passes_few_files(app: Quart, services: Services, plugin: Site) -> None:
    for _ in range(2):  # the first request fills caches and compiles statements
        await services.background.drain()
        await services.part(PendingEvents).write(services)
        with walk(app) as files:
            assert_ok(await plugin.http.post(PATH, params=PIER, json={"summary": "Fresh bread"}), 201)
    assert next(iter(files)) == "api/guard.py"
    assert len(files) <= MOST_FILES, "\n".join(files)
    assert documented() - {SERVER} == set(files)
