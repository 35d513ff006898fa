"""Documents that are the same for everybody are made once, and not in the loop."""

import asyncio
import threading

import pytest
from quart import Quart

from profilesvc.api.documents import Documents


async def test_is_made_once_on_a_thread() -> None:
    made: list[threading.Thread] = []
    documents, goes_on = Documents(), threading.Event()

    def make() -> bytes:
        made.append(threading.current_thread())
        assert goes_on.wait(30), "the loop was kept from going on"
        return b"words " * 1_000

    async with Quart(__name__).app_context():
        asked = [asyncio.create_task(documents.respond("x", make, "text/plain")) for _ in range(10)]
        asked[0].cancel()  # who leaves takes nothing from the others
        await asyncio.sleep(0)
        goes_on.set()
        answers = await asyncio.gather(*asked[1:], documents.respond("x", make, "text/plain"))
    assert len(made) == 1
    assert made[0] is not threading.current_thread()
    assert {answer.headers["ETag"] for answer in answers} == {answers[0].headers["ETag"]}


async def test_a_failure_is_not_kept() -> None:
    def fails() -> bytes:
        raise OSError("no such file")

    documents = Documents()
    async with Quart(__name__).app_context():
        with pytest.raises(OSError, match="no such file"):
            await documents.respond("x", fails, "text/plain")
        answer = await documents.respond("x", lambda: b"words", "text/plain")
        assert await answer.get_data() == b"words"
