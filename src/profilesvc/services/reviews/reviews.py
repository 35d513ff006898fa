"""List reviews and reply to them. They are read live from the provider, or from mirrors while the feed is on."""

import contextlib
import re

import orjson

from profilesvc.contract.common import review_id as checked_id
from profilesvc.contract.common import without_account
from profilesvc.contract.events import EventType, ReplyChanged
from profilesvc.contract.json import JsonObject
from profilesvc.contract.reviews import MAX_PAGE_SIZE, ReplyDeleted, ReviewListQuery
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.reviews import check_reply
from profilesvc.provider.port import ProviderError
from profilesvc.services import events
from profilesvc.services.access import require_plan
from profilesvc.services.context import AllowedLocation, Rendered, Services
from profilesvc.services.page_tokens import seal, unseal
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import provider_at, require_kept
from profilesvc.services.reviews import mirrors
from profilesvc.services.reviews import news as review_news

_ANY = re.compile(r".+", re.DOTALL)
_TOTALS = {"averageRating": (int, float), "totalReviewCount": (int,)}
_LAST_CHANGED_FIRST = "updateTime desc"
_MOST_PAGES = 20  # of one scheduled reading


async def list_page(services: Services, location: AllowedLocation, query: ReviewListQuery) -> Rendered:
    """Return a page of the provider's reviews. The page token is the provider's, sealed with location and order.

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, PROVIDER_API_ERROR, in this order.
    """
    list_name = f"reviews by {query.orderBy}"
    token = unseal(services, location, list_name, query.pageToken, _ANY) if query.pageToken else ""
    require_plan(location, "reviews")
    with raising_provider_failure():
        page = await _listed(services, location, query.pageSize, token, query.orderBy)
        reviews = _page(location, page.get("reviews", []))
    following = page.get("nextPageToken")
    sealed = seal(services, location, list_name, following) if isinstance(following, str) and following else ""
    if not token and query.orderBy == _LAST_CHANGED_FIRST:
        with contextlib.suppress(ServiceError):  # the next reading finds the same news
            await review_news.note(services, location, reviews, is_all=not sealed)
    totals = {name: page[name] for name, types in _TOTALS.items() if type(page.get(name)) in types}
    return Rendered(orjson.dumps({"reviews": reviews, **totals, "nextPageToken": sealed}))


async def _listed(
    services: Services, location: AllowedLocation, size: int, token: str, order_by: str, *, is_live: bool = False
) -> JsonObject:
    """Return a page of the provider, from its mirror if there is a valid one.

    Raises:
        ProviderError: The page could not be read.
    """
    if not is_live and (stored := await mirrors.find(services, location, size, token, order_by)) is not None:
        return stored
    remote, started = await provider_at(services, location), services.clock.now()
    page = await remote.reviews(location.account, location.name, page_size=size, page_token=token, order_by=order_by)
    _page(location, page.get("reviews", []))  # an unreadable page is not stored
    await _keep(services, location, page, started, size, token, order_by)
    return page


async def _keep(services: Services, location: AllowedLocation, page: JsonObject, started: int, *query: object) -> None:
    """Store a response; while it cannot be stored, the next read asks the provider again."""
    with contextlib.suppress(ServiceError):
        await mirrors.store(services, location, page, started, *query)


async def read(services: Services, location: AllowedLocation) -> int:
    """Publish the reviews that are new or changed, and return how many pages were read.

    Raises:
        ProviderError: The reviews could not be read.
        ServiceError: SERVICE_UNAVAILABLE.
    """
    documents, token = list[JsonObject](), ""
    for number in range(1, _MOST_PAGES + 1):
        page = await _listed(services, location, MAX_PAGE_SIZE, token, _LAST_CHANGED_FIRST, is_live=True)
        documents += _page(location, page.get("reviews", []))
        token = str(page.get("nextPageToken") or "")
        is_last = number == _MOST_PAGES
        if await review_news.note(services, location, documents, is_all=not token, is_last=is_last):
            break
    return number


async def get(services: Services, location: AllowedLocation, review_id: str) -> Rendered:
    """Return a review with its reply.

    Raises:
        ServiceError: PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    require_plan(location, "reviews")
    with raising_provider_failure("There is no such review."):
        document = await mirrors.find(services, location, review_id)
        if document is None:
            remote, started = await provider_at(services, location), services.clock.now()
            document = await remote.review(location.account, location.name, review_id)
            _ours(location, document)  # an unreadable review is not stored
            await _keep(services, location, document, started, review_id)
        review = _ours(location, document)
    return Rendered(orjson.dumps(review))


async def reply(services: Services, location: AllowedLocation, review_id: str, body: JsonObject) -> Rendered:
    """Set or replace the reply, which the provider checks before it is public.

    Raises:
        ServiceError: VALIDATION_ERROR, PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    comment = check_reply(body)
    require_plan(location, "reviews")
    with raising_provider_failure("There is no such review."):
        remote = await provider_at(services, location)
        document = await remote.reply(location.account, location.name, review_id, comment)
    await _publish(services, location, review_id, document)
    return Rendered(orjson.dumps(document))


async def delete_reply(services: Services, location: AllowedLocation, review_id: str) -> ReplyDeleted:
    """Delete the reply.

    Raises:
        ServiceError: PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    require_plan(location, "reviews")
    with raising_provider_failure("There is no such review, or it has no reply."):
        remote = await provider_at(services, location)
        await remote.delete_reply(location.account, location.name, review_id)
    await _publish(services, location, review_id, None)
    return ReplyDeleted()


async def _publish(services: Services, location: AllowedLocation, review_id: str, reply: JsonObject | None) -> None:
    """Publish that the caller set the reply, or deleted it."""
    data = ReplyChanged(location_id=location.name, review_name=f"{location.name}/reviews/{review_id}", reply=reply)
    kind: EventType = "review.reply_deleted" if reply is None else "review.replied"
    event = events.new(kind, data, key_id=location.key_id, location_name=location.name)
    await mirrors.expire(services, location, "reviews")
    async with services.storage.write() as session:
        await require_kept(session, location)
        events.publish(services, session, location.owner_id, event)


def _page(location: AllowedLocation, documents: object) -> list[JsonObject]:
    if not isinstance(documents, list):
        raise _unreadable()
    return [_ours(location, document) for document in documents]


def _ours(location: AllowedLocation, document: JsonObject) -> JsonObject:
    """Return the provider's document with our resource name."""
    try:
        ident = checked_id(without_account(document["name"]), location.name)
    except (KeyError, TypeError, ValueError):
        raise _unreadable() from None
    return {**document, "name": f"{location.name}/reviews/{ident}"}


def _unreadable() -> ProviderError:
    return ProviderError("unavailable", retryable=True, provider_message="unreadable review")
