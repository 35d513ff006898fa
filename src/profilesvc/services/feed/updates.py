"""The provider's own changes of a profile: read them, accept them, reject them.

Accepting patches the profile with the provider's values, rejecting with the owner's last ones. Each is one patch with
exactly the mask of the request, under the lock that syncs of the location also take.
"""

import json
from dataclasses import dataclass
from typing import Literal

import orjson

from profilesvc.contract.audit import Event
from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.contract.json import JsonObject
from profilesvc.contract.updates import UpdateSettled
from profilesvc.domain import profiles
from profilesvc.domain.entropy import new_sync_id
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.masks import Masks, checked, paths, require_address, require_changed
from profilesvc.domain.time import iso
from profilesvc.services import audit, idempotency, sync
from profilesvc.services.access import require_plan
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.idempotency import Claim, IdempotencyKey
from profilesvc.services.locations import title_of
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import provider_at
from profilesvc.storage.locations import LocationState
from profilesvc.storage.sync import SyncRow

Decision = Literal["accept", "reject"]
_EVENTS: dict[Decision, Event] = {"accept": "provider.update_accepted", "reject": "provider.update_rejected"}


@dataclass(frozen=True, slots=True)
class _Settlement:
    """The decision on some fields. `values` are the masked fields that were sent, `after` is the profile then."""

    decision: Decision
    mask: list[str]
    values: JsonObject
    after: JsonObject


async def read(services: Services, location: AllowedLocation) -> Rendered:
    """Return the location as consumers see it, with the provider's masks.

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    with raising_provider_failure():
        remote = await provider_at(services, location)
        updated = await remote.google_updated(location.name)
    masks = {name: ",".join(paths(updated.get(name))) for name in ("diffMask", "pendingMask")}
    return Rendered(orjson.dumps({"location": updated.get("location") or {}, **masks}))


async def settle(
    services: Services,
    caller: Caller,
    location: AllowedLocation,
    request: tuple[Decision, str],
    key: IdempotencyKey | None,
) -> Rendered:
    """Accept or reject the provider's values of the fields in a mask, once per idempotency key.

    `request` is the decision and the update mask.

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, RATE_LIMITED, CONFLICT, LOCATION_NOT_VERIFIED, SYNC_DISABLED,
            PROVIDER_API_ERROR, in this order; VALIDATION_ERROR also if the provider has not changed a field.
    """
    decision, lock = request[0], sync.SyncLock(services, location)
    mask = checked(request[1])

    async def settle_once(claim: Claim | None) -> Rendered:
        _require_plan(location, mask)
        await services.limiter.count("syncs-per-location", location.name)
        row = sync.require_syncable(await lock.wait())
        with raising_provider_failure():
            is_repeated = claim is not None and claim.fence > 1
            settlement = await _patch(services, location, decision, mask, is_repeated=is_repeated)
        return await _finish(services, row, settlement, lock, claim)

    target = (f"google-updated/{decision}", location)
    return await idempotency.run_once(services, caller, target, key, settle_once, lock)


def _require_plan(location: AllowedLocation, mask: list[str]) -> None:
    require_plan(location, "sync")
    plan = location.plan
    outside = [path for path in mask if plan.syncable is not None and path.partition(".")[0] not in plan.syncable]
    if outside:
        message = f"The plan {plan.display_name} does not include a sync of {', '.join(outside)}."
        raise ServiceError(PLAN_RESTRICTION, message)


async def _patch(
    services: Services, location: AllowedLocation, decision: Decision, mask: list[str], *, is_repeated: bool
) -> _Settlement:
    """Read both versions of the profile, and patch it.

    If an earlier attempt of the same request may have had its effect, the fields need not differ any more.
    """
    remote = await provider_at(services, location)
    ours = await remote.location(location.name)
    await sync.require_verified(services, location, ours)
    updated = await remote.google_updated(location.name)
    document = ours if decision == "reject" else updated.get("location") or {}
    masks = Masks.of(updated)
    if not is_repeated:
        require_changed(mask, masks)
    require_address(mask, masks, document)
    values = profiles.masked(document, mask)
    return _Settlement(decision, mask, values, await remote.patch_location(location.name, values, mask))


async def _finish(
    services: Services, row: LocationState, settled: _Settlement, lock: sync.SyncLock, claim: Claim | None
) -> Rendered:
    """Store the result, end the lock and store the response for the idempotency key, in one transaction."""
    now, mask = services.clock.now(), settled.mask
    entry = SyncRow(
        new_sync_id(now, services.entropy),
        now,
        "success",
        "pull" if settled.decision == "accept" else "push",
        len(mask),
    )
    result = UpdateSettled(syncId=entry.sync_id, updateMask=",".join(mask), location=settled.after, timestamp=iso(now))
    data = result.model_dump_json().encode()
    values = {"profile": json.dumps(settled.after), "title": title_of(settled.after), "profile_read_at": now}
    if settled.decision == "accept":  # so that no later sync undoes it
        for name, text in (("source", row.source), ("last_sync", row.last_sync)):
            values[name] = json.dumps(profiles.replaced(json.loads(text or "{}"), settled.values, mask))
    async with lock.finishing(claim, entry, data, values) as session:
        sync.publish(services, session, row, entry, mask)
        event = _EVENTS[settled.decision]
        await audit.record(services, session, event, row.owner_id, location_id=row.name, fields=mask)
    return Rendered(data)
