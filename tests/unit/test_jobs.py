"""Jobs run at their intervals, each on its own, and end in bounded time; the time is simulated."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from profilesvc.contract.errors import RATE_LIMITED
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request
from profilesvc.services.jobs import END_SECONDS, Job, JobFailed, Where, run_jobs, run_once
from profilesvc.telemetry.metrics import Metrics
from support.simulated_time import START, LoopClock, simulate


class Leases:
    """Leases. Other processes hold those in `taken`."""

    def __init__(self) -> None:
        self.taken = set[str]()

    @contextlib.asynccontextmanager
    async def hold(self, name: str, patience: float) -> AsyncIterator[bool]:
        assert patience == 0
        yield name not in self.taken


class Process:
    """The parts of the services that jobs need."""

    def __init__(self) -> None:
        self.storage, self.leases = self, Leases()
        self.metrics, self.clock = Metrics(), LoopClock()
        self.failures: list[str] = []

    def failed_in_background(self, what: str, error: ServiceError) -> None:
        self.failures.append(f"{what}: {error.kind.code}")

    def figures(self) -> dict[str, float]:
        """Return the metrics of jobs, as `runs sweep ok`."""
        found = {}
        for line in self.metrics.exposition().decode().splitlines():
            name, _, labels = line.partition("{")
            if name.startswith("profilesvc_job_") and "_seconds_" not in name and "_created" not in name:
                values = [part.split('"')[1] for part in labels.partition("}")[0].split(",")]
                found[" ".join([name.removeprefix("profilesvc_job_"), *values])] = float(line.rpartition(" ")[2])
        return found


def passed() -> float:
    return asyncio.get_running_loop().time()


def job(run: Callable[[Any], Awaitable[object]], name: str = "one", every: float = 60, **more: Any) -> Job:
    return Job(name, run, 5, every, **{"where": Where.EVERY, **more})


async def ran(process: Process, seconds: float, *jobs: Job) -> None:
    async with run_jobs(process, jobs):  # type: ignore[arg-type]  # a part of the services
        await asyncio.sleep(seconds)


def test_runs_after_the_first_pause_and_then_at_the_interval_that_follows_a_run() -> None:
    async def main() -> list[float]:
        at: list[float] = []

        async def run(_services: Any) -> None:
            assert current_request().background
            at.append(passed())
            await asyncio.sleep(10)

        await ran(Process(), 200, job(run))
        return at

    assert simulate(main()) == [5, 75, 145]


def test_a_job_that_hangs_or_fails_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[Process, list[float]]:
        process, at = Process(), list[float]()
        process.leases.taken.add("elsewhere")

        async def hang(_services: Any) -> None:
            await asyncio.Event().wait()

        async def fail(_services: Any) -> None:
            raise [ServiceError(RATE_LIMITED), JobFailed("no mail server"), ValueError("a defect")][len(at) % 3]

        async def work(_services: Any) -> None:
            at.append(passed())

        others = job(hang, "hangs"), job(fail, "fails"), job(work, "elsewhere", where=Where.ONE)
        await ran(process, 200, *others, job(work, "works", where=Where.ONE))
        return process, at

    process, at = simulate(main())
    assert at == [5, 65, 125, 185]
    assert process.failures == ["fails: RATE_LIMITED", "fails: RATE_LIMITED"]
    assert [record.getMessage() for record in caplog.records] == ["fails: no mail server", "fails: unexpected"]
    assert process.figures() == {
        "runs_total fails failed": 4,
        "runs_total elsewhere skipped": 4,
        "runs_total works ok": 4,
        "last_success_seconds hangs": START / 1000,
        "last_success_seconds fails": START / 1000,
        "last_success_seconds elsewhere": START / 1000,
        "last_success_seconds works": START / 1000 + 185,
        "interval_seconds hangs every process": 60,
        "interval_seconds fails every process": 60,
        "interval_seconds elsewhere one process": 60,
        "interval_seconds works one process": 60,
    }


def test_a_part_of_the_work_that_was_cancelled_does_not_end_the_job(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        count = 0

        async def run(_services: Any) -> None:
            nonlocal count
            count += 1
            part = asyncio.ensure_future(asyncio.sleep(9))
            part.cancel()
            await part

        await ran(Process(), 100, job(run))
        return count

    assert simulate(main()) == 2
    assert {record.getMessage() for record in caplog.records} == {"one: cancelled by a part of its work"}


def test_an_event_wakes_a_job_and_does_not_make_it_run_without_a_break() -> None:
    async def main() -> tuple[list[float], list[str]]:
        at, ended, wake = list[float](), list[str](), asyncio.Event()

        async def run(_services: Any) -> None:
            at.append(round(passed(), 2))
            if len(at) > 2:
                wake.set()

        async def end(_services: Any) -> None:
            ended.append("ended")

        woken = job(run, every=1, wake=wake, end=end)
        async with run_jobs(Process(), [woken]):  # type: ignore[arg-type]
            await asyncio.sleep(6.5)
            wake.set()
            await asyncio.sleep(0.5)
        return at, ended

    assert simulate(main()) == ([5.02, 6.04, 6.52, 6.72, 6.92], ["ended"])


class Stubborn:
    """Work that loses cancellations, as `asyncio.wait_for` of Python 3.11 can."""

    def __init__(self, losses: int) -> None:
        self.losses, self.cancelled = losses, 0

    async def __call__(self, _services: Any) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > self.losses:
                    raise


@pytest.mark.parametrize(("losses", "seconds"), [(0, 5), (1, 6), (2, 7)])
def test_a_run_that_takes_too_long_is_cancelled_until_it_ends(
    losses: int, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> tuple[float, list[str]]:
        order: list[str] = []

        async def end(_services: Any) -> None:
            order.append("ended")

        async def quick(_services: Any) -> None:
            await asyncio.sleep(2)
            order.append("finished")

        other = Job("quick", quick, 9, 60, Where.EVERY)
        await ran(Process(), 10, job(Stubborn(losses), end=end), other)
        return passed() - 10, order

    assert simulate(main()) == (seconds, ["finished", "ended"])
    assert caplog.records == []


def test_a_job_that_never_ends_is_left_behind_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> float:
        work = Stubborn(10)
        await ran(Process(), 10, job(work))
        end = passed() - 10
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
        return end

    assert simulate(main()) == sum(END_SECONDS)
    assert [record.getMessage() for record in caplog.records] == ["one: does not end"]


def test_a_run_that_is_cancelled_with_its_task_is_not_counted() -> None:
    async def main() -> dict[str, float]:
        process = Process()
        task = asyncio.ensure_future(run_once(process, job(Stubborn(0))))  # type: ignore[arg-type]
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return process.figures()

    assert simulate(main()) == {}
