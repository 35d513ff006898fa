"""How many files a request passes: the walk of `POST /posts` in docs/architecture.md is this list."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from quart import Quart

import profilesvc
from conftest import ON_ONE_DATABASE
from support.api import Site, assert_ok
from support.posts import PATH, PIER

ROOT = Path(profilesvc.__file__).parent
MOST_FILES = 24
# Behind the transport stands the provider: here the emulator, in production another company's service.
PROVIDER = "emulator"


@contextmanager
def files_of(app: Quart) -> Iterator[list[str]]:
    """The files of profilesvc that run between the ASGI app's entry and its response, in the order of first use."""
    seen: dict[str, None] = {}
    served = app.asgi_app

    def trace(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code.co_filename)

    async def traced(scope: Any, receive: Any, send: Any) -> None:
        sys.setprofile(trace)
        try:
            await served(scope, receive, send)
        finally:
            sys.setprofile(None)

    app.asgi_app = traced  # type: ignore[method-assign]
    found: list[str] = []
    try:
        yield found
    finally:
        app.asgi_app = served  # type: ignore[method-assign]
        paths = [Path(name) for name in seen if name.startswith(f"{ROOT}/")]
        found += [str(path.relative_to(ROOT)) for path in paths if PROVIDER not in path.parts]


@pytest.mark.in_process("watches the functions that the request calls")
@ON_ONE_DATABASE
async def test_creating_a_post_passes_few_files(app: Quart, plugin: Site) -> None:
    assert threading.current_thread() is threading.main_thread()
    with files_of(app) as files:
        assert_ok(await plugin.http.post(PATH, params=PIER, json={"summary": "Fresh bread"}), 201)
    print("\n".join(files))
    assert len(files) <= MOST_FILES, files
