"""How many files a request passes: the walk of `POST /posts` in docs/architecture.md is this list."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from quart import Quart

import profilesvc
from conftest import ON_ONE_DATABASE
from profilesvc.domain.request import serving
from profilesvc.services.context import Services
from support.api import Site, assert_ok
from support.posts import PATH, PIER

ROOT = Path(profilesvc.__file__).parent
TRANSPORT = "provider/transport.py"  # where the walk leaves us: behind it are connections and the provider


class Walk:
    """The functions of profilesvc that a request calls, by file, in the order of first use."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Follow a call, unless it is another task's or happens beyond the transport."""
        if event != "call" or not self._is_ours(frame) or serving.get() is None:
            return
        name = str(Path(frame.f_code.co_filename).relative_to(ROOT))
        functions = self.files.setdefault(name, [])
        if frame.f_code.co_name not in functions:
            functions.append(frame.f_code.co_name)

    @staticmethod
    def _is_ours(frame: FrameType) -> bool:
        if not frame.f_code.co_filename.startswith(f"{ROOT}/"):
            return False
        caller = frame.f_back
        while caller is not None:
            if caller.f_code.co_filename == str(ROOT / TRANSPORT):
                return False
            caller = caller.f_back
        return True


@contextmanager
def walk(app: Quart) -> Iterator[Walk]:
    """Follow what happens between the ASGI app's entry and its response."""
    walked, served = Walk(), app.asgi_app

    async def followed(scope: Any, receive: Any, send: Any) -> None:
        sys.setprofile(walked.note)
        try:
            await served(scope, receive, send)
        finally:
            sys.setprofile(None)

    app.asgi_app = followed  # type: ignore[method-assign]
    try:
        yield walked
    finally:
        app.asgi_app = served  # type: ignore[method-assign]


@pytest.mark.in_process("follows the functions that the request calls")
@ON_ONE_DATABASE
async def test_creating_a_post_passes_few_files(app: Quart, services: Services, plugin: Site) -> None:
    for _ in range(2):  # the first one fills caches and compiles statements
        await services.background.drain()
        await services.notes.write(services)
        with walk(app) as walked:
            assert_ok(await plugin.http.post(PATH, params=PIER, json={"summary": "Fresh bread"}), 201)
    for name, functions in walked.files.items():
        print(f"{name}: {', '.join(functions)}")
    print(len(walked.files))
    assert len(walked.files) <= 24, list(walked.files)
