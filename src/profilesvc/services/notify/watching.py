"""Events of keys that time causes (docs/events.md). `operations/notify/sweep.py` finds the keys."""

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import ConnectionChanged, EventType
from profilesvc.domain.heartbeats import DOWN, ReportedState, reported_state
from profilesvc.domain.time import DAY, SECOND
from profilesvc.services import events, key_events
from profilesvc.services.context import Services
from profilesvc.services.heartbeats import is_mismatch, status_of
from profilesvc.storage import heartbeats
from profilesvc.storage.heartbeats import KeyStatus
from profilesvc.storage.notify import watches
from profilesvc.storage.notify.watches import Stale

_KINDS: dict[ReportedState, EventType] = {
    "never_connected": "connection.never_connected",
    "online": "connection.online",
    "idle": "connection.idle",
    "offline": "connection.offline",
}


def state_of(key: Stale, last_heartbeat_at: int | None, now: int) -> ReportedState:
    """Return the state that the events of a key should report now.

    A site that was reported as down is so until its next heartbeat, also if its grace was made longer since then.
    """
    if key.state in DOWN and (last_heartbeat_at is None or last_heartbeat_at < key.changed_at):
        return key.state
    return reported_state(last_heartbeat_at, key.created_at, key.grace_seconds * SECOND, now)


async def update(services: Services, session: AsyncSession, key: Stale, now: int, *, may_alarm: bool) -> None:
    """Publish what changed since the last event of a key, as it was at `now`.

    Every change is conditional, so that two processes publish it once. Without `may_alarm` only good news is
    published: the site is online.
    """
    current = await heartbeats.status(session, key.client_id, key.owner_id)
    if current is None or current.revoked_at is not None:
        return
    state = state_of(key, current.last_heartbeat_at, now)
    if state != key.state and (may_alarm or state == "online") and await watches.flip(session, key, state, now):
        kind = _KINDS.get(state)
        if kind is not None:
            await _publish(services, session, kind, key, current, now)
    mismatch = is_mismatch(current, now)
    if mismatch != key.site_mismatch and await watches.note_mismatch(session, key, mismatch, now) and mismatch:
        await _publish(services, session, "connection.site_mismatch", key, current, now)
    days = _days_before_the_end(key, now)
    is_news = days > 0 and (key.expiry_announced == 0 or days < key.expiry_announced)
    if is_news and await watches.note_expiry(session, key, days, now):
        await key_events.publish(services, session, "key.expiring", key.owner_id, [key.key_id])


async def _publish(
    services: Services, session: AsyncSession, kind: EventType, key: Stale, current: KeyStatus, now: int
) -> None:
    status = status_of(await heartbeats.explained(session, key.owner_id, current, now), now)
    data = ConnectionChanged(client_id=key.client_id, location_id=key.location_name, connection=status)
    event = events.new(kind, data, key_id=key.key_id, location_name=key.location_name)
    events.publish(services, session, key.owner_id, event)


def _days_before_the_end(key: Stale, now: int) -> int:
    """Return 1 or 7 for a key that ends within as many days and was valid for longer, else 0."""
    if key.expires_at is None:
        return 0
    left, lifetime = key.expires_at - now, key.expires_at - key.created_at
    return next((days for days in (1, 7) if left <= days * DAY < lifetime), 0)
