"""What the emulator's handlers share: the switches, the time, the store, faults and the record of calls."""

from collections import deque
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field
from quart import current_app, g
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.domain.world import Clock, Entropy
from profilesvc.provider.emulator.errors import quota_exceeded
from profilesvc.provider.emulator.faults import Faults
from profilesvc.provider.emulator.store import Store
from profilesvc.provider.emulator.tables import EmulatorStateRow
from profilesvc.provider.emulator.wire import Document

MINUTE_MS = 60_000


class Switches(BaseModel):
    """How the emulator behaves; kept in its file. A limit of 0 is off.

    `strict` applies the provider's business rules (format §5.2, §7.3); without it only shapes are checked.
    Posts whose summary contains `reject_phrase` end as REJECTED. `refuse_refresh` makes /token say invalid_grant.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    strict: bool = False
    review_seconds: float = Field(20, ge=0)
    reject_phrase: str = ""
    refuse_refresh: bool = False
    edits_per_minute: int = Field(0, ge=0)
    requests_per_minute: int = Field(0, ge=0)
    clock_offset_ms: int = 0


class Limiter:
    """Counts events of the last minute by key."""

    def __init__(self) -> None:
        self._events: dict[str, deque[int]] = {}

    def count(self, key: str, limit: int, now: int) -> None:
        """Note one event; raises 429 when there were `limit` in the last minute."""
        if not limit:
            return
        events = self._events.setdefault(key, deque())
        while events and events[0] <= now - MINUTE_MS:
            events.popleft()
        if len(events) >= limit:
            raise quota_exceeded(key, limit)
        events.append(now)


@dataclass
class Emulator:
    """One emulator; reached by `emulator()` inside a request."""

    store: Store
    clock: Clock
    entropy: Entropy
    world: Document
    faults: Faults = field(default_factory=Faults)
    limiter: Limiter = field(default_factory=Limiter)
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


def count_edit(location: str) -> None:
    """Note one edit of a profile; raises 429 over the limit."""
    emulator().limiter.count(f"edits of {location}", switches().edits_per_minute, now())
