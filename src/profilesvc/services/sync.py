"""Push profile data to the provider, one sync of a location at a time, and list the history."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, LOCATION_NOT_VERIFIED, PROVIDER_API_ERROR, SYNC_DISABLED
from profilesvc.contract.events import SyncEnded
from profilesvc.contract.json import JsonObject
from profilesvc.contract.stored import as_stored
from profilesvc.contract.sync import SyncHistory, SyncHistoryEntry, SyncHistoryQuery, SyncResult
from profilesvc.domain import profiles
from profilesvc.domain.entropy import new_sync_id
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.time import day_of, iso
from profilesvc.domain.verification import has_flag
from profilesvc.provider.port import ProviderError
from profilesvc.services import drift, events, idempotency
from profilesvc.services.access import missing, require_plan
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.idempotency import Claim, IdempotencyKey
from profilesvc.services.locations import load, store_verification, title_of
from profilesvc.services.provider_errors import provider_failure
from profilesvc.services.provider_logins import provider_at
from profilesvc.storage import sync
from profilesvc.storage.locations import LocationState, place_of
from profilesvc.storage.sync import SyncRow

LOCK_WAIT_SECONDS = 10.0
MOST_ENTRIES = 10_000  # the entries of a location's history that its pages reach
_FIRST_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 0.25


@dataclass(frozen=True, slots=True)
class Push:
    """A checked sync request: the whole body, the part that may be sent, and the fields that are dropped."""

    body: JsonObject
    sendable: JsonObject
    filtered: list[str]


class SyncLock:
    """The right to sync a location, so that two syncs never interleave at the provider (D-87).

    `row` is the location's row from when the lock was taken. No other sync changes it meanwhile.
    """

    def __init__(self, services: Services, location: AllowedLocation) -> None:
        self._services, self._location = services, location
        self.holder = services.entropy.token_bytes(16).hex()
        self.row: LocationState | None = None
        self.must_end = False
        self.error: ServiceError | None = None
        self._until = 0
        self.failed: JsonObject | None = None  # what stays desired of a failed push, to record when the lock ends

    async def take(self, session: AsyncSession) -> None:
        """Take the lock if it is free.

        Raises:
            ServiceError: NOT_FOUND, because the owner has disconnected the location meanwhile.
        """
        now, location = self._services.clock.now(), self._location
        self._until = now + idempotency.claim_period(self._services)
        self.row = await sync.take_lock(session, location.owner_id, location.name, self.holder, now, self._until)
        self.must_end = self.row is not None
        if self.row is None and await place_of(session, location.owner_id, location.name) is None:
            raise missing("location")

    async def wait(self) -> LocationState:
        """Return the location's row once the lock is held.

        Raises:
            ServiceError: CONFLICT, because another sync of the location takes longer than 10 s; NOT_FOUND as in `take`.
        """
        deadline, pause = time.monotonic() + LOCK_WAIT_SECONDS, _FIRST_POLL_SECONDS
        while self.row is None:
            async with self._services.storage.write() as session:
                await self.take(session)
            if self.row is not None:
                break
            if time.monotonic() + pause > deadline:
                raise ServiceError(CONFLICT, "Another sync of this location is running.", retry_after=1)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
        self._services.storage.renew()  # waiting does not count as this sync's time
        return self.row

    async def end(self, session: AsyncSession) -> None:
        """End the lock. A failed push stays in the history, and is desired unless the provider rejected it (D-84)."""
        values: dict[str, object] = {}
        if self.failed and self.row is not None:
            values["source"] = _desired(self.row, self.failed)
        location = self._location
        is_kept = await sync.end_lock(session, location.owner_id, location.name, self.holder, **values)
        self.must_end = False
        if not is_kept:
            self.error = await self._lost(session)
        elif self.failed is not None and self.row is not None:
            now = self._services.clock.now()
            row = SyncRow(new_sync_id(now, self._services.entropy), now, "failed", "push", 0)
            await sync.add(session, location.owner_id, location.name, row)
            publish(self._services, session, self.row, row, [])

    @contextlib.asynccontextmanager
    async def finishing(
        self, claim: Claim | None, row: SyncRow, data: bytes, values: dict[str, object]
    ) -> AsyncIterator[AsyncSession]:
        """End the lock in a transaction that stores columns, an entry of the history and the idempotent response.

        The block runs in the same transaction.

        Raises:
            ServiceError: IDEMPOTENCY_IN_PROGRESS; NOT_FOUND as in `take`; CONFLICT, because another sync has taken the
                lock over.
        """
        location = self._location
        async with self._services.storage.write() as session:
            if claim is not None:
                await claim.finish(session, 200, data)
            if not await sync.end_lock(session, location.owner_id, location.name, self.holder, **values):
                raise await self._lost(session)
            await sync.add(session, location.owner_id, location.name, row)
            yield session
        self.must_end = False

    async def _lost(self, session: AsyncSession) -> ServiceError:
        """Return the error of a sync that has lost its lock. Before its end, only a disconnection takes it away.

        Then the location is NOT_FOUND for this sync, even if it is connected again.
        """
        location = self._location
        is_kept = await place_of(session, location.owner_id, location.name) is not None
        if is_kept and self._services.clock.now() >= self._until:
            return ServiceError(CONFLICT, "Another sync of this location has taken over.", retry_after=1)
        return missing("location")


async def run(
    services: Services, caller: Caller, location: AllowedLocation, body: JsonObject, key: IdempotencyKey | None
) -> Rendered:
    """Sync once per idempotency key, or at every request without one.

    Two transactions: the first claims the key and takes the lock, the second stores the result, ends the lock and
    stores the response for the key. The provider is called between them.

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, RATE_LIMITED, CONFLICT, LOCATION_NOT_VERIFIED, SYNC_DISABLED,
            PROVIDER_API_ERROR, in this order.
    """
    push, lock = await checked(services, location, body), SyncLock(services, location)

    async def push_once(claim: Claim | None) -> Rendered:
        require_plan(location, "sync")
        await services.limiter.count("syncs-per-location", location.name)
        row = require_syncable(await lock.wait())
        return await _push(services, location, row, push, lock, claim)

    return await idempotency.run_once(services, caller, ("sync", location), key, push_once, lock)


async def checked(services: Services, location: AllowedLocation, body: JsonObject) -> Push:
    """Split the body into the part that may be sent, which is checked, and the part that is dropped (D-81).

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    if not body:
        raise invalid("body", "", "must have at least one field")
    sendable, filtered = profiles.split(body, location.plan.syncable)
    today = day_of(services.clock.now())
    try:
        values = profiles.check(sendable, today)
    except ServiceError:  # values that the provider already has are no mistake of the caller
        known = json.loads((await load(services, location)).profile or "{}")
        values = profiles.check(sendable, today, known)
    return Push(body, values, filtered)


