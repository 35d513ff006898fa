"""Checks of the service's readiness for requests."""

import asyncio

from profilesvc.database import migrate, nodes
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.services import pepper
from profilesvc.services.context import Services

_NODES_SECONDS = 2.5
# A node that is down fails the requests of its owners only, without a standby reads are still served, and the primary
# does the work of a replica.
DEGRADING = frozenset({"nodes", "standby", "replica"})


async def checks(services: Services) -> dict[str, bool]:
    """Return the result of each check by its name.

    There is `nodes` only on a cluster, `standby` only with synchronous replication, and `replica` only with one.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE if the database does not respond.
    """
    with services.storage.raising_unavailable():
        async with asyncio.timeout(BUSY_SECONDS):
            current = await migrate.current(services.storage.engine)
            is_writable = await services.storage.is_writable()
            has_standby = await services.storage.has_standby() if is_writable else None
            nodes_respond = await _nodes_respond(services)
            has_pepper = await pepper.is_same(services)
            replica = None if services.storage.replica is None else await services.storage.replica.check()
    return {
        "database": True,
        "writable": is_writable,
        "migrations": migrate.is_supported(current),
        "signing_key": services.signer.keyring.is_complete,
        "pepper": has_pepper,
        **({} if nodes_respond is None else {"nodes": nodes_respond}),
        **({} if has_standby is None else {"standby": has_standby}),
        **({} if replica is None else {"replica": not replica.problem}),
    }


def replica_lag(services: Services) -> dict[str, float | None]:
    """Return `replica_lag_seconds` of the last check, null if it is not known; nothing without a replica."""
    replica = services.storage.replica
    return {} if replica is None else {"replica_lag_seconds": replica.state.lag}


async def _nodes_respond(services: Services) -> bool | None:
    """Return whether all nodes of a cluster respond; None if this is no cluster."""
    try:
        async with asyncio.timeout(_NODES_SECONDS):
            down = await nodes.without_response(services.storage.engine)
    except TimeoutError:  # Citus waits on a connection that it opened before the node was cut off
        return False
    return None if down is None else not down
