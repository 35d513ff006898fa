"""Run other requests between two steps of one, so that a race has the same order every time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Act = Callable[[], Awaitable[None]]


def run_before(patch: pytest.MonkeyPatch, place: object, name: str, act: Act) -> None:
    """Run requests before the next call of a function, once."""
    original, waiting = getattr(place, name), [act]

    async def interrupted(*args: Any, **values: Any) -> Any:
        while waiting:
            await waiting.pop()()
        return await original(*args, **values)

    patch.setattr(place, name, interrupted)


def run_after(patch: pytest.MonkeyPatch, place: object, name: str, act: Act) -> None:
    """Run requests after the next call of a function, once."""
    original, waiting = getattr(place, name), [act]

    async def followed(*args: Any, **values: Any) -> Any:
        result = await original(*args, **values)
        while waiting:
            await waiting.pop()()
        return result

    patch.setattr(place, name, followed)
