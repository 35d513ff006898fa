"""The time limits of PostgreSQL's sessions, which end the statements and locks of a connection that was lost.

They belong to the role, not to the connection, because a pooler rejects start-up parameters that it does not know. So
does the setting of plans on Citus: a session of Citus 14.0 that has a general plan of a prepared statement stores one
more plan at each execution on a shard of its own node, and its memory grows by 30 to 80 KB each time.
"""

import json
import math

from sqlalchemy import bindparam, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.leases import in_database
from profilesvc.database.unavailable import reason
from profilesvc.domain.errors import ServiceError

LIMITS = {"lock_timeout": 4000, "statement_timeout": 4000, "idle_in_transaction_session_timeout": 5000}  # milliseconds
PLANS = "plan_cache_mode"
# A lower limit of the operator's stays; 0 is none. The database writes the statement, because it quotes names.
_MISSING = text(
    "SELECT name, format('ALTER ROLE %I IN DATABASE %I SET %I = %L', session_user, current_database(), name, "
    "CAST(CAST(:limits AS json) ->> name AS integer)) FROM pg_settings WHERE name IN :names "
    "AND CAST(setting AS integer) NOT BETWEEN 1 AND CAST(CAST(:limits AS json) ->> name AS integer) ORDER BY name"
).bindparams(bindparam("names", expanding=True))
_MISSING_ON_CITUS = text(
    "SELECT name, format('ALTER ROLE %I IN DATABASE %I SET %I = force_custom_plan', session_user, current_database(), "
    "name) FROM pg_settings WHERE name = :plans AND setting <> 'force_custom_plan' "
    "AND EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
)


async def missing(engine: AsyncEngine) -> dict[str, str]:
    """Return the settings that a session lacks, each with the statement that sets it for the role in this database."""
    if engine.dialect.name != "postgresql":
        return {}
    async with engine.connect() as connection:
        rows = await connection.execute(_MISSING, {"limits": json.dumps(LIMITS), "names": list(LIMITS)})
        on_citus = await connection.execute(_MISSING_ON_CITUS, {"plans": PLANS})
        return dict(tuple(row) for row in (*rows, *on_citus))


async def ensure(engine: AsyncEngine) -> list[str]:
    """Set what is missing; return what the operator has to do, a line each."""
    settings = await missing(engine)
    if not settings:
        return []
    try:
        # One process at a time, because PostgreSQL rejects concurrent changes of a role.
        async with in_database(engine) as leases, leases.hold("time limits", math.inf), engine.begin() as connection:
            for statement in settings.values():
                await connection.exec_driver_sql(statement)
    except (DBAPIError, ServiceError) as error:
        cause = error.__cause__ if isinstance(error, ServiceError) else error
        why = f"the role may not set {', '.join(settings)}: {reason(cause or error)}"
        return [f"{why}; have the database's administrator run: {'; '.join(settings.values())};"]
    await engine.dispose()  # new sessions have them
    if await missing(engine):
        return ["the settings are stored, but the pooler still has older sessions: run RECONNECT in its console"]
    return []
