"""The state that the emulator's handlers share: switches, time, store, faults and recorded calls."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import httpx
from pydantic import BaseModel, Field
from quart import current_app, g, request
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.rates import Window
from profilesvc.domain.time import DAY, MINUTE, Clock, SystemClock
from profilesvc.emulator.access import ControlAccess
from profilesvc.emulator.errors import EDITS, REQUESTS, UPDATES, Limit, quota_exceeded
from profilesvc.emulator.faults import Faults
from profilesvc.emulator.store import Store
from profilesvc.emulator.tables import EmulatorStateRow
from profilesvc.limits.counters import MemoryWindows

SERVICES = {
    "accounts": "mybusinessaccountmanagement",
    "verification": "mybusinessverifications",
    "posts": "mybusiness",
    "reviews": "mybusiness",
    "notifications": "mybusinessnotifications",
}


class Switches(BaseModel, extra="forbid", strict=True):
    """The emulator's behaviour, stored in its file. A limit of 0 is off; the provider's limits are 10, 300 and
    10,000. Requests are counted per API, for all logins together.

    `strict` applies the provider's business rules and oddities; without it only the format is checked. With `rewrites`,
    an update is stored in the provider's own spelling: national phone numbers, sorted lists, CRLF (rewriting.py).
    Posts and replies whose text contains `reject_phrase` become REJECTED after `review_seconds`. Consumers see an edit
    of a location only after `edit_review_seconds`. `reverify` removes the voice of merchant if the title or address
    of a location changes. `pin` completes a verification; `offer_auto` offers a method without a PIN. With
    `refuse_refresh`, /token returns invalid_grant. A refresh token of the consent page ends after `refresh_seconds`.

    What changes in an account with a topic is pushed to `push_endpoint`, by `push_service_account` for `push_audience`
    (empty: the endpoint): each message `push_times`, after `push_delay_seconds`, and in any order if `push_shuffled`.
    """

    strict: bool = False
    rewrites: bool = False
    review_seconds: float = Field(20, ge=0)
    edit_review_seconds: float = Field(0, ge=0)
    reverify: bool = False
    pin: str = "123456"
    offer_auto: bool = False
    reject_phrase: str = ""
    refuse_refresh: bool = False
    refresh_seconds: float = Field(0, ge=0)
    edits_per_minute: int = Field(0, ge=0)
    requests_per_minute: int = Field(0, ge=0)
    push_endpoint: str = ""
    push_audience: str = ""
    push_service_account: str = "push@emulator.iam.gserviceaccount.com"
    push_times: int = Field(1, ge=1, le=10)
    push_shuffled: bool = False
    push_delay_seconds: float = Field(0, ge=0)
    updates_per_day: int = Field(0, ge=0)
    clock_offset_ms: int = 0


class RequestClock(SystemClock):
    """The clock of the current request, which /__emulator/clock can move."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        return now()


@dataclass
class Emulator:
    """An emulator; `emulator()` returns it inside a request. Without an access it must not be served on a socket."""

    store: Store
    clock: Clock
    entropy: Entropy
    world: JsonObject
    access: ControlAccess | None = None
    faults: Faults = field(default_factory=Faults)
    limiter: MemoryWindows = field(default_factory=lambda: MemoryWindows(RequestClock()))
    calls: deque[JsonObject] = field(default_factory=lambda: deque(maxlen=1000))
    pushes: deque[JsonObject] = field(default_factory=lambda: deque(maxlen=20_000))
    push_transport: httpx.AsyncBaseTransport | None = None
    pushing: dict[str, str] = field(default_factory=dict)  # switches of the service in the same process
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @cached_property
    def private_accounts(self) -> frozenset[str]:
        """The accounts of the demo data that only their own logins see."""
        return frozenset(person["account"]["name"] for person in self.world.get("newcomers", []))

    def start(self, work: Coroutine[object, None, None]) -> None:
        """Start what a response does not wait for."""
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for what was started."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Cancel what was started."""
        for task in self._tasks:
            task.cancel()
        await self.settle()


def emulator() -> Emulator:
    """Return the emulator of the current request."""
    current: Emulator = current_app.extensions["emulator"]
    return current


async def load_switches(session: AsyncSession) -> Switches:
    row = await session.get(EmulatorStateRow, 1)
    return Switches.model_validate_json(row.document if row else "{}")


def switches() -> Switches:
    """Return the switches that the current request has loaded."""
    loaded: Switches = g.switches
    return loaded


def now() -> int:
    """Return the time of the request in milliseconds since the epoch, by the clock that /__emulator/clock moves."""
    instant: int = g.now
    return instant


class Login(NamedTuple):
    """A login, with the scopes that were granted. Without `accounts` it is the installation's own login."""

    scope: str
    accounts: tuple[str, ...] | None = None

    def sees(self, account: str) -> bool:
        """Return whether the login has access to an account."""
        if self.accounts is None:
            return account not in emulator().private_accounts
        return account in self.accounts


def login() -> Login:
    """Return the login of the current request."""
    current: Login = g.login
    return current


async def _count(key: str, limit: Limit, value: int, length: int = MINUTE) -> None:
    service = f"{SERVICES.get(request.blueprint or '', 'mybusinessbusinessinformation')}.googleapis.com"
    if not value:
        return
    granted, _ = await emulator().limiter.take(key.format(service), Window(value, length))
    if not granted:
        raise quota_exceeded(service, limit, value)


async def count_request() -> None:
    """Count one request to an API.

    Raises:
        ApiError: 429, over the limit.
    """
    await _count("requests to {}", REQUESTS, switches().requests_per_minute)


async def count_edit(location: str) -> None:
    """Count one edit of a profile.

    Raises:
        ApiError: 429, over the limit.
    """
    await _count(f"edits of {location}", EDITS, switches().edits_per_minute)


async def count_update() -> None:
    """Count one update of a location.

    Raises:
        ApiError: 429, over the limit.
    """
    await _count("updates", UPDATES, switches().updates_per_day, DAY)