def planned(current: JsonObject, push: Push) -> profiles.Patch:
    """Return the patch of a push, whose messages have the fields that the provider requires.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    patch = profiles.plan_patch(current, push.sendable)
    profiles.require_complete(patch)
    return patch


def require_syncable(row: LocationState) -> LocationState:
    """Return a location that is verified and has sync switched on (D-80).

    Raises:
        ServiceError: LOCATION_NOT_VERIFIED, SYNC_DISABLED.
    """
    if not row.is_verified:
        raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=row.verification_state)
    if not row.sync_enabled:
        raise ServiceError(SYNC_DISABLED)
    return row


async def _push(
    services: Services, location: AllowedLocation, row: LocationState, push: Push, lock: SyncLock, claim: Claim | None
) -> Rendered:
    changed, after = list[str](), JsonObject()
    if push.sendable:
        try:
            remote = await provider_at(services, location)
            current = await remote.location(location.name)
            await drift.note(services, location, row, current, services.clock.now(), lock.holder)
            await require_verified(services, location, current)
            patch = planned(current, push)
            after = await remote.patch_location(row.name, patch.body, patch.mask) if patch.mask else current
        except ProviderError as error:
            lock.failed = {} if error.reason == "rejected" else push.body
            raise provider_failure(error) from error
        changed = patch.changed
    return await _finish(services, row, push, Pushed(changed, after), lock, claim)


async def require_verified(services: Services, location: AllowedLocation, current: JsonObject) -> None:
    """Read the verification again if the profile no longer shows it; switch sync off if it was lost (D-73)."""
    if has_flag(current, "hasVoiceOfMerchant"):
        return
    remote = await provider_at(services, location)
    verification = await store_verification(services, location, await remote.verification(location.name))
    if not verification.isVerified:
        raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=verification.verificationState)


def _desired(row: LocationState, body: JsonObject) -> str:
    """Merge the body over the stored source, without the fields that no sync sends in any plan (D-84)."""
    desired = profiles.merge(json.loads(row.source or "{}"), body)
    return json.dumps(profiles.split(desired, None)[0])


@dataclass(frozen=True, slots=True)
class Pushed:
    """The leaves that the provider changed, and its profile afterwards."""

    changed: list[str]
    after: JsonObject


async def _finish(
    services: Services, row: LocationState, push: Push, pushed: Pushed, lock: SyncLock, claim: Claim | None
) -> Rendered:
    """Store the result, end the lock and store the response for the idempotency key, in one transaction."""
    now = services.clock.now()
    status: Literal["success", "skipped"] = "success" if push.sendable else "skipped"
    sync_id = new_sync_id(now, services.entropy)
    result = SyncResult(
        syncId=sync_id, status=status, fieldsUpdated=pushed.changed, fieldsFiltered=push.filtered, timestamp=iso(now)
    )
    data = result.model_dump_json().encode()
    values: dict[str, object] = {"source": _desired(row, push.body)}
    if push.sendable:
        values["last_sync"] = json.dumps(profiles.merge(json.loads(row.last_sync or "{}"), push.sendable))
        profile = json.dumps(pushed.after)
        values |= {"profile": profile, "title": title_of(pushed.after), "profile_read_at": now, "drift": None}
    ended = SyncRow(sync_id, now, status, "push", len(pushed.changed))
    async with lock.finishing(claim, ended, data, values) as session:
        if push.sendable:
            publish(services, session, row, ended, pushed.changed)
    return Rendered(data)


def publish(
    services: Services, session: AsyncSession, location: LocationState, row: SyncRow, changed: list[str]
) -> None:
    """Publish the end of a sync. Only the provider can make one fail."""
    has_failed = row.status == "failed"
    error = PROVIDER_API_ERROR.code if has_failed else None
    data = SyncEnded(location_id=location.name, sync=_entry(row), fields_updated=changed, error=error)
    event = events.new("sync.failed" if has_failed else "sync.succeeded", data, location_name=location.name)
    events.publish(services, session, location.owner_id, event)


def _entry(row: SyncRow) -> SyncHistoryEntry:
    return as_stored(
        SyncHistoryEntry,
        {
            "syncId": row.sync_id,
            "timestamp": iso(row.created_at),
            "status": row.status,
            "fieldsUpdated": row.fields_updated,
            "direction": row.direction,
        },
    )


async def history(services: Services, location: AllowedLocation, query: SyncHistoryQuery) -> SyncHistory:
    """Return a page of the history, newest first (D-86). Only the last `MOST_ENTRIES` entries can be read."""
    limit, offset = query.limit, (query.page - 1) * query.limit
    async with services.storage.read(may_be_old=True) as session:
        rows = []
        if offset < MOST_ENTRIES:
            rows = await sync.history(
                session, location.owner_id, location.name, offset, min(limit, MOST_ENTRIES - offset)
            )
    return SyncHistory(history=[_entry(row) for row in rows])
