"""Push profile data to the provider, compare, and tell the history (D-80 to D-87)."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, LOCATION_NOT_VERIFIED, PLAN_RESTRICTION, SYNC_DISABLED
from profilesvc.contract.sync import (
    MAX_LIMIT,
    SyncHistory,
    SyncHistoryQuery,
    SyncResult,
)
from profilesvc.domain import profiles
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.sync_ids import new_sync_id
from profilesvc.domain.world import SECOND, iso
from profilesvc.provider.port import Document, ProviderError
from profilesvc.services import idempotency
from profilesvc.services.context import Caller, Reached, Rendered, Services
from profilesvc.services.idempotency import Claim, IdempotencyKey
from profilesvc.services.locations import keep_verification, title_of
from profilesvc.services.provider_errors import provider_failure
from profilesvc.storage import locations, sync
from profilesvc.storage.locations import LocationState

TURN = 60 * SECOND
TURN_WAIT_SECONDS = 10.0
LARGEST_SOURCE = 256 * 1024
SHOWN = 10_000  # entries of a location's history that its pages reach
_FIRST_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 0.25


@dataclass(frozen=True, slots=True)
class Push:
    """A checked sync request: the whole body, what of it may be sent, and what is dropped."""

    body: Document
    sendable: Document
    filtered: list[str]


async def run(
    services: Services, caller: Caller, location: Reached, body: Document, key: IdempotencyKey | None
) -> Rendered:
    """One sync; with an idempotency key, once.

    VALIDATION_ERROR, PLAN_RESTRICTION, LOCATION_NOT_VERIFIED, SYNC_DISABLED, CONFLICT when another sync of the
    location takes longer than 10 s, PROVIDER_API_ERROR (kept in the history as failed).
    """
    push = checked(location, body)

    async def once(claim: Claim | None) -> Rendered:
        require_plan(location)
        await services.limiter.sync(location.name)
        async with _turn(services, location.name):
            return await _push(services, location, push, claim)

    return await idempotency.once(services, caller, ("sync", location), key, once)


def checked(location: Reached, body: Document) -> Push:
    """The body, split and checked. VALIDATION_ERROR (D-81)."""
    if not body:
        raise invalid("body", "", "must have at least one field")
    sendable, filtered = profiles.split(body, location.plan.syncable)
    return Push(body, profiles.check(sendable), filtered)


def require_plan(location: Reached) -> None:
    """PLAN_RESTRICTION unless the owner's plan includes sync (D-80)."""
    if not location.plan.sync:
        raise ServiceError(PLAN_RESTRICTION, f"The plan {location.plan.display_name} does not include sync.")


async def syncable(services: Services, location: Reached) -> LocationState:
    """The location if it is verified and switched on (D-80)."""
    async with services.storage.read() as session:
        row = await locations.state(session, location.name)
    assert row is not None, "a reached location exists"
    if not row.is_verified:
        raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=row.verification_state)
    if not row.sync_enabled:
        raise ServiceError(SYNC_DISABLED)
    return row


@contextlib.asynccontextmanager
async def _turn(services: Services, name: str) -> AsyncIterator[None]:
    """Two syncs of one location never interleave at the provider, on whatever process they run (D-87)."""
    holder = services.entropy.token_bytes(16).hex()
    await _wait_for_turn(services, name, holder)
    try:
        yield
    finally:
        async with services.storage.write() as session:
            await sync.end_lease(session, name, holder)


async def _wait_for_turn(services: Services, name: str, holder: str) -> None:
    deadline, pause = time.monotonic() + TURN_WAIT_SECONDS, _FIRST_POLL_SECONDS
    while True:
        now = services.clock.now()
        async with services.storage.write() as session:
            if await sync.take_lease(session, name, holder, now, now + TURN):
                services.storage.renew()  # waiting for others is not this sync's own slowness
                return
        if time.monotonic() + pause > deadline:
            raise ServiceError(CONFLICT, "Another sync of this location is running.", retry_after=1)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_POLL_SECONDS)


