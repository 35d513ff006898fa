"""List and create local posts, and cache those of each location (D-76)."""

import contextlib
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import NamedTuple

import orjson

from profilesvc.contract.common import location_name, post_id, without_account
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.contract.events import EventType, PostChanged
from profilesvc.contract.json import JsonObject
from profilesvc.contract.posts import PostListQuery
from profilesvc.contract.provider.post import LocalPost
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.messages import normal
from profilesvc.domain.posts import can_have_posts, check_create
from profilesvc.domain.time import SECOND, parse_iso
from profilesvc.provider.port import ProviderError
from profilesvc.services import events, post_quota
from profilesvc.services.access import missing, require_plan
from profilesvc.services.context import AllowedLocation, Caller, Prefetch, Rendered, Services
from profilesvc.services.idempotency import Claim, IdempotencyKey, run_once
from profilesvc.services.locations import Observed, load, note
from profilesvc.services.page_tokens import seal, unseal
from profilesvc.services.post_quota import Place
from profilesvc.services.provider_errors import provider_failure, raising_provider_failure
from profilesvc.services.provider_logins import provider_at, require_kept
from profilesvc.storage import posts
from profilesvc.storage.events import NewEvent
from profilesvc.storage.posts import CacheAge, CacheChanges, Position, StoredPost

_CREATED = 201
_PROCESSING_MAX_AGE = 5 * SECOND
_CLOCK_SKEW = 5 * SECOND
_KINDS: dict[str, EventType] = {"LIVE": "post.published", "REJECTED": "post.rejected"}
_BY_CALLER: tuple[EventType, ...] = ("post.created", "post.updated", "post.deleted")
_NO_POSTS = "this location cannot have posts (canOperateLocalPost is false)"
_STATE = re.compile(r"[A-Z_]{1,40}", re.ASCII)
_POSITION = re.compile(r"[0-9]{1,15}\.[A-Za-z0-9_-]{1,64}", re.ASCII)


class _Unstored(NamedTuple):
    """Posts that were just read from the provider, and why the database could not store them."""

    listed: list[StoredPost]
    cause: BaseException


def prefetch(query: PostListQuery) -> Prefetch | None:
    """Return the prefetch of a first page."""
    if query.pageToken:
        return None
    return posts.prefetch(location_name(query.locationId), query.pageSize)


async def list_page(services: Services, caller: Caller, location: AllowedLocation, query: PostListQuery) -> Rendered:
    """Return a page, newest first. Before the first page, a stale cache is read again (D-76).

    While the provider is down, the response is the cached page with the age of the cache. While the cache cannot be
    written, it is what the provider has just returned.

    Raises:
        ServiceError: PROVIDER_API_ERROR if nothing is cached yet.
    """
    size = query.pageSize
    after: Position | None = None
    if query.pageToken:
        created_at, _, ident = unseal(services, location, "posts", query.pageToken, _POSITION).partition(".")
        after = int(created_at), ident
    data_age: int | None = None
    if caller.prefetched:
        age, page = posts.from_row(caller.prefetched)
    else:
        async with services.storage.read() as session:
            if after is None:
                age, page = await posts.first_page(session, location.owner_id, location.name, size)
            else:
                page = await posts.page(session, location.owner_id, location.name, size, after)
    if after is None and _is_stale(services, age):
        unstored, data_age = await _reread_or_age(services, location)
        if unstored is None:
            async with services.storage.read() as session:
                _, page = await posts.first_page(session, location.owner_id, location.name, size)
        else:
            page = posts.page_of(unstored.listed, size)
    token = seal(services, location, "posts", page.last) if page.last else ""
    return Rendered(f'{{"localPosts":[{page.documents}],"nextPageToken":"{token}"}}'.encode(), data_age=data_age)


async def _reread_or_age(services: Services, location: AllowedLocation) -> tuple[_Unstored | None, int | None]:
    """Return what could not be stored; and the age of the cache in seconds, if the provider could not be read."""
    try:
        return await _read_once(services, location), None
    except ProviderError as error:
        async with services.storage.read() as session:
            read_at = (await posts.cache_age(session, location.owner_id, location.name)).posts_read_at
        if read_at is None:
            raise provider_failure(error) from error
        return None, (services.clock.now() - read_at) // SECOND


