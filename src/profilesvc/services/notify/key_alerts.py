"""The alert settings of a key's site: its grace, and the end of a snooze."""

from profilesvc.contract.alerts import KeyAlerts, KeyAlertsChange
from profilesvc.domain.errors import invalid
from profilesvc.domain.time import DAY, instant_of, iso_or_none
from profilesvc.services.access import missing, own_key
from profilesvc.services.context import Caller, Services
from profilesvc.storage import keys
from profilesvc.storage.notify import alerts, watches

_LONGEST = 400 * DAY


async def get(services: Services, caller: Caller, client_id: str) -> KeyAlerts:
    """Return how the site of a key is watched.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        key = await keys.own(session, client_id, caller.owner_id)
        if key is None or not key.is_live(services.clock.now()):
            raise missing("API key")
        return _alerts(client_id, *await watches.choices(session, caller.owner_id, key.id))


async def change(services: Services, caller: Caller, client_id: str, body: KeyAlertsChange) -> KeyAlerts:
    """Change the fields of the body; the others keep their values.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND.
    """
    now = services.clock.now()
    text = body.snoozed_until
    until = None if text is None else instant_of("snoozed_until", text, "2027-01-02T03:04:05Z")
    if until is not None and not now < until <= now + _LONGEST:
        raise invalid("body", "snoozed_until", "must be in the future, and at most 400 days away")
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        grace, snoozed = before = await watches.choices(session, key.owner_id, key.id)
        if body.grace_seconds is not None:
            grace = body.grace_seconds
        if "snoozed_until" in body.model_fields_set:
            snoozed = until
        await watches.choose(session, key.owner_id, key.id, grace, snoozed, now)
        if before[1] is not None and before[1] != snoozed:
            await alerts.end_wait(session, key.owner_id, [before[1]], now)
            services.due.set()
    return _alerts(client_id, grace, snoozed)


def _alerts(client_id: str, grace: int, until: int | None) -> KeyAlerts:
    return KeyAlerts(client_id=client_id, grace_seconds=grace, snoozed_until=iso_or_none(until))
