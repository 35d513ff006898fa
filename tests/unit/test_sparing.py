"""Public results are computed with at most a small share of the processor."""

import asyncio
from types import SimpleNamespace

import pytest

from profilesvc.api import brief_cache
from profilesvc.api.brief_cache import BriefCache


class Maker:
    """Numbers what it makes; each takes some of the processor."""

    def __init__(self, processor: "Processor") -> None:
        self.made, self.processor = 0, processor

    async def __call__(self) -> int:
        self.made += 1
        self.processor.seconds += 0.002
        await asyncio.sleep(0)
        return self.made


class Processor:
    """The processor's time, which passes only by the work of makers, and that of the wall."""

    seconds = wall = 0.0


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Processor:
    processor = Processor()
    monkeypatch.setattr(
        brief_cache, "time", SimpleNamespace(thread_time=lambda: processor.seconds, monotonic=lambda: processor.wall)
    )
    return processor


async def test_occasional_callers_get_a_new_result(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=10)
    assert [await sparing.get(maker) for _ in range(3)] == [1, 2, 3]


async def test_a_flood_gets_the_last_result(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=0.003)
    assert [await sparing.get(maker) for _ in range(5)] == [1, 2, 2, 2, 2]
    processor.wall += 0.1  # 5 % of it are 5 ms
    assert [await sparing.get(maker) for _ in range(5)] == [3, 4, 4, 4, 4]


async def test_recovers_soon_after_a_flood(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=0.001)
    assert await sparing.get(maker) == 1
    await sparing.get(maker)
    made = maker.made
    processor.wall += 2
    assert await sparing.get(maker) == made + 1


async def test_an_unchanged_result_is_not_computed_again(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=10)
    assert [await sparing.get(maker, stamp) for stamp in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]


async def test_concurrent_callers_share_one_computation(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=10)
    assert await asyncio.gather(*(sparing.get(maker) for _ in range(20))) == [1] * 20


async def test_a_cancelled_caller_does_not_affect_the_others(processor: Processor) -> None:
    maker, sparing = Maker(processor), BriefCache[int](budget=10)
    first = asyncio.create_task(sparing.get(maker))
    await asyncio.sleep(0)
    others = asyncio.gather(*(sparing.get(maker) for _ in range(3)))
    first.cancel()
    assert await others == [1, 1, 1]


async def test_a_failure_is_not_kept(processor: Processor) -> None:
    async def fails() -> int:
        raise RuntimeError("broken")

    maker, sparing = Maker(processor), BriefCache[int](budget=10)
    with pytest.raises(RuntimeError):
        await sparing.get(fails)
    assert await sparing.get(maker) == 1
