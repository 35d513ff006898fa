"""What the emulator's handlers share: the switches, the time, the store, faults and the record of calls."""

from collections import deque
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field
from quart import current_app, g, request
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.domain.rates import Window
from profilesvc.domain.world import MINUTE, Clock, Entropy
from profilesvc.emulator.errors import quota_exceeded
from profilesvc.emulator.faults import Faults
from profilesvc.emulator.guard import Guard
from profilesvc.emulator.store import Store
from profilesvc.emulator.tables import EmulatorStateRow
from profilesvc.emulator.wire import Document
from profilesvc.limits.counters import MemoryWindows

SERVICES = {
    "accounts": "mybusinessaccountmanagement",
    "verification": "mybusinessverifications",
    "posts": "mybusiness",
    "reviews": "mybusiness",
}


class Switches(BaseModel):
    """How the emulator behaves; kept in its file. A limit of 0 is off; the provider's are 10 and 300.

    `strict` applies the provider's business rules and oddities; without it only shapes are checked.
    Posts and replies whose text contains `reject_phrase` end as REJECTED after `review_seconds`. With
    `edit_review_seconds` consumers see an edit of a location only after so long. `reverify` takes the voice of
    merchant from a location whose title or address is changed. `pin` completes a verification; `offer_auto` offers one
    that needs none. `refuse_refresh` makes /token say invalid_grant.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    strict: bool = False
    review_seconds: float = Field(20, ge=0)
    edit_review_seconds: float = Field(0, ge=0)
    reverify: bool = False
    pin: str = "123456"
    offer_auto: bool = False
    reject_phrase: str = ""
    refuse_refresh: bool = False
    edits_per_minute: int = Field(0, ge=0)
    requests_per_minute: int = Field(0, ge=0)
    clock_offset_ms: int = 0


class RequestClock:
    """The clock that /__emulator/clock moves, as the current request reads it."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        return now()


@dataclass
class Emulator:
    """One emulator; reached by `emulator()` inside a request. Without a guard it must not be served on a socket."""

    store: Store
    clock: Clock
    entropy: Entropy
    world: Document
    guard: Guard | None = None
    faults: Faults = field(default_factory=Faults)
    limiter: MemoryWindows = field(default_factory=lambda: MemoryWindows(RequestClock()))
    calls: deque[Document] = field(default_factory=lambda: deque(maxlen=1000))


def emulator() -> Emulator:
    """The emulator that answers the current request."""
    found: Emulator = current_app.extensions["emulator"]
    return found


async def load_switches(session: AsyncSession) -> Switches:
    """The switches as stored."""
    row = await session.get(EmulatorStateRow, 1)
    return Switches.model_validate_json(row.document if row else "{}")


def switches() -> Switches:
    """The switches as the current request found them."""
    found: Switches = g.switches
    return found


def now() -> int:
    """The request's instant, milliseconds since the epoch, by the clock that /__emulator/clock moves on."""
    found: int = g.now
    return found


async def _count(key: str, metric: str, limit: int) -> None:
    service = f"{SERVICES.get(request.blueprint or '', 'mybusinessbusinessinformation')}.googleapis.com"
    if not limit:
        return
    granted, _ = await emulator().limiter.take(key.format(service), Window(limit, MINUTE))
    if not granted:
        raise quota_exceeded(service, metric, limit)


async def count_request() -> None:
    """Count one request to an API.

    Raises:
        ApiError: 429, over the limit.
    """
    await _count("requests to {}", "Requests", switches().requests_per_minute)


async def count_edit(location: str) -> None:
    """Count one edit of a profile.

    Raises:
        ApiError: 429, over the limit.
    """
    await _count(f"edits of {location}", "Edits", switches().edits_per_minute)
