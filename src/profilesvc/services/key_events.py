"""Keys as lists and events show them."""

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import EventType, KeyChanged
from profilesvc.contract.keys import KeyDetails, KeyEntry, KeyStatus
from profilesvc.contract.stored import as_stored
from profilesvc.domain.time import iso, iso_or_none
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.storage import keys
from profilesvc.storage.keys import ListedKey, domains_of, has_ended


def _status(row: ListedKey, now: int) -> KeyStatus:
    if has_ended(row.revoked_at, row.expires_at, now):
        return "revoked"
    return "deactivated" if row.hold_reason is not None else "active"


def entry(row: ListedKey, now: int) -> KeyEntry:
    return as_stored(
        KeyEntry,
        {
            "id": row.id,
            "client_id": row.client_id,
            "name": row.name,
            "assigned_location_id": row.location_name,
            "primary_domain": row.primary_domain,
            "created_at": iso(row.created_at),
            "last_used_at": iso_or_none(row.last_used_at),
            "status": _status(row, now),
            "deactivation_reason": row.hold_reason,
            "expires_at": iso_or_none(row.expires_at),
        },
    )


def details(row: ListedKey, retiring_until: int | None, now: int) -> KeyDetails:
    """Return a key with its domains; `retiring_until` is the end of its previous secret."""
    return as_stored(
        KeyDetails,
        {
            **entry(row, now).model_dump(warnings=False),
            "allowed_domains": domains_of(row.allowed_domains),
            "previous_secret_expires_at": iso_or_none(retiring_until),
        },
    )


async def publish(services: Services, session: AsyncSession, kind: EventType, owner_id: int, ids: list[int]) -> None:
    """Write an event for each of these keys of an owner, with the key as it is now."""
    now = services.clock.now()
    for row in await keys.listed_of(session, owner_id, ids):
        data = KeyChanged(key=entry(row, now))
        event = events.new(kind, data, key_id=row.id, location_name=row.location_name)
        events.publish(services, session, owner_id, event)
