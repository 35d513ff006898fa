"""Reviews and the replies to them, read live from the provider: nothing of them is kept here."""

import re

import orjson

from profilesvc.contract.common import review_id as checked_id
from profilesvc.contract.common import without_account
from profilesvc.contract.errors import NOT_FOUND, PLAN_RESTRICTION
from profilesvc.contract.reviews import MAX_PAGE_SIZE, ReplyDeleted, ReviewListQuery
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.messages import Document
from profilesvc.domain.reviews import check_reply
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import Reached, Rendered, Services
from profilesvc.services.page_tokens import opened, seal
from profilesvc.services.provider_errors import provider_failure

_ANY = re.compile(r".+", re.DOTALL)
_TOTALS = ("averageRating", "totalReviewCount")


async def list_page(services: Services, location: Reached, query: ReviewListQuery) -> Rendered:
    """One page as the provider has it; the token is its own, sealed with the location and the order.

    VALIDATION_ERROR, PLAN_RESTRICTION, PROVIDER_API_ERROR, in this order.
    """
    listed = f"reviews by {query.orderBy}"
    token = opened(services, location, listed, query.pageToken, _ANY) if query.pageToken else ""
    _require_plan(location)
    size = min(query.pageSize, MAX_PAGE_SIZE)
    try:
        page = await services.provider.reviews(
            location.account, location.name, page_size=size, page_token=token, order_by=query.orderBy
        )
        reviews = _page(location, page.get("reviews", []))
    except ProviderError as error:
        raise provider_failure(error) from error
    more = page.get("nextPageToken")
    sealed = seal(services, location, listed, more) if isinstance(more, str) and more else ""
    totals = {name: page[name] for name in _TOTALS if name in page}
    return Rendered(orjson.dumps({"reviews": reviews, **totals, "nextPageToken": sealed}))


async def get(services: Services, location: Reached, review_id: str) -> Rendered:
    """One review, with its reply where it has one. PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR."""
    _require_plan(location)
    try:
        review = _ours(location, await services.provider.review(location.account, location.name, review_id))
    except ProviderError as error:
        raise _failure(error, "There is no such review.") from error
    return Rendered(orjson.dumps(review))


async def reply(services: Services, location: Reached, review_id: str, body: Document) -> Rendered:
    """Set or replace the reply; the provider reviews it before it is public.

    VALIDATION_ERROR, PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR, in this order.
    """
    comment = check_reply(body)
    _require_plan(location)
    try:
        answer = await services.provider.reply(location.account, location.name, review_id, comment)
    except ProviderError as error:
        raise _failure(error, "There is no such review.") from error
    return Rendered(orjson.dumps(answer))


async def delete_reply(services: Services, location: Reached, review_id: str) -> ReplyDeleted:
    """Take the reply back. PLAN_RESTRICTION, NOT_FOUND, PROVIDER_API_ERROR."""
    _require_plan(location)
    try:
        await services.provider.delete_reply(location.account, location.name, review_id)
    except ProviderError as error:
        raise _failure(error, "There is no such review, or it has no reply.") from error
    return ReplyDeleted()


def _require_plan(location: Reached) -> None:
    """Reject a caller whose plan does not include reviews (D-90).

    Raises:
        ServiceError: PLAN_RESTRICTION.
    """
    if not location.plan.reviews:
        raise ServiceError(PLAN_RESTRICTION, f"The plan {location.plan.display_name} does not include reviews.")


def _page(location: Reached, found: object) -> list[Document]:
    if not isinstance(found, list):
        raise _unreadable()
    return [_ours(location, document) for document in found]


def _ours(location: Reached, document: Document) -> Document:
    """The provider's document under our name of it. ProviderError for one that is no review of the location."""
    try:
        ident = checked_id(without_account(document["name"]), location.name)
    except (KeyError, TypeError, ValueError):
        raise _unreadable() from None
    return {**document, "name": f"{location.name}/reviews/{ident}"}


def _unreadable() -> ProviderError:
    return ProviderError("unavailable", retryable=True, provider_message="unreadable review")


def _failure(error: ProviderError, missing: str) -> ServiceError:
    return ServiceError(NOT_FOUND, missing) if error.not_found else provider_failure(error)
