"""The periodic work of a process, with its intervals ("Background work" in docs/architecture.md).

The modules of rooms are imported only if the service has rooms.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from profilesvc.operations import census, housekeeping
from profilesvc.services.context import Services
from profilesvc.services.jobs import Job, Where, run_jobs
from profilesvc.tokens.signing_keys import RELOAD_SECONDS

if TYPE_CHECKING:
    from profilesvc.delivery.senders import Sender

CORE = (
    Job("signing_keys", lambda services: services.signing_keys.renew(), RELOAD_SECONDS, RELOAD_SECONDS, Where.EVERY),
    Job("gauges", lambda services: services.metrics.share(), 1, 1, Where.EVERY),
    Job("counts", census.renew, 60, 60, Where.ONE),
    Job("housekeeping", housekeeping.run_once, 60, 3600, Where.ONE),
)


def room_jobs() -> Mapping[str, tuple[Job, ...]]:
    """Return the jobs of each room that has some."""
    from profilesvc.delivery import operator
    from profilesvc.operations import publishing
    from profilesvc.operations.feed import feed, readings
    from profilesvc.operations.notify import sweep
    from profilesvc.services.accounts import deletion
    from profilesvc.services.insight import request_log
    from profilesvc.services.logins import logins

    return {
        "insight": (Job("request_log", request_log.write, 5, 5, Where.EVERY, end=request_log.write),),
        "notify": (
            Job("sweep", sweep.run_once, 60, 60, Where.ONE),
            Job("operator_mail", operator.run_once, 0, 60, Where.ONE),
        ),
        "drafts": (Job("publishing", publishing.run_once, 30, 30, Where.ONE),),
        "feed": (Job("readings", readings.run_once, 60, 60, Where.ONE), Job("feed", feed.run_once, 5, 5, Where.ONE)),
        "logins": (Job("revocations", logins.revoke_due, 60, 60, Where.ONE),),
        "accounts": (Job("deletions", deletion.run_once, 60, 60, Where.ONE),),
    }


def jobs(services: Services, senders: "Mapping[str, Sender]", rooms: Collection[str]) -> list[Job]:
    of_rooms = room_jobs() if rooms else {}
    chosen = [*CORE, *(job for room in rooms for job in of_rooms.get(room, ()))]
    if "notify" in rooms and services.settings.webhooks.deliver:
        from profilesvc.delivery import worker

        chosen.append(worker.job(services, senders))
    return chosen


@asynccontextmanager
async def running(services: Services, rooms: Collection[str]) -> AsyncIterator[None]:
    """Run the jobs while the block runs."""
    opened: AbstractAsyncContextManager[Mapping[str, Sender]] = nullcontext({})
    if "notify" in rooms:
        from profilesvc.delivery import kinds

        opened = kinds.open_senders(services)
    async with opened as senders, run_jobs(services, jobs(services, senders, rooms)):
        yield
