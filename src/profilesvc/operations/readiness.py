"""Checks of the service's readiness for requests."""

import asyncio

from profilesvc.database import migrate, nodes
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.services.context import Services

DEGRADING = frozenset({"nodes"})  # a node that is down fails the requests of its owners only


async def checks(services: Services) -> dict[str, bool]:
    """Return the result of each check by its name; `nodes` only on a cluster.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE if the database does not respond.
    """
    with services.storage.raising_unavailable():
        async with asyncio.timeout(BUSY_SECONDS):
            current = await migrate.current(services.storage.engine)
            is_writable = await services.storage.is_writable()
            down = await nodes.without_response(services.storage.engine)
    return {
        "database": True,
        "writable": is_writable,
        "migrations": migrate.is_supported(current),
        "signing_key": services.signer.keyring.is_complete,
        **({} if down is None else {"nodes": not down}),
    }
