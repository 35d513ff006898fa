"""List, create, change and delete local posts (D-74 to D-78)."""

import re

import orjson

from profilesvc.contract.common import location_name
from profilesvc.contract.errors import NOT_FOUND, PLAN_RESTRICTION, QUOTA_EXCEEDED
from profilesvc.contract.posts import MAX_PAGE_SIZE, PostDeleted, PostListQuery
from profilesvc.contract.provider.post import LocalPost
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.messages import Document, normal
from profilesvc.domain.posts import check_create, check_patch
from profilesvc.domain.world import SECOND, iso, month_start
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Ahead, Caller, Reached, Rendered, Services
from profilesvc.services.idempotency import Claim, IdempotencyKey, once
from profilesvc.services.page_tokens import opened, seal
from profilesvc.services.post_cache import forget, is_stale, refresh, stored
from profilesvc.services.provider_errors import provider_failure
from profilesvc.storage import posts
from profilesvc.storage.posts import Position, StoredPost

_CREATED = 201
_CLOCK_SKEW = 5 * SECOND
_POSITION = re.compile(r"[0-9]{1,15}\.[A-Za-z0-9_-]{1,64}", re.ASCII)


def ahead(query: PostListQuery) -> Ahead | None:
    """What a first page is made of, to be read with the caller."""
    if query.pageToken:
        return None
    return posts.ahead(location_name(query.locationId), min(query.pageSize, MAX_PAGE_SIZE))


async def list_page(services: Services, caller: Caller, location: Reached, query: PostListQuery) -> Rendered:
    """One page, newest first; the first one is read anew when the mirror is too old (D-76, D-77).

    While the provider is down the mirror answers, with its age in seconds; PROVIDER_API_ERROR when
    there is none yet.
    """
    size = min(query.pageSize, MAX_PAGE_SIZE)
    after = _position(services, location, query.pageToken) if query.pageToken else None
    age: int | None = None
    if caller.found:
        mirror, page = posts.known(caller.found)
    else:
        async with services.storage.read() as session:
            if after is None:
                mirror, page = await posts.first_page(session, location.name, size)
            else:
                page = await posts.page(session, location.name, size, after)
    if after is None and is_stale(services, mirror):
        age = await _refresh_or_age(services, location)
        async with services.storage.read() as session:
            _, page = await posts.first_page(session, location.name, size)
    token = seal(services, location, "posts", page.last) if page.last else ""
    return Rendered(f'{{"localPosts":[{page.documents}],"nextPageToken":"{token}"}}'.encode(), data_age=age)


async def _refresh_or_age(services: Services, location: Reached) -> int | None:
    try:
        await refresh(services, location.name)
    except ProviderError as error:
        async with services.storage.read() as session:
            read_at = (await posts.mirror(session, location.name)).posts_read_at
        if read_at is None:
            raise provider_failure(error) from error
        return (services.clock.now() - read_at) // SECOND
    return None


def _position(services: Services, location: Reached, token: str) -> Position:
    created_at, _, ident = opened(services, location, "posts", token, _POSITION).partition(".")
    return int(created_at), ident


async def create(
    services: Services, caller: Caller, location: Reached, body: Document, key: IdempotencyKey | None
) -> Rendered:
    """Create a post; the answer says PROCESSING even where the provider was faster (D-75, D-76).

    VALIDATION_ERROR, PLAN_RESTRICTION, QUOTA_EXCEEDED, PROVIDER_API_ERROR, in this order.
    """
    post = check_create(body)
    if key is None:
        return await _create(services, location, post, None)
    return await once(
        services, caller, ("posts", location), key, lambda claim: _create(services, location, post, claim)
    )


async def _create(services: Services, location: Reached, post: Document, claim: Claim | None) -> Rendered:
    _require_plan(location)
    now = services.clock.now()
    await _reserve(services, location, now)
    try:
        created, adopted = await _send(services, location, post, claim)
    except ProviderError as error:
        if not error.effect_unknown:  # a post that may exist stays counted
            async with services.storage.write() as session:
                await posts.give_back(session, location.owner_id, month_start(now))
        raise provider_failure(error) from error
    answer = created.document.encode()
    async with services.storage.write() as session:
        if adopted:  # the attempt that made it has counted it
            await posts.give_back(session, location.owner_id, month_start(now))
        await posts.put(session, location.name, created, now)
        if claim is not None:
            await claim.finish(session, _CREATED, answer)
    return Rendered(answer)


def _require_plan(location: Reached) -> None:
    if not location.plan.posts:
        raise ServiceError(PLAN_RESTRICTION, f"The plan {location.plan.display_name} does not include posts.")


