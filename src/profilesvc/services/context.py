"""What every operation works with: the services, who is calling, which location was reached."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, SERVICE_UNAVAILABLE
from profilesvc.database.batches import Batches
from profilesvc.database.engine import Storage
from profilesvc.database.prepared import Prefetch as Prefetch  # which the API declares
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import Hold
from profilesvc.domain.plans import Catalogue, Plan
from profilesvc.domain.world import Clock, Entropy, iso
from profilesvc.limits.limiter import Limiter
from profilesvc.provider.port import Provider
from profilesvc.services.audit import Notes
from profilesvc.settings import Settings
from profilesvc.storage.connection import Beat, recording
from profilesvc.storage.keys import KeyState
from profilesvc.telemetry.metrics import Load, Metrics
from profilesvc.tokens.id_tokens import TrustedIssuer
from profilesvc.tokens.signer import Signer
from profilesvc.tokens.signing_keys import SigningKeys
from profilesvc.tokens.single_flight import SingleFlight

Result = TypeVar("Result")


class Background:
    """Work that follows a response; it is finished before the service closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run after the response; a failure does not concern the caller."""
        self._begin(work)

    async def finish(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run to the end even if the caller hangs up meanwhile, so that no operation is left half done."""
        return await asyncio.shield(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved, also if no task waits any more

    async def drain(self) -> None:
        """Wait for the tasks that are still running."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(frozen=True)
class Services:
    """The parts, joined in `bootstrap.py` and nowhere else."""

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
    notes: Notes = field(default_factory=Notes)

    @cached_property
    def beats(self) -> Batches[Beat]:
        """Where heartbeats are written: those that arrive together share a commit."""
        return Batches(self.storage, recording)

    @cached_property
    def signing_keys(self) -> SigningKeys:
        """The signing keys of the database, announced, rotated and removed."""
        return SigningKeys(self.settings.tokens, self.clock, self.storage, self.signer.keyring)

    def watched(self, in_flight: Callable[[], int]) -> AbstractAsyncContextManager[None]:
        """Open a block in which the metrics show how busy this process is."""
        return self.metrics.watching(lambda: Load(in_flight(), self.storage.pools()))

    def refused_by_database(self, error: ServiceError) -> bool:
        """Return whether the database refused a request; it logs such refusals together."""
        return error.kind is SERVICE_UNAVAILABLE and self.storage.outage.refused(error)

    @property
    def pepper(self) -> bytes | None:
        """The secret that digests are keyed with, if one is configured (D-21)."""
        return self.settings.secret_pepper.get_secret_value().encode() or None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: a user, or a key acting for its owner. `prefetched` was read in the same statement."""

    user_id: int
    plan: Plan
    permissions: frozenset[str]
    key: KeyState | None = None
    prefetched: Sequence[Any] = ()

    @property
    def scope(self) -> str:
        """Names the caller where tenants must not mix, such as idempotency keys."""
        return f"user:{self.user_id}" if self.key is None else f"key:{self.key.id}"


@dataclass(frozen=True, slots=True)
class Reached:
    """A location that the caller may use, with the provider's account; only `access.reach` makes one."""

    name: str
    owner_id: int
    plan: Plan
    account: str

    @property
    def id(self) -> str:
        """The bare id."""
        return self.name.removeprefix("locations/")


@dataclass(frozen=True, slots=True)
class Rendered:
    """`data` as JSON bytes made once.

    `replayed`: it repeats the response to an earlier request. `data_age`: in seconds, if the provider is down and the
    data is older than it should be.
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
