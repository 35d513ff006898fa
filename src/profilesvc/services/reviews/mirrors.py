"""The provider's responses about reviews, stored for as long as the change feed announces what changes (D-114)."""

import hashlib
import json

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import SECOND
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import ANNOUNCED_AGE
from profilesvc.services.provider_logins import require_kept
from profilesvc.storage import locations
from profilesvc.storage.locations import What
from profilesvc.storage.reviews import mirrors

# The clocks of processes differ, and a change of ours may be visible at the provider only a moment later.
_MARGIN = 2 * SECOND


async def find(services: Services, location: AllowedLocation, *query: object) -> JsonObject | None:
    """Return the provider's response to a query, if it is stored and still valid."""
    if not services.settings.notifications.enabled:
        return None
    after = services.clock.now() - ANNOUNCED_AGE
    async with services.storage.read() as session:
        text = await mirrors.find(session, location.owner_id, location.name, _digest(query), after)
    return None if text is None else dict(json.loads(text))


async def store(
    services: Services, location: AllowedLocation, document: JsonObject, read_at: int, *query: object
) -> None:
    """Store a response to a query; the reading started at `read_at`.

    One with a reply in review is not stored, because no notification says how its review ends.
    """
    if not services.settings.notifications.enabled or _is_in_review(document):
        return
    text = json.dumps(document)
    async with services.storage.write() as session:
        await require_kept(session, location)
        await mirrors.put(session, location.owner_id, location.name, _digest(query), read_at, text)


async def expire(services: Services, location: AllowedLocation, what: What) -> None:
    """Let the next read of what has changed go to the provider."""
    if services.settings.notifications.enabled:
        async with services.storage.write() as session:
            await locations.expire(session, location.owner_id, location.name, what, services.clock.now() + _MARGIN)


def _digest(query: tuple[object, ...]) -> str:
    return hashlib.sha256(json.dumps(query).encode()).hexdigest()


def _is_in_review(document: JsonObject) -> bool:
    replies = [review.get("reviewReply") for review in document.get("reviews", [document])]
    return any(isinstance(reply, dict) and reply.get("reviewReplyState") == "PENDING" for reply in replies)
