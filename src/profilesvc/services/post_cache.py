"""The mirror of a location's posts: what is kept of the provider's documents, and when they are read anew (D-76)."""

import orjson

from profilesvc.contract.common import post_id, without_account
from profilesvc.domain.messages import Document
from profilesvc.domain.world import SECOND, parse_iso
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Services
from profilesvc.storage import posts
from profilesvc.storage.posts import Mirror, StoredPost

PROCESSING_MAX_AGE = 5 * SECOND


def stored(location: str, document: Document) -> StoredPost:
    """A provider's post as the mirror keeps it: no resource name shows the account (D-74).

    Raises ProviderError for a document that is no post of the location.
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


def _without_account(item: Document) -> Document:
    ours = {"name": without_account(item["name"])} if "name" in item else {}
    return {**item, **ours}


def is_stale(services: Services, mirror: Mirror) -> bool:
    """Whether the mirror is older than the maximum age, or holds a post in review that was read over 5 s ago."""
    now = services.clock.now()
    if mirror.posts_read_at is None or now - mirror.posts_read_at > services.settings.mirror_max_age_seconds * SECOND:
        return True
    if mirror.processing_read_at is None:
        return False
    return now - max(mirror.posts_read_at, mirror.processing_read_at) > PROCESSING_MAX_AGE


async def refresh(services: Services, location: str) -> None:
    """Read all posts of a location from the provider; one such reading at a time. Raises ProviderError."""
    await services.refreshes.run(_work(location), lambda: _read(services, location))


async def forget(services: Services, location: str, post_id: str) -> None:
    """Forget a post that the provider has no more; a reading that is under way anywhere may hold it still."""
    await services.refreshes.ended(_work(location))
    async with services.storage.turns.take(_work(location)), services.storage.write() as session:
        await posts.remove(session, location, post_id)


def _work(location: str) -> str:
    return f"posts of {location}"


async def _read(services: Services, location: str) -> None:
    async with services.storage.read() as session:
        mirror = await posts.mirror(session, location)
    async with services.storage.turns.take(_work(location)) as was_free:
        now = services.clock.now()
        async with services.storage.read() as session:
            if not was_free and (await posts.mirror(session, location)).posts_read_at != mirror.posts_read_at:
                return  # another process has just read them
            before = await posts.documents(session, location)
        listed = await services.provider.posts(mirror.account, location)
        found = {post.post_id: post for post in (stored(location, document) for document in listed)}
        async with services.storage.write() as session:
            await posts.replace(session, location, before, found, now)
