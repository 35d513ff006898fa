"""Run an operation once per idempotency key and replay its response (D-40)."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED, PROVIDER_API_ERROR
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, SECOND
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.storage import idempotency
from profilesvc.storage.idempotency import StoredClaim

LEASE = 60 * SECOND
_PROVIDER_SHARES = 2  # of `timeout_seconds`: a sync that reads a profile and its verification, and patches it
_BESIDES = 20 * SECOND  # for the database
RETENTION = DAY


def claim_period(services: Services) -> int:
    """Return how long an operation may run before another one takes over, in milliseconds: longer than it can take."""
    return max(LEASE, round(_PROVIDER_SHARES * services.settings.provider.timeout_seconds * SECOND) + _BESIDES)


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The value that the caller sent, and the fingerprint of its request."""

    value: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run and to store the response; its fence is higher than that of all previous holders.

    `is_unsure` says that one of these may have had its effect, and `note` is what the last one wrote.
    """

    owner_id: int
    scope: str
    fence: int
    since: int
    is_unsure: bool = False
    note: str | None = None

    async def write(self, session: AsyncSession, note: str | None) -> None:
        """Write a note for the attempt that takes over if this one is interrupted.

        Raises:
            ServiceError: IDEMPOTENCY_IN_PROGRESS, because another holder has taken over.
        """
        await self._require(session, await idempotency.write_note(session, self.owner_id, self.scope, self.fence, note))

    async def finish(self, session: AsyncSession, status: int, response: bytes) -> None:
        """Store the response in the transaction of the effect, before it locks other rows.

        Raises:
            ServiceError: IDEMPOTENCY_IN_PROGRESS, because another holder has taken over.
        """
        stored = await idempotency.finish(session, self.owner_id, self.scope, self.fence, status, response.decode())
        await self._require(session, stored)

    async def _require(self, session: AsyncSession, is_ours: bool) -> None:
        """Require that no other holder has taken over. A claim that was deleted with its location has none."""
        if not is_ours and await idempotency.find(session, self.owner_id, self.scope) is not None:
            raise _in_progress()


Run = Callable[[Claim | None], Awaitable[Rendered]]


class Lock(Protocol):
    """A lock that an operation holds while it runs, taken and released in the transactions of its claim."""

    @property
    def must_end(self) -> bool:
        """Return whether `end` has something to write."""

    @property
    def error(self) -> ServiceError | None:
        """Return why the operation has lost the lock before its end; it decides over what failed without the lock."""

    async def take(self, session: AsyncSession) -> None:
        """Take the lock if it is free; the operation waits for it otherwise."""

    async def end(self, session: AsyncSession) -> None:
        """Record the failure of the operation, and release the lock."""


def _in_progress() -> ServiceError:
    return ServiceError(IDEMPOTENCY_IN_PROGRESS, retry_after=1)


async def run_once(
    services: Services,
    caller: Caller,
    target: tuple[str, AllowedLocation],
    key: IdempotencyKey | None,
    run: Run,
    lock: Lock | None = None,
) -> Rendered:
    """Run an operation, or replay its first response. `target` is the name of the operation and its location.

    The response is forgotten if the request can be corrected or retried; a final rejection by the provider is kept.
    The `lock` is taken in the transaction that claims the key, and ends in the one that settles a failed claim.
    """
    claim: Claim | Rendered | None = None
    if key is not None:
        scope = _scope(caller, target[0], target[1].name, key.value)
        claim = await _claim(services, target[1], scope, key.fingerprint, lock)
    if isinstance(claim, Rendered):
        return claim
    try:
        return await run(claim)
    except BaseException as error:
        await _fail(services, claim, lock, error)
        raise


def _scope(caller: Caller, operation: str, location: str, value: str) -> str:
    return hashlib.sha256("\n".join([caller.scope, operation, location, value]).encode()).hexdigest()


async def unsettled(
    services: Services, caller: Caller, operation: str, locations: Iterable[str], value: str
) -> set[str]:
    """Return at which locations an operation with this key may have had its effect, although it has no response.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    names = set()
    async with services.storage.read() as session:
        for name in locations:
            attempt = await idempotency.find(session, caller.owner_id, _scope(caller, operation, name, value))
            if attempt is not None and attempt.status is None and attempt.fingerprint != idempotency.ANY_FINGERPRINT:
                names.add(name)
    return names


