"""Do something to several locations of a user, one after the other, by the operations of one location."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import orjson

from profilesvc.contract.errors import CONFLICT, RATE_LIMITED
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import ServiceError
from profilesvc.services import access, idempotency, keys, locations, posts, sync
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.drafts import drafts
from profilesvc.services.idempotency import Claim, IdempotencyKey
from profilesvc.services.insight.overview import SiteView

Act = Literal["sync", "pause", "resume"]
Obstacle = Literal["no_key", "paused", "not_paused", "held", "sync_off", "never_synced", "plan", "unverified"]
ACTS: tuple[Act, ...] = get_args(Act)
MOST = 50  # locations of a request
SECONDS = 20.0  # no further location is started after this time
_FAILURES = 3  # in a row, after which the rest is not tried: the provider is away, or a quota is used up


@dataclass(frozen=True, slots=True)
class Plan:
    """The effect that an act would have on a location: the keys or fields that it changes, or why it does nothing."""

    site: SiteView
    changes: list[str] = field(default_factory=list)
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The effect of an act on a location: the keys or fields that it changed, or its error. It may not be tried."""

    name: str
    changes: list[str] | None = None
    error: ServiceError | None = None


@dataclass(frozen=True, slots=True)
class NewDraft:
    """A post that is stored and not sent: the fields of its form, the post, and when it is due, in which zone."""

    fields: JsonObject
    document: JsonObject
    due: tuple[int, str] | None


def plan(act: Act, site: SiteView, *, plan_has_sync: bool) -> Plan:
    """Return what an act would do.

    For a sync, `changes` are the fields that differed when the profile was last read.
    """
    if act == "sync":
        obstacle = _obstacle_of_sync(site, plan_has_sync)
        return Plan(site, [] if obstacle else site.drift, obstacle)
    reasons = [key.row.hold_reason for key in site.keys]
    wanted = None if act == "pause" else "user_requested"
    names = [key.row.name for key in site.keys if key.row.hold_reason == wanted]
    if names:
        return Plan(site, names)
    if not site.keys:
        return Plan(site, obstacle="no_key")
    if act == "resume":
        return Plan(site, obstacle="held" if any(reasons) else "not_paused")
    return Plan(site, obstacle="paused")


def _obstacle_of_sync(site: SiteView, plan_has_sync: bool) -> Obstacle | None:
    if not plan_has_sync:
        return "plan"
    if not site.row.is_verified:
        return "unverified"
    if not site.row.sync_enabled:
        return "sync_off"
    return None if site.row.source else "never_synced"


async def run(
    services: Services, caller: Caller, act: Act, sites: Sequence[SiteView], key: IdempotencyKey
) -> list[SiteResult]:
    """Do the act to each location in turn, and return what happened to each.

    The same `key` does nothing twice. What is left when the time is up, or after three failures in a row, is not
    tried; another request goes on with it.
    """

    async def do(site: SiteView, location: AllowedLocation) -> list[str]:
        if act != "sync":
            return await _change_keys(services, caller, act, site, location, key)
        source = orjson.loads((await locations.load(services, location)).source or "{}")
        result = await sync.run(services, caller, location, source, key)
        return list(orjson.loads(result.data)["fieldsUpdated"])

    return await _in_turn(services, caller, sites, do)


async def post(
    services: Services, caller: Caller, sites: Sequence[SiteView], document: JsonObject, key: IdempotencyKey
) -> list[SiteResult]:
    """Create a post at each location in turn, and return what happened to each, as `run` does."""

    async def create(_: SiteView, location: AllowedLocation) -> list[str]:
        await posts.create(services, caller, location, document, key)
        return []

    return await _in_turn(services, caller, sites, create)


async def draft(
    services: Services, caller: Caller, sites: Sequence[SiteView], content: NewDraft, key: IdempotencyKey
) -> list[SiteResult]:
    """Store a draft of a post for each location in turn, or schedule it, and return what happened to each."""

    async def save(_: SiteView, location: AllowedLocation) -> list[str]:
        await drafts.save_once(services, caller, location, content.fields, content.document, content.due, key)
        return []

    return await _in_turn(services, caller, sites, save)


async def _in_turn(
    services: Services,
    caller: Caller,
    sites: Sequence[SiteView],
    do: Callable[[SiteView, AllowedLocation], Awaitable[list[str]]],
) -> list[SiteResult]:
    """Do something to each location, which returns the names of what it changed."""
    results: list[SiteResult] = []
    failures, until = 0, time.monotonic() + SECONDS
    for site in sites[:MOST]:
        services.storage.renew()
        if failures >= _FAILURES or time.monotonic() > until:
            results.append(SiteResult(site.row.name))
            continue
        try:
            location = await access.require_location(services, caller, site.row.name)
            result = SiteResult(site.row.name, await do(site, location))
        except ServiceError as error:
            result = SiteResult(site.row.name, error=error)
        results.append(result)
        is_busy = result.error is not None and result.error.kind.status >= RATE_LIMITED.status
        failures = failures + 1 if is_busy else 0
    return results


async def _change_keys(
    services: Services, caller: Caller, act: Act, site: SiteView, location: AllowedLocation, key: IdempotencyKey
) -> list[str]:
    """Pause or resume the keys of a location, once."""

    async def once(claim: Claim | None) -> Rendered:
        changed = []
        for view in site.keys:
            if act == "pause":
                await keys.deactivate(services, view.row.client_id, "user_requested", caller=caller)
            elif view.row.hold_reason == "user_requested":
                await keys.reactivate_own(services, caller, view.row.client_id)
            else:
                continue
            changed.append(view.row.name)
        if claim is not None:
            async with services.storage.write() as session:
                await claim.finish(session, 200, orjson.dumps(changed))
        return Rendered(orjson.dumps(changed))

    done = await idempotency.run_once(services, caller, (act, location), key, once)
    return list(orjson.loads(done.data))


def selected(sites: Sequence[SiteView], ids: Sequence[str]) -> list[SiteView]:
    """Return the locations with these ids, in the order of the list.

    Raises:
        ServiceError: CONFLICT for more than `MOST`.
    """
    if len(set(ids)) > MOST:
        raise ServiceError(CONFLICT, f"Select at most {MOST} sites.")
    return [site for site in sites if site.id in ids]
