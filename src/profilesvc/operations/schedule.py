"""What runs when: the periodic work of a process, with its intervals ("Background work" in docs/architecture.md)."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from profilesvc.delivery import kinds, operator, worker
from profilesvc.delivery.senders import Sender
from profilesvc.operations import census, housekeeping, publishing
from profilesvc.operations.feed import feed, readings
from profilesvc.operations.notify import sweep
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.services.jobs import Job, Where, run_jobs
from profilesvc.services.logins import logins
from profilesvc.tokens.signing_keys import RELOAD_SECONDS


async def _write_request_log(services: Services) -> None:
    await services.request_log.write(services)


CORE = (
    Job("signing_keys", lambda services: services.signing_keys.renew(), RELOAD_SECONDS, RELOAD_SECONDS, Where.EVERY),
    Job("gauges", lambda services: services.metrics.share(), 1, 1, Where.EVERY),
    Job("counts", census.renew, 60, 60, Where.ONE),
    Job("housekeeping", housekeeping.run_once, 60, 3600, Where.ONE),
)
ROOMS: Mapping[str, tuple[Job, ...]] = {
    "insight": (Job("request_log", _write_request_log, 5, 5, Where.EVERY, end=_write_request_log),),
    "notify": (
        Job("sweep", sweep.run_once, 60, 60, Where.ONE),
        Job("operator_mail", operator.run_once, 0, 60, Where.ONE),
    ),
    "drafts": (Job("publishing", publishing.run_once, 30, 30, Where.ONE),),
    "feed": (
        Job("readings", readings.run_once, 60, 60, Where.ONE),
        Job("feed", feed.run_once, 5, 5, Where.ONE),
    ),
    "logins": (Job("revocations", logins.revoke_due, 60, 60, Where.ONE),),
    "accounts": (Job("deletions", deletion.run_once, 60, 60, Where.ONE),),
}


def jobs(services: Services, senders: Mapping[str, Sender], rooms: Collection[str] = tuple(ROOMS)) -> list[Job]:
    """Return the jobs of the core and of some rooms."""
    chosen = [*CORE, *(job for room in rooms for job in ROOMS[room])]
    if "notify" in rooms and services.settings.webhooks.deliver:
        chosen.append(worker.job(services, senders))
    return chosen


@asynccontextmanager
async def running(services: Services, rooms: Collection[str] = tuple(ROOMS)) -> AsyncIterator[None]:
    """Run the jobs while the block runs."""
    async with kinds.open_senders(services) as senders, run_jobs(services, jobs(services, senders, rooms)):
        yield
