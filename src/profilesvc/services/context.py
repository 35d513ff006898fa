"""The parameters of every operation: the services, the caller and the location."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, SERVICE_UNAVAILABLE
from profilesvc.database.batches import Batches
from profilesvc.database.engine import Storage
from profilesvc.database.statements import Prefetch as Prefetch  # for the API
from profilesvc.database.statements import Row
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import Hold
from profilesvc.domain.plans import Catalogue, Plan
from profilesvc.domain.request import Finished
from profilesvc.domain.time import Clock, iso
from profilesvc.limits.limiter import Limiter
from profilesvc.provider.port import Provider
from profilesvc.settings import Settings
from profilesvc.storage.connection import Beat, recording
from profilesvc.storage.keys import KeyState
from profilesvc.telemetry.metrics import Load, Metrics
from profilesvc.tokens.id_tokens import TrustedIssuer
from profilesvc.tokens.push_tokens import PushTokens
from profilesvc.tokens.signer import Signer
from profilesvc.tokens.signing_keys import SigningKeys
from profilesvc.tokens.single_flight import SingleFlight
from profilesvc.tokens.vault import Vault

log = logging.getLogger("profilesvc")
Result = TypeVar("Result")
Part = TypeVar("Part")
Resolver = Callable[[int, str], Awaitable[list[str]]]  # the addresses of a host, asked for by an owner; or OSError


class Background:
    """Tasks that a response does not wait for. They end before the service closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._spawned: set[asyncio.Task[object]] = set()

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run next to the request; a failure is not reported to the caller."""
        task = self._start(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def finish(self, work: Coroutine[object, None, Result]) -> Result:
        """Run to the end even if the caller disconnects, so that no operation is left half done."""
        return await asyncio.shield(self._start(work))

    def _start(self, work: Coroutine[object, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved, so that asyncio does not log it

    async def settle(self) -> None:
        """Wait for what `spawn` has started, but not for operations of requests."""
        await asyncio.gather(*self._spawned, return_exceptions=True)

    async def drain(self) -> None:
        """Wait for the tasks that are still running."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(frozen=True)
class Services:
    """The parts of the service, which only `bootstrap.py` puts together."""

    settings: Settings
    clock: Clock
    entropy: Entropy
    storage: Storage
    provider: Provider
    signer: Signer
    plans: Catalogue
    limiter: Limiter
    identity: TrustedIssuer | None = None
    metrics: Metrics = field(default_factory=Metrics)
    background: Background = field(default_factory=Background)
    single_flight: SingleFlight = field(default_factory=SingleFlight)
    resolver: Resolver | None = None  # None: `Lookups` of webhooks
    push_tokens: PushTokens | None = None  # None: there is no change feed
    due: asyncio.Event = field(default_factory=asyncio.Event)  # set when a delivery is queued, to wake the worker
    # What rooms do with each finished request, and with each deleted post, in its transaction: its owner,
    # and the post as JSON.
    # What they count for the operator's metrics: {name: {state: amount}}.
    finished: Sequence[Callable[["Services", Finished], None]] = ()
    post_deleted: Sequence[Callable[["Services", AsyncSession, int, str], Awaitable[None]]] = ()
    counted: Sequence[Callable[["Services"], Awaitable[dict[str, dict[str, int]]]]] = ()
    _parts: dict[type, object] = field(default_factory=dict)

    def part(self, kind: type[Part]) -> Part:
        """Return what a module keeps in this process: the instance of its class, made when it is first needed."""
        found = self._parts.get(kind)
        if found is None:
            found = self._parts[kind] = kind()
        return cast(Part, found)

    def in_another_loop(self, storage: Storage) -> "Services":
        """Return services for the event loop of another thread, where nothing of this loop may be awaited."""
        return replace(self, storage=storage, background=Background(), single_flight=SingleFlight(), _parts={})

    @cached_property
    def beats(self) -> Batches[Beat]:
        """The queue of heartbeats; those that arrive together share a commit by the statements of `recording`."""
        return Batches(self.storage, recording)

    @cached_property
    def signing_keys(self) -> SigningKeys:
        """The signing keys in the database, and their rotation."""
        return SigningKeys(self.settings.tokens, self.clock, self.storage, self.signer.keyring)

    @cached_property
    def vault(self) -> Vault:
        """Encrypts the refresh tokens of owners' logins at the provider."""
        return Vault(self.settings.tokens.key_passphrase.get_secret_value())

    def watched(self, in_flight: Callable[[], int]) -> AbstractAsyncContextManager[None]:
        """Open a block in which the metrics show how busy this process is."""
        return self.metrics.watching(lambda: Load(in_flight(), self.storage.pools(), self.provider.load()))

    def rejected_by_database(self, error: ServiceError) -> bool:
        """Return whether the database rejected a request, and count it for the log."""
        return error.kind is SERVICE_UNAVAILABLE and self.storage.outage.count_rejected(error)

    def failed_in_background(self, what: str, error: ServiceError) -> None:
        """Log work that failed. If the database caused it, the log of outages has a line for it each minute."""
        if error.kind is not SERVICE_UNAVAILABLE or not self.storage.outage.count_rejected(error, requests=0):
            log.warning("%s: %s", what, error.kind.code)

    @property
    def pepper(self) -> bytes | None:
        """The configured key of digests, if there is one (D-21)."""
        return self.settings.secret_pepper.get_secret_value().encode() or None


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, or a key that acts for its owner. `prefetched` was read in the same statement."""

    owner_id: int
    plan: Plan
    permissions: frozenset[str]
    key: KeyState | None = None
    prefetched: Row = ()

    @property
    def scope(self) -> str:
        """The name of the caller, for idempotency keys and the audit trail."""
        return f"user:{self.owner_id}" if self.key is None else f"key:{self.key.id}"


@dataclass(frozen=True, slots=True)
class AllowedLocation:
    """A location that the caller may use, with the provider's account; only `access.require_location` returns one."""

    name: str
    owner_id: int
    plan: Plan
    account: str
    connection_id: int | None  # the owner's login that reaches it; None: the installation's own login
    key_id: int | None = None  # the caller's, for the events of what it changes

    @property
    def id(self) -> str:
        """The name without `locations/`."""
        return self.name.removeprefix("locations/")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The `data` of a response as JSON.

    `replayed` is True if an earlier response is repeated. `data_age` is in seconds, and set if the provider is down and
    the data is older than its maximum age.
    """

    data: bytes
    replayed: bool = False
    data_age: int | None = None


def deactivated(services: Services, hold: Hold) -> ServiceError:
    """Return the error for a deactivated key, with its three details (docs/api-contract.md#error-catalogue)."""
    return ServiceError(
        AUTH_INSUFFICIENT_PERMISSIONS,
        "The API key has been deactivated.",
        deactivation_reason=hold.reason,
        deactivated_at=iso(hold.set_at),
        upgrade_url=services.settings.effective_upgrade_url,
    )
