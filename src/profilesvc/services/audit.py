"""The audit trail: what happened to a key or a user, by whom, from where (D-61). Never a secret or a token."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.addresses import network
from profilesvc.services.context import Services
from profilesvc.storage import audit

Event = Literal[
    "key.created",
    "key.rolled",
    "key.deactivated",
    "key.reactivated",
    "key.revoked",
    "key.expired",
    "token.issued",
    "token.refreshed",
    "token.refresh_replayed",
    "token.refresh_reuse",
    "auth.failed",
    "user.login",
]


@dataclass(frozen=True, slots=True)
class Trace:
    """Who is asking, and from where. `ip` is the client's address (D-50), of which only a prefix is kept."""

    actor: str = "operator"
    ip: str | None = None
    request_id: str | None = None


# Set once per request, at the edge of the API; a command line leaves the default.
trace: ContextVar[Trace] = ContextVar("trace", default=Trace())  # noqa: B039  frozen


async def record(
    services: Services, session: AsyncSession, event: Event, user_id: int, key_id: int | None = None, **details: Any
) -> None:
    """Append an event inside the transaction that it tells of."""
    who = trace.get()
    await audit.add(
        session,
        at=services.clock.now(),
        event=event,
        user_id=user_id,
        key_id=key_id,
        actor=who.actor,
        ip_prefix=None if who.ip is None else network(who.ip, 24, 48),
        request_id=who.request_id,
        details=orjson.dumps(details).decode() if details else None,
    )
