"""Checks of the service's readiness for requests."""

import asyncio

from profilesvc.database import migrate
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.services.context import Services


async def checks(services: Services) -> dict[str, bool]:
    """Return the result of each check by its name.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE if the database does not respond.
    """
    with services.storage.raising_unavailable():
        async with asyncio.timeout(BUSY_SECONDS):
            current = await migrate.current(services.storage.engine)
            is_writable = await services.storage.is_writable()
    return {
        "database": True,
        "writable": is_writable,
        "migrations": migrate.is_supported(current),
        "signing_key": services.signer.keyring.is_complete,
    }
