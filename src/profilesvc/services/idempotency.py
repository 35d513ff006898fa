"""Run an operation once per idempotency key and replay its response (D-40)."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED, PROVIDER_API_ERROR
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.world import DAY, SECOND
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Caller, Reached, Rendered, Services
from profilesvc.storage import idempotency
from profilesvc.storage.idempotency import Attempt

LEASE = 60 * SECOND
KEPT = DAY


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The caller's value, and the fingerprint of what it was sent with."""

    value: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run and to store the answer; the fence tells a late holder from the present one."""

    scope: str
    fence: int
    since: int

    async def finish(self, session: AsyncSession, status: int, answer: bytes) -> None:
        """Store the answer in the same transaction as the effect; refuses an overtaken holder."""
        if not await idempotency.finish(session, self.scope, self.fence, status, answer.decode()):
            raise _in_progress()


Run = Callable[[Claim | None], Awaitable[Rendered]]


def _in_progress() -> ServiceError:
    return ServiceError(IDEMPOTENCY_IN_PROGRESS, retry_after=1)


async def once(
    services: Services, caller: Caller, target: tuple[str, Reached], key: IdempotencyKey | None, run: Run
) -> Rendered:
    """Run, or answer as the first time. `target` is the operation's name and its location.

    An answer that can be corrected or retried is forgotten; a final refusal of the provider is kept.
    """
    if key is None:
        return await run(None)
    scope = hashlib.sha256("\n".join([caller.scope, target[0], target[1].name, key.value]).encode()).hexdigest()
    claim = await _claim(services, scope, key.fingerprint)
    if isinstance(claim, Rendered):
        return claim
    try:
        return await run(claim)
    except ServiceError as error:
        await _settle(services, claim, error)
        raise
    except BaseException:
        async with services.storage.write() as session:
            await idempotency.let_go(session, scope, claim.fence, services.clock.now())
        raise


async def _claim(services: Services, scope: str, fingerprint: str) -> Claim | Rendered:
    now = services.clock.now()
    async with services.storage.write() as session:
        if await idempotency.insert_first(session, scope, fingerprint, now, now + LEASE):
            return Claim(scope, 1, now)
        seen = await idempotency.find(session, scope)
        if seen is None:  # released this very moment
            raise _in_progress()
        forgotten = seen.created_at <= now - KEPT
        if not forgotten and seen.fingerprint not in (idempotency.LET_GO, fingerprint):
            raise ServiceError(IDEMPOTENCY_KEY_REUSED)
        if not forgotten and seen.status is not None:
            return _replay(seen.status, seen.answer or "null")
        if not forgotten and seen.lease_until > now:
            raise _in_progress()
        since = now if forgotten else seen.created_at  # nothing older can be the effect of this request
        successor = Attempt(fingerprint, seen.fence + 1, now + LEASE, since, None, None)
        if not await idempotency.take_over(session, scope, seen.fence, successor):
            raise _in_progress()
        return Claim(scope, successor.fence, since)


def _replay(status: int, answer: str) -> Rendered:
    if status != PROVIDER_API_ERROR.status:
        return Rendered(answer.encode(), replayed=True)
    failure = json.loads(answer)
    raise ServiceError(PROVIDER_API_ERROR, failure["message"], replayed=True, **failure["details"])


async def _settle(services: Services, claim: Claim, error: ServiceError) -> None:
    """Keep a final refusal; keep the claim of an attempt that may have had its effect; forget everything else."""
    cause = error.__cause__
    unknown = cause.effect_unknown if isinstance(cause, ProviderError) else error.kind.status >= 500
    rejected = error.kind is PROVIDER_API_ERROR and error.details["reason"] == "rejected"
    async with services.storage.write() as session:
        if rejected and not error.details["retryable"]:
            answer = json.dumps({"message": error.message, "details": error.details}).encode()
            await claim.finish(session, error.kind.status, answer)
        elif unknown or error.kind.status >= 500 or claim.fence > 1:
            # A failure may have had its effect, and an earlier attempt's stays unknown whatever became of this one.
            corrigible = not unknown and claim.fence == 1
            await idempotency.let_go(session, claim.scope, claim.fence, services.clock.now(), corrigible)
        else:
            await idempotency.release(session, claim.scope, claim.fence)
