"""Periodic work: old rows, expired keys, counts, the sweep, readings, consents to withdraw, accounts, requests."""

import contextlib
import logging
from collections.abc import AsyncIterator

from profilesvc.domain.heartbeats import HISTORY, OFFLINE_AFTER
from profilesvc.domain.time import DAY, HOUR, month_start
from profilesvc.operations import counts, publishing
from profilesvc.operations.feed import feed, readings
from profilesvc.operations.notify import sweep
from profilesvc.services import audit, events, idempotency, rounds
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.services.insight import request_log
from profilesvc.services.logins import logins
from profilesvc.services.reviews import mirrors
from profilesvc.storage import events as stored_events
from profilesvc.storage.tables import partitions
from profilesvc.storage.tables.partitions import MONTHLY
from profilesvc.storage.upkeep import housekeeping

log = logging.getLogger("profilesvc")
PAUSES = (60.0, 3600.0)  # seconds before the first round, and between rounds
COUNTS_PAUSES = (60.0, 60.0)
# How long rows are kept, in milliseconds after the time that they contain; those of MONTHLY until their whole month is
# older, on all databases.
KEPT: dict[str, int] = {
    "audit": audit.KEPT,
    "syncs": audit.KEPT,
    "idempotency": 2 * idempotency.KEPT,
    "contacts": HISTORY + OFFLINE_AFTER + 31 * DAY,  # a run ends in the month in which it started
    "revocations": HOUR,  # longer than necessary, because a clock can be set back
    "families": HOUR,
    "exchanges": HOUR,
    "secrets": HOUR,
    "key_domains": HOUR,
    "leases": HOUR,
    "deliveries": events.KEPT,
    "events": events.KEPT,
    "mirrors": mirrors.VALID,
    "notifications": 8 * DAY,  # Pub/Sub repeats a message for at most seven
    "photos": HOUR,
    "sessions": HOUR,
    "key_usage": request_log.KEPT_COUNTS,
    "request_log": request_log.KEPT,
}


async def run_round(services: Services) -> None:
    """Run one round. Every process runs rounds; one deletes at a time, and the rest may run twice without effect."""
    await audit.record_expired(services)
    await rounds.run_alone(services, "housekeeping", _delete_old)


async def revoke_consents(services: Services) -> None:
    """Withdraw the consents of logins that their owners have disconnected, in one process at a time."""
    await rounds.run_alone(services, "revocations", logins.revoke_due)


async def _delete_old(services: Services) -> None:
    """Drop the partitions of old months and create those of coming ones; delete other old rows one by one."""
    now = services.clock.now()
    limits = {what: month_start(now - kept) if what in MONTHLY else now - kept for what, kept in KEPT.items()}
    await _write_events_again(services, now, limits["deliveries"])
    with services.storage.raising_unavailable():
        problems = await partitions.renew(services.storage.engine, now, before=limits)
    for problem in problems:
        log.warning("housekeeping: %s", problem)
    for what, before in limits.items():
        more = True
        while more:
            services.storage.renew()
            async with services.storage.write() as session:
                more = await housekeeping.prune(session, what, before)


async def _write_events_again(services: Services, now: int, before: int) -> None:
    """Write events of silent sites again whose deliveries are deleted next, if an alert by e-mail was sent or waits."""
    async with services.storage.read() as session:
        found = await stored_events.of_silent_sites(session, before)
    for owner_id, number in found:
        services.storage.renew()
        async with services.storage.write() as session:
            await stored_events.write_again(session, owner_id, number, now)


@contextlib.asynccontextmanager
async def in_background(services: Services) -> AsyncIterator[None]:
    """Run rounds as long as the block runs, and finish the current ones."""
    works: dict[rounds.Work, rounds.Pauses] = {
        run_round: PAUSES,
        counts.renew: COUNTS_PAUSES,
        sweep.run_once: sweep.PAUSES,
        readings.run_once: readings.PAUSES,
        feed.run_once: feed.PAUSES,
        publishing.run_once: publishing.PAUSES,
        revoke_consents: COUNTS_PAUSES,
        deletion.run_once: COUNTS_PAUSES,
        request_log.write_round: request_log.PAUSES,
    }
    try:
        async with rounds.in_background(services, "housekeeping", works):
            yield
    finally:
        await request_log.write_round(services)  # the last requests
