"""Once an hour: record expired keys, create and drop partitions, and delete old rows."""

import logging

from profilesvc.domain.heartbeats import HISTORY, OFFLINE_AFTER
from profilesvc.domain.time import DAY, HOUR, month_start
from profilesvc.services import audit, events, idempotency, locations
from profilesvc.services.context import Services
from profilesvc.storage import events as stored_events
from profilesvc.storage.tables import partitions
from profilesvc.storage.tables.insight import LOG_KEPT
from profilesvc.storage.tables.partitions import MONTHLY
from profilesvc.storage.upkeep import housekeeping

log = logging.getLogger("profilesvc")
# How long rows are kept, in milliseconds after the time that they contain; those of MONTHLY until their whole month is
# older, on all databases.
RETENTION: dict[str, int] = {
    "audit": audit.RETENTION,
    "syncs": audit.RETENTION,
    "idempotency": 2 * idempotency.RETENTION,
    "contacts": HISTORY + OFFLINE_AFTER + 31 * DAY,  # a run ends in the month in which it started
    "revocations": HOUR,  # longer than necessary, because a clock can be set back
    "families": HOUR,
    "exchanges": HOUR,
    "secrets": HOUR,
    "key_domains": HOUR,
    "leases": HOUR,
    "deliveries": events.RETENTION,
    "events": events.RETENTION,
    "mirrors": locations.ANNOUNCED_AGE,
    "notifications": 8 * DAY,  # Pub/Sub repeats a message for at most seven
    "photos": HOUR,
    "sessions": HOUR,
    "key_usage": 31 * DAY,  # a caller can ask for 30
    "request_log": LOG_KEPT,
}


async def run_once(services: Services) -> None:
    """Record expired keys, drop the partitions of old months, create those of coming ones, and delete old rows."""
    await audit.record_expired(services)
    now = services.clock.now()
    limits = {what: month_start(now - age) if what in MONTHLY else now - age for what, age in RETENTION.items()}
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
        rows = await stored_events.silent_site_events(session, before)
    for owner_id, number in rows:
        services.storage.renew()
        async with services.storage.write() as session:
            await stored_events.write_again(session, owner_id, number, now)