async def _reserve(services: Services, location: Reached, now: int) -> None:
    """Count the post before it is sent, as the provider is never awaited inside a transaction (D-52)."""
    month, limit = month_start(now), location.plan.monthly_posts
    async with services.storage.write() as session:
        if await posts.reserve(session, location.owner_id, month, limit):
            return
        used = await posts.used(session, location.owner_id, month)
    services.metrics.limit_reached("posts-per-month")
    resets_at = month_start(now, 1)
    raise ServiceError(
        QUOTA_EXCEEDED,
        f"All {limit} posts of this month are used.",
        retry_after=-(-(resets_at - now) // SECOND),
        limit=limit,
        used=used,
        resets_at=iso(resets_at),
    )


async def _send(services: Services, location: Reached, post: Document, claim: Claim | None) -> tuple[StoredPost, bool]:
    """Create the post, or find the one that an interrupted attempt with the same key has made (D-40)."""
    account = await _account(services, location)
    made = None
    if claim is not None and claim.fence > 1:
        made = await _made_before(services, location, post, claim.since)
    adopted = made is not None
    made = made or await services.provider.create_post(account, location.name, post)
    return stored(location.name, {**made, "state": "PROCESSING"}), adopted


async def _made_before(services: Services, location: Reached, post: Document, since: int) -> Document | None:
    """The post that an attempt since then may have made: these members, and unknown to us before it.

    Media comes back changed and is not compared; the provider's clock may be a little behind ours.
    """
    account = await _account(services, location)
    async with services.storage.read() as session:
        known = await posts.read_before(session, location.name, since)
    for document in await services.provider.posts(account, location.name):
        found = stored(location.name, document)
        if _says(document, post) and found.created_at >= since - _CLOCK_SKEW and found.post_id not in known:
            return document
    return None


def _says(document: Document, post: Document) -> bool:
    """Whether the provider's document has what was sent, with what it leaves out read as it means it."""
    annotations = {name: field.annotation for name, field in LocalPost.model_fields.items() if name != "media"}
    return all(
        normal(annotation, document.get(name)) == normal(annotation, post.get(name))
        for name, annotation in annotations.items()
        if name in post
    )


async def change(services: Services, location: Reached, post_id: str, body: Document) -> Rendered:
    """Change the members present; answers the whole post (D-78).

    VALIDATION_ERROR, PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    existing = await _find(services, location, post_id)
    update, mask = ({}, []) if existing is None else check_patch(orjson.loads(existing), body)
    _require_plan(location)
    if existing is None:
        raise _no_such_post()
    if not mask:
        return Rendered(existing.encode())
    now, account = services.clock.now(), await _account(services, location)
    try:
        answer = await services.provider.patch_post(account, location.name, post_id, update, mask)
        changed = stored(location.name, answer)
    except ProviderError as error:
        raise await _refused(services, location, post_id, error) from error
    async with services.storage.write() as session:
        await posts.change(session, location.name, changed, now)
    return Rendered(changed.document.encode())


async def _find(services: Services, location: Reached, post_id: str) -> str | None:
    """The post in the mirror, read anew if it is not there; not for a plan that will be refused anyway."""
    async with services.storage.read() as session:
        existing = await posts.find(session, location.name, post_id)
    if existing is not None or not location.plan.posts:
        return existing
    try:
        await refresh(services, location.name)
    except ProviderError as error:
        raise provider_failure(error) from error
    async with services.storage.read() as session:
        return await posts.find(session, location.name, post_id)


async def delete(services: Services, location: Reached, post_id: str) -> PostDeleted:
    """Delete a post, also one that the mirror does not know yet. NOT_FOUND, PROVIDER_API_ERROR."""
    account = await _account(services, location)
    try:
        await services.provider.delete_post(account, location.name, post_id)
    except ProviderError as error:
        raise await _refused(services, location, post_id, error) from error
    await forget(services, location.name, post_id)
    return PostDeleted()


async def _refused(services: Services, location: Reached, post_id: str, error: ProviderError) -> ServiceError:
    """What to answer; a post that is gone at the provider is gone here too."""
    if not error.not_found:
        return provider_failure(error)
    await forget(services, location.name, post_id)
    return _no_such_post()


async def _account(services: Services, location: Reached) -> str:
    async with services.storage.read() as session:
        return (await posts.mirror(session, location.name)).account


def _no_such_post() -> ServiceError:
    return ServiceError(NOT_FOUND, "There is no such post.")
