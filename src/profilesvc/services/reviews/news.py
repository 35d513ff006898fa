"""New and changed reviews: `review.created` and `review.updated`, once for each change.

A mark for each location has the update times of the last ones (`domain/reviews.py`), and it
changes in the transaction of the events. The first reading of a location stores the mark without an event.
"""

from collections.abc import Sequence

from profilesvc.contract.events import EventType, ReviewChanged
from profilesvc.contract.json import JsonObject
from profilesvc.domain.reviews import Listed, News, first_seen, news, reaches, with_listed
from profilesvc.domain.time import parse_iso
from profilesvc.services import events
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.provider_logins import require_kept
from profilesvc.storage.events import NewEvent
from profilesvc.storage.reviews import readings

_KINDS: dict[str, EventType] = {"created": "review.created", "updated": "review.updated"}
_ATTEMPTS = 5  # of simultaneous readings in several processes, one stores its mark at each attempt


async def note(
    services: Services,
    location: AllowedLocation,
    documents: Sequence[JsonObject],
    *,
    is_all: bool,
    is_last: bool = False,
) -> bool:
    """Publish what a list shows that starts with the review that was updated last. `is_all`: no review follows it.

    Return False, and publish nothing, if the list is empty or does not reach the reviews of the last reading; `is_last`
    publishes what it has even so.

    Raises:
        ServiceError: NOT_FOUND if the location was disconnected meanwhile.
    """
    by_id = {str(document["name"]).rpartition("/")[2]: document for document in documents}
    every = (_listed(ident, document) for ident, document in by_id.items())
    listed = [each for each in every if each.updated_at]  # one without a time is never news
    if not listed and not is_all:
        return False
    is_complete = is_all and len(listed) == len(by_id)
    for _ in range(_ATTEMPTS):
        async with services.storage.read() as session:
            seen = await readings.seen(session, location.owner_id, location.name)
        if seen is not None and not (is_all or is_last or reaches(seen, listed)):
            return False
        after = first_seen(listed, is_all=is_complete) if seen is None else with_listed(seen, listed)
        if after == seen:
            return True
        published = [] if seen is None else [_event(location, each, by_id[each.id]) for each in news(seen, listed)]
        async with services.storage.write() as session:
            await require_kept(session, location)
            if await readings.see(session, location.owner_id, location.name, seen, after):
                events.publish(services, session, location.owner_id, *published)
                return True
    return True  # the next reading lists the same reviews


def _listed(ident: str, document: JsonObject) -> Listed:
    return Listed(ident, _instant(document.get("createTime")), _instant(document.get("updateTime")))


def _instant(value: object) -> int:
    """Return a time of the provider, 0 if there is none."""
    try:
        return parse_iso(value) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _event(location: AllowedLocation, review: News, document: JsonObject) -> NewEvent:
    data = ReviewChanged(location_id=location.name, review=document)
    return events.new(_KINDS[review.what], data, location_name=location.name)
