"""Drafts and scheduled posts: stored here, and sent to the provider when they are due."""

import json
import logging
import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from profilesvc.contract.errors import CONFLICT, RATE_LIMITED
from profilesvc.contract.json import JsonObject
from profilesvc.contract.zones import zone_names, zone_of
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.posts import check_create
from profilesvc.domain.time import DAY, HOUR, MINUTE
from profilesvc.provider.port import ProviderError
from profilesvc.services import posts
from profilesvc.services.access import missing, require_location, require_plan
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.drafts import photos
from profilesvc.services.idempotency import Claim, IdempotencyKey, claim_period, run_once, unsettled
from profilesvc.storage import posts as cached
from profilesvc.storage.drafts import drafts
from profilesvc.storage.drafts.drafts import Draft as Draft
from profilesvc.storage.drafts.drafts import DueDraft, Head
from profilesvc.tokens.signer import random_id

log = logging.getLogger("profilesvc")
MOST = 500  # of an owner
MOST_POSTS = 5_000  # posts of a calendar
LONGEST = 180 * DAY
LARGEST = 20_000  # characters of all fields, more than a post that the provider accepts
_LONGER = MINUTE  # than the lease of the idempotency key
_RETRY = 5 * MINUTE
_GIVE_UP = 20 * HOUR  # before the idempotency key of the first attempt is forgotten
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
UNKNOWN = "The provider did not respond for 20 hours. Look at the profile before you send the post again."


async def listing(services: Services, location: AllowedLocation, limit: int) -> tuple[list[Draft], int]:
    """Return drafts of a location, the next to be published first, and how many there are."""
    async with services.storage.read() as session:
        page = await drafts.location_drafts(session, location.owner_id, location.name, limit)
        number = len(page) if len(page) < limit else await drafts.count(session, location.owner_id, location.name)
    return page, number


async def heads(services: Services, caller: Caller) -> list[Head]:
    """Return the drafts of all locations of the caller, the next to be published first, those without a time last."""
    async with services.storage.read() as session:
        return await drafts.heads(session, caller.owner_id)


async def texts(services: Services, owner_id: int, ids: Sequence[str]) -> dict[str, str]:
    """Return the posts, as JSON, of some drafts."""
    async with services.storage.read() as session:
        return await drafts.texts(session, owner_id, ids)


class Place(NamedTuple):
    """A published or scheduled post in a calendar, without its contents; `at` in milliseconds."""

    at: int
    location_name: str
    post_id: str
    draft: Head | None = None


async def places(services: Services, owner_id: int, location: str | None, first: int, end: int) -> list[Place]:
    """Return the posts and drafts of a period, of a location or of all of an owner; at most `MOST_POSTS` posts."""
    async with services.storage.read() as session:
        entries = [Place(*row) for row in await cached.places(session, owner_id, location, first, end, MOST_POSTS)]
        scheduled = await drafts.heads(session, owner_id)
    for one in scheduled:
        if one.due_at is not None and first <= one.due_at < end and location in (None, one.location_name):
            entries.append(Place(one.due_at, one.location_name, "", one))
    return sorted(entries, key=lambda place: place.at)


async def contents(services: Services, owner_id: int, wanted: Sequence[Place]) -> dict[Place, JsonObject]:
    """Return the posts of a few places of a calendar, as they were last read."""
    names = {(place.location_name, place.post_id): place for place in wanted if place.draft is None}
    ids = {place.draft.id: place for place in wanted if place.draft is not None}
    async with services.storage.read() as session:
        published = await cached.texts(session, owner_id, names) if names else {}
        scheduled = await drafts.texts(session, owner_id, list(ids)) if ids else {}
    documents = {names[name]: json.loads(document) for name, document in published.items()}
    return documents | {ids[ident]: json.loads(document) for ident, document in scheduled.items()}


async def get(services: Services, location: AllowedLocation, draft_id: str) -> Draft:
    """Return a draft of a location.

    Raises:
        ServiceError: NOT_FOUND.
    """
    if not _ID.fullmatch(draft_id):
        raise missing("draft")
    async with services.storage.read() as session:
        draft = await drafts.find(session, location.owner_id, draft_id)
    if draft is None or draft.location_name != location.name:
        raise missing("draft")
    return draft


async def save(
    services: Services,
    location: AllowedLocation,
    fields: JsonObject,
    post: JsonObject,
    due: tuple[int, str] | None = None,
    draft_id: str = "",
    claim: Claim | None = None,
) -> str:
    """Store a draft, or schedule it for `due`, an instant and the time zone in which it was chosen; return its id.

    A scheduled post must be complete; it counts in the quota of the month in which it is published. The response to a
    `claim` is the id.

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION; NOT_FOUND; CONFLICT if it is being sent, or for too many.
    """
    now = services.clock.now()
    require_plan(location, "posts")
    _check(fields, post, due, now)
    before = await get(services, location, draft_id) if draft_id else None
    ident, state = draft_id or random_id(services.entropy), "draft" if due is None else "scheduled"
    at, zone = due or (None, "UTC")
    texts = json.dumps(fields), json.dumps(post)
    draft = Draft(ident, location.name, state, *texts, at, zone, None, None, now)  # type: ignore[arg-type]
    async with services.storage.write() as session:
        if not draft_id and await drafts.count(session, location.owner_id) >= MOST:
            raise ServiceError(CONFLICT, f"You have {MOST} drafts. Delete some first.")
        if not await drafts.put(session, location.owner_id, draft, at):
            raise _being_sent()
        if claim is not None:
            await claim.finish(session, 201, json.dumps(ident).encode())
        await photos.hold(services, session, location.owner_id, draft.document)
        if before is not None and before.document != draft.document:
            await photos.release(services, session, location.owner_id, before.document)
    return ident


