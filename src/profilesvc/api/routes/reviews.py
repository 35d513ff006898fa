"""Reviews: list, read, reply, in the provider's format."""

from profilesvc.api.endpoint import READ, WRITE, Routes
from profilesvc.contract.common import LocationQuery
from profilesvc.contract.errors import PLAN_RESTRICTION, PROVIDER_API_ERROR
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.contract.reviews import ReplyBody, ReplyDeleted, ReviewDetail, ReviewList, ReviewListQuery
from profilesvc.services.context import AllowedLocation, Rendered, Services
from profilesvc.services.reviews import reviews

routes = Routes("reviews", addition=True)
_ERRORS = (PLAN_RESTRICTION, PROVIDER_API_ERROR)


@routes.endpoint("GET /reviews", access=READ, query=ReviewListQuery, data=ReviewList, errors=_ERRORS)
async def list_reviews(services: Services, location: AllowedLocation, query: ReviewListQuery) -> Rendered:
    """List reviews.

    The review that changed last is first. They are read from the provider, or with the change feed from a copy of at
    most a day. Without a valid copy the response is PROVIDER_API_ERROR while the provider is down.
    """
    return await reviews.list_page(services, location, query)


@routes.endpoint("GET /reviews/<review:reviewId>", access=READ, query=LocationQuery, data=ReviewDetail, errors=_ERRORS)
async def get_review(services: Services, location: AllowedLocation, review_id: str) -> Rendered:
    """Get a review.

    The response contains its reply, if there is one.
    """
    return await reviews.get(services, location, review_id)


@routes.endpoint(
    "PUT /reviews/<review:reviewId>/reply",
    access=WRITE,
    query=LocationQuery,
    body=dict,
    body_schema=ReplyBody,
    data=ReviewReply,
    errors=_ERRORS,
)
async def reply_to_review(services: Services, location: AllowedLocation, review_id: str, body: JsonObject) -> Rendered:
    """Reply to a review.

    Set the reply, or replace it. It has at most 4,096 bytes. The provider checks it: it is public once its
    `reviewReplyState` is APPROVED.
    """
    return await reviews.reply(services, location, review_id, body)


@routes.endpoint(
    "DELETE /reviews/<review:reviewId>/reply", access=WRITE, query=LocationQuery, data=ReplyDeleted, errors=_ERRORS
)
async def delete_reply(services: Services, location: AllowedLocation, review_id: str) -> ReplyDeleted:
    """Delete a reply.

    The review stays.
    """
    return await reviews.delete_reply(services, location, review_id)
