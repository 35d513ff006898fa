"""Cache a location's posts: convert the provider's documents, and read them again when they are stale (D-76)."""

import orjson

from profilesvc.contract.common import post_id, without_account
from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import SECOND, parse_iso
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.storage import posts
from profilesvc.storage.posts import CacheAge, StoredPost

PROCESSING_MAX_AGE = 5 * SECOND


def stored(location: str, document: JsonObject) -> StoredPost:
    """Return a provider's post as the cache stores it: no resource name contains the account (D-74).

    Raises:
        ProviderError: the document is not a post of the location.
    """
    try:
        ident = post_id(without_account(document["name"]), location)
        ours = {**document, "name": f"{location}/localPosts/{ident}"}
        if "media" in document:
            ours["media"] = [_without_account(item) for item in document["media"]]
        created_at = parse_iso(document["createTime"]) if "createTime" in document else 0
        return StoredPost(ident, created_at, str(document.get("state", "")), orjson.dumps(ours).decode())
    except (KeyError, TypeError, ValueError):
        raise ProviderError("unavailable", retryable=True, provider_message="unreadable post") from None


def _without_account(item: JsonObject) -> JsonObject:
    ours = {"name": without_account(item["name"])} if "name" in item else {}
    return {**item, **ours}


def is_stale(services: Services, age: CacheAge) -> bool:
    """Return whether the cache is older than its maximum age, or has a post in review that was read over 5 s ago."""
    now = services.clock.now()
    if age.posts_read_at is None or now - age.posts_read_at > services.settings.cache_max_age_seconds * SECOND:
        return True
    if age.processing_read_at is None:
        return False
    return now - max(age.posts_read_at, age.processing_read_at) > PROCESSING_MAX_AGE


async def reread(services: Services, location: AllowedLocation) -> None:
    """Read all posts of a location from the provider, once for all simultaneous callers.

    Raises:
        ProviderError: the provider could not be read.
    """
    await services.single_flight.run(_work(location.name), lambda: _read(services, location))


async def forget(services: Services, location: str, post_id: str) -> None:
    """Remove a post that the provider no longer has, after any read in progress that may still contain it."""
    await services.single_flight.wait(_work(location))
    async with services.storage.advisory_locks.hold(_work(location)), services.storage.write() as session:
        await posts.remove(session, location, post_id)


def _work(location: str) -> str:
    return f"posts of {location}"


async def _read(services: Services, location: AllowedLocation) -> None:
    async with services.storage.read() as session:
        read_at = (await posts.cache_age(session, location.name)).posts_read_at
    async with services.storage.advisory_locks.hold(_work(location.name)) as was_free:
        now = services.clock.now()
        async with services.storage.read() as session:
            if not was_free and (await posts.cache_age(session, location.name)).posts_read_at != read_at:
                return  # another process has just read them
            before = await posts.documents(session, location.name)
        listed = await services.provider.posts(location.account, location.name)
        current = {post.post_id: post for post in (stored(location.name, document) for document in listed)}
        async with services.storage.write() as session:
            await posts.replace(session, location.name, before, current, now)