async def save_once(
    services: Services,
    caller: Caller,
    location: AllowedLocation,
    fields: JsonObject,
    post: JsonObject,
    due: tuple[int, str] | None,
    key: IdempotencyKey,
) -> None:
    """Store or schedule a new draft as `save` does, once per `key`.

    Raises:
        ServiceError: Those of `save`; IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED.
    """

    async def run(claim: Claim | None) -> Rendered:
        ident = await save(services, location, fields, post, due, claim=claim)
        return Rendered(json.dumps(ident).encode())

    await run_once(services, caller, ("drafts", location), key, run)


def _check(fields: JsonObject, post: JsonObject, due: tuple[int, str] | None, now: int) -> None:
    if sum(len(str(text)) for text in fields.values()) > LARGEST:
        raise invalid("body", "summary", f"is too long: a draft has at most {LARGEST:,} characters in all fields")
    if due is not None:
        check_create(post)
        if not now < due[0] <= now + LONGEST:
            raise invalid("body", "due_at", "must be in the next 180 days")


async def delete(services: Services, location: AllowedLocation, draft_id: str) -> None:
    """Delete a draft.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT if it is being sent.
    """
    await _remove(services, location, draft_id, photos.release)


async def end(services: Services, location: AllowedLocation, draft_id: str) -> None:
    """Delete a draft that its owner has sent by hand, but not the photo of the post.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT if it is being sent.
    """
    await _remove(services, location, draft_id, photos.keep)


async def _remove(services: Services, location: AllowedLocation, draft_id: str, settle: photos.Settle) -> None:
    draft = await get(services, location, draft_id)
    async with services.storage.write() as session:
        if not await drafts.remove(session, location.owner_id, location.name, draft_id):
            raise _being_sent()
        await settle(services, session, location.owner_id, draft.document)


async def unschedule(services: Services, location: AllowedLocation, draft_id: str) -> Draft:
    """Remove the time of a draft that its owner sends now, so that it is not published a second time.

    Returns:
        The draft as it was, for `reschedule`.

    Raises:
        ServiceError: NOT_FOUND, also if it was published meanwhile; CONFLICT if it is being sent.
    """
    before = await get(services, location, draft_id)
    async with services.storage.write() as session:
        if not await drafts.unschedule(session, location.owner_id, draft_id):
            raise _being_sent()
    return before


async def reschedule(services: Services, location: AllowedLocation, before: Draft) -> None:
    """Give a draft its time back, because it was not sent; do nothing if it was changed meanwhile."""
    async with services.storage.write() as session:
        await drafts.reschedule(session, location.owner_id, before)


def _being_sent() -> ServiceError:
    return ServiceError(CONFLICT, "This post is being sent to the provider, so it cannot be changed now.")


def instant(day: str, time: str, zone: str) -> int:
    """Return the instant of a local time in milliseconds.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    if zone not in zone_names():
        raise invalid("body", "zone", "is not the name of a time zone, such as Europe/Berlin")
    try:
        return round(datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=zone_of(zone)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise invalid("body", "due_at", "enter a day and a time") from None


async def publish(services: Services, due: DueDraft) -> None:
    """Send a due draft to the provider once, and delete it; keep it with the problem if that fails.

    An attempt that was interrupted is repeated with the same idempotency key, so it creates no second post.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE if the database is not available; the next round continues.
    """
    now = services.clock.now()
    async with services.storage.write() as session:
        draft = await drafts.claim(session, due.owner_id, due.id, now, now + claim_period(services) + _LONGER)
    if draft is None:
        return
    started_at = draft.started_at or now
    if now - started_at > _GIVE_UP:
        async with services.storage.write() as session:
            await drafts.settle(session, due.owner_id, due.id, "failed", None, UNKNOWN)
        return
    caller = Caller(due.owner_id, services.plans[due.plan], frozenset())
    key = IdempotencyKey(f"draft-{draft.id}-{started_at}", "draft")
    try:
        location = await require_location(services, caller, draft.location_name)
        await posts.create(services, caller, location, json.loads(draft.document), key)
    except ServiceError as error:
        may_exist = await unsettled(services, caller, "posts", [draft.location_name], key.value)
        await _failed(services, due, error, may_exist=bool(may_exist))
        return
    async with services.storage.write() as session:
        await drafts.end(session, due.owner_id, due.id)
        await photos.keep(services, session, due.owner_id, draft.document)


async def _failed(services: Services, due: DueDraft, error: ServiceError, *, may_exist: bool) -> None:
    """Repeat an attempt that may have had its effect or may succeed later; the owner decides about all others.

    If a post of an earlier attempt may exist (`may_exist`), the owner must not send it by hand meanwhile.
    """
    cause = error.__cause__
    if isinstance(cause, ProviderError):
        is_unknown = cause.effect_unknown
    else:  # another attempt runs, or the database was not available; not a rejection that is repeated
        is_unknown = "retryable" not in error.details and (
            error.kind.status >= 500 or error.kind.status == CONFLICT.status
        )
    is_unknown = is_unknown or may_exist
    is_temporary = is_unknown or error.kind is RATE_LIMITED or bool(error.details.get("retryable", False))
    next_at = services.clock.now() + _RETRY if is_temporary else None
    state: drafts.State = "sending" if is_unknown else "failed" if next_at is None else "scheduled"
    log.info("drafts: publishing draft %s failed: %s", due.id, error.kind.code)
    async with services.storage.write() as session:
        await drafts.settle(session, due.owner_id, due.id, state, next_at, error.message[:1000])
