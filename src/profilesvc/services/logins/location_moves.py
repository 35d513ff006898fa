"""Locations of a former manager: they move to an owner whose login sees them (D-136)."""

from collections.abc import Collection

from profilesvc.domain.request import low_priority
from profilesvc.domain.time import DAY
from profilesvc.provider.port import ProviderError
from profilesvc.services import audit
from profilesvc.services.context import Services
from profilesvc.services.drafts import photos
from profilesvc.services.holds import fit_plan, hold
from profilesvc.services.provider_logins import provider_of
from profilesvc.storage import holds, locations, provider_logins, users
from profilesvc.storage import logins as table
from profilesvc.storage.drafts import drafts

_ENDED_FOR = 7 * DAY  # after which a login that its owner has not connected again holds no location
_FORBIDDEN = 403


async def release(services: Services, owner_id: int, names: Collection[str]) -> None:
    """Disconnect locations of other owners whose logins have lost them. `owner_id` has a login that sees them.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    async with services.storage.read() as session:
        owners = await locations.owners_of(session, list(names))
    for name, other in owners.items():
        if other != owner_id and (number := await _lost_login(services, other, name)) is not None:
            services.storage.renew()
            await _disconnect(services, other, name, number)


async def _lost_login(services: Services, owner_id: int, name: str) -> int | None:
    """Return the login of a location if it does not see the location any more; None if it may see it."""
    async with services.storage.read() as session:
        place = await locations.place_of(session, owner_id, name)
        if place is None or place.connection_id is None:
            return None
        row = await provider_logins.find(session, owner_id, place.connection_id)
    if row is None:
        return None
    if row.state == "reauth_required":
        ended_at = row.last_error_at or services.clock.now()
        return row.id if ended_at <= services.clock.now() - _ENDED_FOR else None
    try:
        with low_priority():
            await provider_of(services, row).location(name)
    except ProviderError as error:
        return row.id if error.not_found or error.http_status == _FORBIDDEN else None
    return None


async def _disconnect(services: Services, owner_id: int, name: str, number: int) -> None:
    """Deactivate the keys of a location and delete its data, as the disconnection of its login does."""
    now = services.clock.now()
    async with services.storage.write() as session:
        user = await users.lock_user(session, owner_id)
        place = await locations.place_of(session, owner_id, name)
        if place is None or place.connection_id != number:  # it was disconnected or connected otherwise meanwhile
            return
        await hold(services, session, owner_id, holds.at_locations([name]), "user_requested")
        documents = await drafts.documents(session, owner_id, [name])
        await table.forget(session, owner_id, [name], now)
        for document in documents:
            await photos.release(services, session, owner_id, document)
        await fit_plan(services, session, user)
        await audit.record(services, session, "provider.disconnected", owner_id, connection_id=number, location_id=name)
