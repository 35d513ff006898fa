"""Logins at the provider of all owners, for the operator."""

from typing import NamedTuple

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.provider_connections import ProviderConnectionDisconnected
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import iso_or_none
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Services
from profilesvc.services.logins import logins
from profilesvc.services.provider_logins import provider_of
from profilesvc.storage import logins as table
from profilesvc.storage import provider_logins
from profilesvc.storage.provider_logins import ProviderLogin


class LoginSummary(NamedTuple):
    """A login without its token."""

    id: int
    owner_id: int
    email: str | None
    state: str
    locations: int
    last_used_at: str | None
    last_error: str | None


async def listing(services: Services) -> list[LoginSummary]:
    """Return the logins of all owners that are not disconnected."""
    async with services.storage.read() as session:
        rows = [row for row in await table.all_logins(session) if row.state != "disconnected"]
        counts = {
            owner_id: await table.locations_by_login(session, owner_id) for owner_id in {row.owner_id for row in rows}
        }
    return [_summary(row, counts[row.owner_id].get(row.id, 0)) for row in rows]


def _summary(row: ProviderLogin, count: int) -> LoginSummary:
    used = iso_or_none(row.last_used_at)
    return LoginSummary(row.id, row.owner_id, row.email, row.state, count, used, row.last_error)


async def check(services: Services, owner_id: int, number: int) -> dict[str, object]:
    """Ask the provider which accounts a login sees.

    Raises:
        ServiceError: NOT_FOUND.
    """
    row = await _require(services, owner_id, number)
    try:
        accounts = await provider_of(services, row).accounts()
    except ProviderError as error:
        return {"id": number, "works": False, "reason": error.reason, "message": str(error)}
    return {"id": number, "works": True, "accounts": [account.get("name") for account in accounts]}


async def disconnect(services: Services, owner_id: int, number: int) -> ProviderConnectionDisconnected:
    """Disconnect a login as its owner can.

    Raises:
        ServiceError: NOT_FOUND.
    """
    done = await logins.end(services, await _require(services, owner_id, number))
    await logins.revoke_due(services)
    return done


async def _require(services: Services, owner_id: int, number: int) -> ProviderLogin:
    async with services.storage.read() as session:
        row = await provider_logins.find(session, owner_id, number)
    if row is None or row.state == "disconnected":
        raise ServiceError(NOT_FOUND, "There is no such connection.")
    return row