async def _push(services: Services, location: Reached, push: Push, claim: Claim | None) -> Rendered:
    row = await syncable(services, location)
    if not push.sendable:
        return await _finish(services, row, push, ([], {}), claim)
    try:
        current = await services.provider.location(location.name)
        await _still_verified(services, location, current)
        patch = profiles.plan_patch(current, push.sendable)
        after = await services.provider.patch_location(row.name, patch.body, patch.mask) if patch.mask else current
    except ProviderError as error:
        await _record_failure(services, row, push)
        raise provider_failure(error) from error
    return await _finish(services, row, push, (patch.changed, after), claim)


async def _still_verified(services: Services, location: Reached, current: Document) -> None:
    """A location that the provider no longer vouches for is asked about, switched off and refused (D-73, D-80)."""
    metadata = current.get("metadata")
    if isinstance(metadata, dict) and metadata.get("hasVoiceOfMerchant"):
        return
    refreshed = await keep_verification(services, location, await services.provider.verification(location.name))
    if not refreshed.isVerified:
        raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=refreshed.verificationState)


def _desired(row: LocationState, body: Document) -> str:
    """The body merged over the earlier ones; members that no sync can send are kept while there is room for them."""
    earlier = json.loads(row.source or "{}")
    desired = json.dumps(profiles.merge(earlier, body))
    if len(desired) > LARGEST_SOURCE:
        desired = json.dumps(profiles.merge(profiles.split(earlier, None)[0], body))
    return desired


async def _finish(
    services: Services, row: LocationState, push: Push, outcome: tuple[list[str], Document], claim: Claim | None
) -> Rendered:
    """Everything that a finished sync leaves behind, in one transaction. `outcome`: leaves changed, profile after."""
    changed, after = outcome
    now = services.clock.now()
    status = "success" if push.sendable else "skipped"
    sync_id = new_sync_id(now, services.entropy)
    answer = SyncResult.model_validate(
        {
            "syncId": sync_id,
            "status": status,
            "fieldsUpdated": changed,
            "fieldsFiltered": push.filtered,
            "timestamp": iso(now),
        }
    )
    data = answer.model_dump_json().encode()
    values: dict[str, Any] = {"source": _desired(row, push.body)}
    if push.sendable:
        values["last_sync"] = json.dumps(profiles.merge(json.loads(row.last_sync or "{}"), push.sendable))
        values |= {"profile": json.dumps(after), "title": title_of(after), "profile_read_at": now}
    async with services.storage.write() as session:
        await locations.change(session, row.name, **values)
        await _record(session, row.name, (sync_id, now, status, len(changed)))
        if claim is not None:
            await claim.finish(session, 200, data)
    return Rendered(data)


async def _record_failure(services: Services, row: LocationState, push: Push) -> None:
    """A failed push stays in the history, and what was asked for stays the desired state (D-83, D-84)."""
    now = services.clock.now()
    async with services.storage.write() as session:
        await locations.change(session, row.name, source=_desired(row, push.body))
        await _record(session, row.name, (new_sync_id(now, services.entropy), now, "failed", 0))


async def _record(session: AsyncSession, name: str, entry: tuple[str, int, str, int]) -> None:
    sync_id, now, status, count = entry
    await sync.add(
        session,
        sync_id=sync_id,
        location_name=name,
        created_at=now,
        status=status,
        direction="push",
        fields_updated=count,
    )


async def history(services: Services, location: Reached, query: SyncHistoryQuery) -> SyncHistory:
    """One page of the history, newest first (D-86); pages end at `SHOWN` entries, so that none costs more than that."""
    limit = min(query.limit, MAX_LIMIT)
    offset = (query.page - 1) * limit
    async with services.storage.read() as session:
        rows = await sync.history(session, location.name, offset, min(limit, SHOWN - offset)) if offset < SHOWN else []
    entries = [
        {
            "syncId": row.sync_id,
            "timestamp": iso(row.created_at),
            "status": row.status,
            "fieldsUpdated": row.fields_updated,
            "direction": row.direction,
        }
        for row in rows
    ]
    return SyncHistory.model_validate({"history": entries})