async def _claim(
    services: Services, location: AllowedLocation, scope: str, fingerprint: str, lock: Lock | None
) -> Claim | Rendered:
    owner_id, now = location.owner_id, services.clock.now()
    until = now + claim_period(services)
    async with services.storage.write() as session:
        claim: Claim | Rendered = Claim(owner_id, scope, 1, now)
        if not await idempotency.insert_first(session, owner_id, location.name, scope, fingerprint, now, until):
            claim = await _repeated(session, owner_id, scope, fingerprint, now, until)
        if lock is not None and isinstance(claim, Claim):
            await lock.take(session)
    return claim


async def _repeated(
    session: AsyncSession, owner_id: int, scope: str, fingerprint: str, now: int, until: int
) -> Claim | Rendered:
    """Replay the response of an earlier attempt, or take over from one that has ended without a response."""
    previous = await idempotency.find(session, owner_id, scope)
    if previous is None:  # it has just been removed
        raise _in_progress()
    is_forgotten = previous.created_at <= now - RETENTION
    if not is_forgotten and previous.fingerprint not in (idempotency.ANY_FINGERPRINT, fingerprint):
        raise ServiceError(IDEMPOTENCY_KEY_REUSED)
    if not is_forgotten and previous.status is not None:
        return _replay(previous.status, previous.answer or "null")
    if not is_forgotten and previous.lease_until > now:
        raise _in_progress()
    since = now if is_forgotten else previous.created_at  # nothing older can be the effect of this request
    note = None if is_forgotten else previous.answer
    successor = StoredClaim(fingerprint, previous.fence + 1, until, since, None, note)
    if not await idempotency.take_over(session, owner_id, scope, previous.fence, successor):
        raise _in_progress()
    is_unsure = not is_forgotten and previous.fingerprint != idempotency.ANY_FINGERPRINT
    return Claim(owner_id, scope, successor.fence, since, is_unsure, note)


def _replay(status: int, response: str) -> Rendered:
    if status != PROVIDER_API_ERROR.status:
        return Rendered(response.encode(), replayed=True)
    failure = json.loads(response)
    raise ServiceError(PROVIDER_API_ERROR, failure["message"], replayed=True, **failure["details"])


async def _fail(services: Services, claim: Claim | None, lock: Lock | None, error: BaseException) -> None:
    """Settle the claim and end the lock in one transaction, the claim first: two orders could deadlock."""
    if claim is None and (lock is None or not lock.must_end):
        return
    is_settled = True
    async with services.storage.write() as session:
        if claim is not None:
            is_settled = await _settle(session, claim, error, services.clock.now())
        if lock is not None and lock.must_end:
            await lock.end(session)
    if not is_settled:
        raise _in_progress() from error
    if lock is not None and lock.error is not None and isinstance(error, ServiceError):
        raise lock.error from error


async def _settle(session: AsyncSession, claim: Claim, error: BaseException, now: int) -> bool:
    """Keep a final rejection and the claim of an attempt that may have had its effect; forget every other attempt.

    Returns:
        False if the rejection could not be kept, because another holder has taken over.
    """
    if not isinstance(error, ServiceError):
        await idempotency.end_claim(session, claim.owner_id, claim.scope, claim.fence, now)
        return True
    cause = error.__cause__
    is_unknown = cause.effect_unknown if isinstance(cause, ProviderError) else error.kind.status >= 500
    is_rejected = error.kind is PROVIDER_API_ERROR and error.details["reason"] == "rejected"
    if is_rejected and not error.details["retryable"]:
        response = json.dumps({"message": error.message, "details": error.details})
        return await idempotency.finish(session, claim.owner_id, claim.scope, claim.fence, error.kind.status, response)
    if is_unknown or error.kind.status >= 500 or claim.fence > 1:
        # A failure may have had its effect, and so may an earlier attempt, however this one ended.
        can_be_corrected = not is_unknown and not claim.is_unsure
        await idempotency.end_claim(session, claim.owner_id, claim.scope, claim.fence, now, can_be_corrected)
    else:
        await idempotency.remove(session, claim.owner_id, claim.scope, claim.fence)
    return True