async def create(
    services: Services, caller: Caller, location: AllowedLocation, body: JsonObject, key: IdempotencyKey | None
) -> Rendered:
    """Create a post; its state in the response is PROCESSING even if the provider was faster (D-76).

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, QUOTA_EXCEEDED or RATE_LIMITED, PROVIDER_API_ERROR, in this
            order.
    """
    post = check_create(body)
    if key is None:
        return await _create(services, location, post, None)
    return await run_once(
        services, caller, ("posts", location), key, lambda claim: _create(services, location, post, claim)
    )


async def _create(services: Services, location: AllowedLocation, post: JsonObject, claim: Claim | None) -> Rendered:
    """Create the post, or return the one that an interrupted attempt with the same key created (D-40)."""
    require_plan(location, "posts")
    await _require_posts(services, location)
    now, existing = services.clock.now(), None
    if claim is not None and claim.fence > 1:
        with raising_provider_failure():
            existing = await _created_before(services, location, post, claim.since)
    place = await post_quota.hold(services, location, now, claim, exists=existing is not None)
    try:
        remote = await provider_at(services, location)
        document = existing or await remote.create_post(location.account, location.name, post)
        created = stored(location.name, {**document, "state": "PROCESSING"})
    except ProviderError as error:
        await _not_created(services, location, place, claim, has_failed=error.has_failed)
        raise provider_failure(error) from error
    except ServiceError:  # of `provider_at`
        await _not_created(services, location, place, claim, has_failed=True)
        raise
    response = created.document.encode()
    async with services.storage.write() as session:
        await post_quota.use(services, session, location, place)
        if claim is not None:
            await claim.finish(session, _CREATED, response)
        await require_kept(session, location)
        await posts.put(session, location.owner_id, location.name, created, now)
        events.publish(services, session, location.owner_id, event("post.created", location, created.document))
    if existing is None:
        services.metrics.post_created()
    return Rendered(response)


async def _require_posts(services: Services, location: AllowedLocation) -> None:
    """Reject a post at a location that cannot have any (`metadata.canOperateLocalPost`), before the provider does.

    The profile is read again first, because the provider may have switched posts on since it was stored.

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    row = await load(services, location)
    if can_have_posts(json.loads(row.profile)):
        return
    with raising_provider_failure():
        remote, started = await provider_at(services, location), services.clock.now()
        profile = await remote.location(location.name)
        await note(services, location, remote, Observed(row, profile, started))
        if not can_have_posts(profile):
            raise ProviderError("rejected", retryable=False, provider_message=_NO_POSTS, reached=False)


async def _not_created(
    services: Services, location: AllowedLocation, place: Place, claim: Claim | None, *, has_failed: bool
) -> None:
    """Give the place of a post back, or use it if the provider may have the post although its response is lost."""
    if not has_failed:
        with contextlib.suppress(ServiceError):  # the hold ends by itself
            async with services.storage.write() as session:
                await post_quota.use(services, session, location, place)
        return
    async with services.storage.write() as session:
        await post_quota.give_back(session, location, place)
        if claim is not None:
            await claim.write(session, None)


async def _created_before(
    services: Services, location: AllowedLocation, post: JsonObject, since: int
) -> JsonObject | None:
    """Return a post with the same fields that was created since the first attempt started, by no other request.

    Media is not compared, because the provider changes it. The provider's clock may be a little behind ours.
    """
    async with services.storage.read() as session:
        others = await posts.read_before(session, location.owner_id, location.name, since)
        others |= await posts.created_since(session, location.owner_id, location.name, since - 2 * _CLOCK_SKEW)
    remote = await provider_at(services, location)
    for document in await remote.posts(location.account, location.name):
        candidate = stored(location.name, document)
        if _matches(document, post) and candidate.created_at >= since - _CLOCK_SKEW and candidate.post_id not in others:
            return document
    return None


def _matches(document: JsonObject, post: JsonObject) -> bool:
    """Return whether the provider's document has the fields that were sent; a missing field has its default."""
    annotations = {name: field.annotation for name, field in LocalPost.model_fields.items() if name != "media"}
    return all(
        normal(annotation, document.get(name)) == normal(annotation, post.get(name))
        for name, annotation in annotations.items()
        if name in post
    )


