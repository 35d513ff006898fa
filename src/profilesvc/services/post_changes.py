"""Read, change and delete a local post."""

import orjson

from profilesvc.contract.events import EventType
from profilesvc.contract.json import JsonObject
from profilesvc.contract.posts import PostDeleted
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.posts import check_patch
from profilesvc.provider.port import ProviderError
from profilesvc.services import events, posts
from profilesvc.services.access import missing, require_plan
from profilesvc.services.context import AllowedLocation, Rendered, Services
from profilesvc.services.provider_errors import provider_failure, raising_provider_failure
from profilesvc.services.provider_logins import provider_at, require_kept
from profilesvc.storage import posts as table


async def change(services: Services, location: AllowedLocation, post_id: str, body: JsonObject) -> Rendered:
    """Change the fields of the body and return the whole post (D-78).

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    try:
        existing = await _find(services, location, post_id, must_be_current=True)
    except ServiceError:
        check_patch(None, body)  # an invalid body comes before a provider that is down
        raise
    update, mask = check_patch(None if existing is None else orjson.loads(existing), body)
    require_plan(location, "posts")
    if existing is None:
        raise missing("post")
    now = services.clock.now()
    try:
        remote = await provider_at(services, location)
        document = await remote.patch_post(location.account, location.name, post_id, update, mask)
        changed = posts.stored(location.name, document)
    except ProviderError as error:
        raise await _rejected(services, location, post_id, error) from error
    async with services.storage.write() as session:
        await require_kept(session, location)
        await table.change(session, location.owner_id, location.name, changed, now)
        events.publish(services, session, location.owner_id, posts.event("post.updated", location, changed.document))
    return Rendered(changed.document.encode())


async def get(services: Services, location: AllowedLocation, post_id: str) -> JsonObject:
    """Return a post.

    Raises:
        ServiceError: NOT_FOUND, PROVIDER_API_ERROR.
    """
    if (existing := await _find(services, location, post_id)) is None:
        raise missing("post")
    document: JsonObject = orjson.loads(existing)
    return document


async def _find(
    services: Services, location: AllowedLocation, post_id: str, *, must_be_current: bool = False
) -> str | None:
    """Return a post. If it is not cached, or too old, read all posts again, unless the plan is rejected next."""
    async with services.storage.read() as session:
        existing = await table.find(session, location.owner_id, location.name, post_id)
        age = await table.cache_age(session, location.owner_id, location.name)
    is_enough = existing is not None and not (must_be_current and posts.is_old(services, age.posts_read_at))
    if is_enough or not location.plan.posts:
        return existing
    with raising_provider_failure():
        await posts.reread(services, location)
    async with services.storage.read() as session:
        return await table.find(session, location.owner_id, location.name, post_id)


async def delete(services: Services, location: AllowedLocation, post_id: str) -> PostDeleted:
    """Delete a post, also one that is not cached yet.

    Raises:
        ServiceError: NOT_FOUND, PROVIDER_API_ERROR.
    """
    try:
        remote = await provider_at(services, location)
        await remote.delete_post(location.account, location.name, post_id)
    except ProviderError as error:
        raise await _rejected(services, location, post_id, error) from error
    await _forget(services, location, post_id, "post.deleted")
    return PostDeleted()


async def _rejected(services: Services, location: AllowedLocation, post_id: str, error: ProviderError) -> ServiceError:
    """Return the error to raise, and remove a post that the provider no longer has."""
    if not error.not_found:
        return provider_failure(error)
    await _forget(services, location, post_id, "post.deleted_at_provider")
    return missing("post")


async def _forget(services: Services, location: AllowedLocation, post_id: str, kind: EventType) -> None:
    """Remove a post that the provider no longer has, and publish who deleted it.

    It is removed at once, so that a reading in progress does not report it as deleted by somebody else, and again after
    that reading, which may have seen the post before.
    """
    owner_id, name = location.owner_id, location.name
    async with services.storage.write() as session:
        document = await table.remove(session, owner_id, name, post_id)
        if document is not None:
            events.publish(services, session, owner_id, posts.event(kind, location, document))
    await services.single_flight.wait(posts.work(name))
    async with services.storage.leases.hold(posts.work(name)), services.storage.write() as session:
        late = await table.remove(session, owner_id, name, post_id)
        if document is None:
            document = late
            if late is None and kind == "post.deleted":  # it was never cached, so the event has only its name
                document = orjson.dumps({"name": f"{name}/localPosts/{post_id}"}).decode()
            if document is not None:
                events.publish(services, session, owner_id, posts.event(kind, location, document))
        if document is not None:
            for act in services.post_deleted:
                await act(services, session, owner_id, document)
