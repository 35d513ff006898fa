"""Fixtures of the provider tests; the rig itself is in provider_rig.py."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from profilesvc.domain.time import FrozenClock
from support.provider.rig import START, Rig, in_process, over_socket


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture(params=[in_process, over_socket], ids=["in_process", "socket"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Rig]:
    """Both transports: the conformance tests run twice."""
    async with request.param(tmp_path, clock) as made:
        yield made


@pytest.fixture
async def emulator(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Rig]:
    """The emulator in the process, with a logged-in plain client."""
    async with in_process(tmp_path, clock) as made:
        await made.log_in()
        yield made