def stored(location: str, document: JsonObject) -> StoredPost:
    """Return a provider's post as the cache stores it: no resource name contains the account (D-74).

    Raises:
        ProviderError: the document is not a post of the location.
    """
    try:
        ident = post_id(without_account(document["name"]), location)
        ours = {**document, "name": f"{location}/localPosts/{ident}"}
        if "media" in document:
            ours["media"] = [
                {**item, "name": without_account(item["name"])} if "name" in item else item
                for item in document["media"]
            ]
        created_at = parse_iso(document["createTime"]) if "createTime" in document else 0
        created_at = max(created_at, 0)  # page tokens have no sign
        state = str(document.get("state", ""))
        if not _STATE.fullmatch(state):  # it decides nothing here, and a database may not store it
            state = ""
        return StoredPost(ident, created_at, state, orjson.dumps(ours).decode())
    except (KeyError, TypeError, ValueError):
        raise ProviderError("unavailable", retryable=True, provider_message="unreadable post") from None


def _is_stale(services: Services, age: CacheAge) -> bool:
    """Return whether the cache is older than its maximum age, or has a post in review that was read over 5 s ago."""
    in_review = age.processing_read_at
    return is_old(services, age.posts_read_at) or (
        in_review is not None and is_old(services, max(age.posts_read_at or 0, in_review), _PROCESSING_MAX_AGE)
    )


def is_old(services: Services, read_at: int | None, max_age: int | None = None) -> bool:
    """Return whether the provider must be read again; without `max_age`, the maximum age of the cache decides."""
    if max_age is None:
        max_age = services.settings.cache_max_age_seconds * SECOND
    return read_at is None or services.clock.now() - read_at > max_age


async def reread(services: Services, location: AllowedLocation) -> None:
    """Read all posts of a location from the provider, once for all simultaneous callers.

    Raises:
        ProviderError: the provider could not be read.
        ServiceError: SERVICE_UNAVAILABLE, also if only the cache could not be written.
    """
    if (unstored := await _read_once(services, location)) is not None:
        raise ServiceError(SERVICE_UNAVAILABLE, retry_after=1) from unstored.cause


async def _read_once(services: Services, location: AllowedLocation) -> _Unstored | None:
    return await services.single_flight.run(work(location.name), lambda: _read(services, location))


def work(location: str) -> str:
    """Return the name of the work that only one caller does at a time: to read the posts of a location."""
    return f"posts of {location}"


async def _read(services: Services, location: AllowedLocation) -> _Unstored | None:
    async with services.storage.read() as session:
        read_at = (await posts.cache_age(session, location.owner_id, location.name)).posts_read_at
    async with AsyncExitStack() as stack:
        try:
            was_free = await stack.enter_async_context(services.storage.leases.hold(work(location.name)))
        except ServiceError:  # a database that is read-only has no leases: each process reads by itself
            was_free = True
        now = services.clock.now()
        async with services.storage.read() as session:
            if (
                not was_free
                and (await posts.cache_age(session, location.owner_id, location.name)).posts_read_at != read_at
            ):
                return None  # another process has just read them
            before = await posts.documents(session, location.owner_id, location.name)
        remote = await provider_at(services, location)
        listed = await remote.posts(location.account, location.name)
        current = {post.post_id: post for post in (stored(location.name, document) for document in listed)}
        try:
            async with services.storage.write() as session:
                # First, because a creation locks the location before the posts, too.
                if not await posts.mark_read(session, location.owner_id, location.name, now):
                    raise missing("location")
                reading = await posts.replace(session, location.owner_id, location.name, before, current, now)
                events.publish(services, session, location.owner_id, *_events(location, before, reading))
        except ServiceError as error:
            if error.kind is not SERVICE_UNAVAILABLE:
                raise
            return _Unstored(list(current.values()), error.__cause__ or error)
    return None


def _events(location: AllowedLocation, before: dict[str, str], changes: CacheChanges) -> Iterator[NewEvent]:
    """Return what a reading shows: posts that the provider published, rejected or deleted since they were cached."""
    for post in changes.changed:
        kind = _KINDS.get(post.state)
        if kind is not None and orjson.loads(before[post.post_id]).get("state") != post.state:
            yield event(kind, location, post.document)
    for document in changes.gone:
        yield event("post.deleted_at_provider", location, document)


def event(kind: EventType, location: AllowedLocation, document: str) -> NewEvent:
    """Return the event of a post; that of a change through the service names the caller's key."""
    data = PostChanged(location_id=location.name, post=orjson.loads(document))
    return events.new(kind, data, key_id=location.key_id if kind in _BY_CALLER else None, location_name=location.name)
