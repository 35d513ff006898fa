"""Local posts: list, create, change, delete."""

from profilesvc.api.endpoint import READ, WRITE, Routes
from profilesvc.contract.common import LocationQuery
from profilesvc.contract.errors import PLAN_RESTRICTION, PROVIDER_API_ERROR, QUOTA_EXCEEDED
from profilesvc.contract.json import JsonObject
from profilesvc.contract.posts import Post, PostDeleted, PostList, PostListQuery
from profilesvc.contract.provider.post import LocalPost
from profilesvc.services import post_changes, posts
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.idempotency import IdempotencyKey

routes = Routes("posts")


def _path(name: str) -> str:
    location, _, post_id = name.partition("/localPosts/")
    return f"/posts/{post_id}?locationId={location}"


@routes.endpoint(
    "GET /posts",
    access=READ,
    query=PostListQuery,
    data=PostList,
    errors=(PROVIDER_API_ERROR,),
    prefetch=lambda query, _path: posts.prefetch(query),
)
async def list_posts(services: Services, caller: Caller, location: AllowedLocation, query: PostListQuery) -> Rendered:
    """List posts.

    The newest post is first. While the provider is down, the posts are those read last, and `X-Data-Age` is their
    age in seconds.
    """
    return await posts.list_page(services, caller, location, query)


@routes.endpoint(
    "POST /posts",
    access=WRITE,
    query=LocationQuery,
    body=dict,
    body_schema=LocalPost,
    data=Post,
    status=201,
    created_at=lambda post: _path(post["name"]),
    errors=(PLAN_RESTRICTION, QUOTA_EXCEEDED, PROVIDER_API_ERROR),
)
async def create_post(
    services: Services, caller: Caller, location: AllowedLocation, body: JsonObject, idempotency: IdempotencyKey | None
) -> Rendered:
    """Create a post.

    It starts in state PROCESSING. `topicType` is STANDARD by default, which needs a `summary`. The provider decides
    what else a topic needs. Send an `X-Idempotency-Key`, so that a retry does not create a second post.
    """
    return await posts.create(services, caller, location, body, idempotency)


@routes.endpoint(
    "PATCH /posts/<post:postId>",
    access=WRITE,
    query=LocationQuery,
    body=dict,
    body_schema=LocalPost,
    data=Post,
    errors=(PLAN_RESTRICTION, PROVIDER_API_ERROR),
)
async def change_post(services: Services, location: AllowedLocation, post_id: str, body: JsonObject) -> Rendered:
    """Change a post.

    Only the fields in the body change; null clears one. Returns the whole post.
    """
    return await post_changes.change(services, location, post_id, body)


@routes.endpoint(
    "DELETE /posts/<post:postId>", access=WRITE, query=LocationQuery, data=PostDeleted, errors=(PROVIDER_API_ERROR,)
)
async def delete_post(services: Services, location: AllowedLocation, post_id: str) -> PostDeleted:
    """Delete a post.

    The provider deletes it. This cannot be undone.
    """
    return await post_changes.delete(services, location, post_id)
