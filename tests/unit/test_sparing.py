"""Public results are computed with at most a small share of the processor."""

import asyncio
import time

import pytest

from profilesvc.api.brief_cache import BriefCache


class Maker:
    """Numbers what it makes; each takes some of the processor."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self) -> int:
        self.made += 1
        begun = time.thread_time()
        while time.thread_time() - begun < 0.002:
            pass
        await asyncio.sleep(0)
        return self.made


async def test_occasional_callers_get_a_new_result() -> None:
    maker, sparing = Maker(), BriefCache[int](budget=10)
    assert [await sparing.get(maker) for _ in range(3)] == [1, 2, 3]


async def test_a_flood_gets_the_last_result() -> None:
    maker, sparing = Maker(), BriefCache[int](budget=0.003)
    begun = time.monotonic()
    got = [await sparing.get(maker) for _ in range(100)]
    took = time.monotonic() - begun
    assert got == sorted(got)
    assert maker.made <= 3 + took * 0.05 / 0.002


async def test_recovers_soon_after_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    maker, sparing = Maker(), BriefCache[int](budget=0.001)
    assert await sparing.get(maker) == 1
    await sparing.get(maker)
    made, later = maker.made, time.monotonic() + 2
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await sparing.get(maker) == made + 1


async def test_an_unchanged_result_is_not_computed_again() -> None:
    maker, sparing = Maker(), BriefCache[int](budget=10)
    assert [await sparing.get(maker, stamp) for stamp in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]


async def test_concurrent_callers_share_one_computation() -> None:
    maker, sparing = Maker(), BriefCache[int](budget=10)
    assert await asyncio.gather(*(sparing.get(maker) for _ in range(20))) == [1] * 20


async def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    maker, sparing = Maker(), BriefCache[int](budget=10)
    first = asyncio.create_task(sparing.get(maker))
    await asyncio.sleep(0)
    others = asyncio.gather(*(sparing.get(maker) for _ in range(3)))
    first.cancel()
    assert await others == [1, 1, 1]


async def test_a_failure_is_not_kept() -> None:
    async def fails() -> int:
        raise RuntimeError("broken")

    maker, sparing = Maker(), BriefCache[int](budget=10)
    with pytest.raises(RuntimeError):
        await sparing.get(fails)
    assert await sparing.get(maker) == 1
