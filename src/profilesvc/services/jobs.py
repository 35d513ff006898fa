"""Periodic work: run each job at its interval, log and count how a run ended, and end all jobs in bounded time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from profilesvc.domain import request
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import Services

log = logging.getLogger("profilesvc")
Work = Callable[[Services], Awaitable[object]]
# Seconds until runs that have not finished at the end are cancelled, and between further cancellations, because Python
# 3.11 can lose one. The sum fits between the server's 20 s for open requests and the time limits of process managers.
END_SECONDS = (5.0, 1.0, 1.0, 1.0)
_COMMIT_SECONDS = 0.02  # from the signal that wakes a job to the commit that caused it
_SPACING_SECONDS = 0.2  # between starts of a job that is woken, because one run for many rows costs little more


class Where(StrEnum):
    """The processes that run a job: each of them, or one at a time, which holds the lease with the job's name."""

    EVERY = "every process"
    ONE = "one process"


class JobFailed(Exception):
    """An expected failure of a run, with a message for the log."""


@dataclass(frozen=True)
class Job:
    """Periodic work, with its name in logs and metrics.

    `first` and `every` are seconds: until the first run, and from the end of a run to the next one. `wake` starts a run
    before its time. `end` ends what the runs have started.
    """

    name: str
    run: Work
    first: float
    every: float
    where: Where
    wake: asyncio.Event | None = None
    end: Work | None = None


async def run_alone(services: Services, lease: str, work: Work) -> bool:
    """Do the work and return True, unless another process is doing it.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    async with services.storage.leases.hold(lease, patience=0) as was_free:
        if was_free:
            await work(services)
    return was_free


async def run_once(services: Services, job: Job) -> None:
    """Run a job now. Log and count a failure; the next run also does the work of a failed one."""
    loop = asyncio.get_running_loop()
    started, outcome = loop.time(), "failed"
    try:
        with request.low_priority():
            if job.where is Where.EVERY:
                await job.run(services)
                outcome = "ok"
            else:
                outcome = "ok" if await run_alone(services, job.name, job.run) else "skipped"
    except ServiceError as error:
        services.failed_in_background(job.name, error)
    except JobFailed as error:
        log.warning("%s: %s", job.name, error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        log.exception("%s: cancelled by a part of its work", job.name)
    except Exception:  # a defect must not end the job
        log.exception("%s: unexpected", job.name)
    services.metrics.job_ended(job.name, outcome, loop.time() - started, services.clock.now())


async def _repeat(services: Services, job: Job, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    services.metrics.job_started(job.name, job.where, job.every, services.clock.now())
    pause, started = job.first, loop.time() - _SPACING_SECONDS
    try:
        while True:
            await _wait(job.wake or stop, pause)
            if job.wake is not None:
                await _wait(stop, max(_COMMIT_SECONDS, started + _SPACING_SECONDS - loop.time()))
                job.wake.clear()
            if stop.is_set():
                return
            pause, started = job.every, loop.time()
            await run_once(services, job)
    finally:
        if job.end is not None:
            await job.end(services)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


@contextlib.asynccontextmanager
async def run_jobs(services: Services, jobs: Iterable[Job]) -> AsyncIterator[None]:
    """Run jobs while the block runs. Then finish their current runs, and cancel those that take longer."""
    stop, jobs = asyncio.Event(), list(jobs)
    tasks = {asyncio.create_task(_repeat(services, job, stop), name=job.name) for job in jobs}
    try:
        yield
    finally:
        for event in (stop, *(job.wake for job in jobs if job.wake is not None)):
            event.set()
        await _end(tasks)


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    left = tasks
    for seconds in END_SECONDS:
        if left:
            _, left = await asyncio.wait(left, timeout=seconds)
        for task in left:
            task.cancel()
    for task in tasks - left:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: unexpected", task.get_name(), exc_info=error)
    for task in left:
        log.error("%s: does not end", task.get_name())
