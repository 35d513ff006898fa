"""A location's posts with a form for each kind, and its reviews."""

import json
from typing import Any

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.parsing import checked, idempotency_key
from profilesvc.contract.common import post_id
from profilesvc.contract.posts import PostListQuery
from profilesvc.dashboard import pages, post_form, problems, words
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.services import overview, posts
from profilesvc.services.context import Reached
from profilesvc.tokens.signer import random_id

_SITE = "/sites/<location:locationId>"
_SIZE = 25


def register(blueprint: Blueprint) -> None:
    """Declare them."""

    @view(blueprint, f"{_SITE}/posts")
    async def show(here: Visit, locationId: str) -> Response:
        return await _page(here, await here.reach(locationId), MultiDict(request.args))

    @view(blueprint, f"{_SITE}/posts/live")
    async def live(here: Visit, locationId: str) -> Response:
        location = await here.reach(locationId)
        return pages.page("_posts.html", visit=here, location=location, **await _listed(here, location, ""))

    @view(blueprint, f"{_SITE}/posts/check", "POST")
    async def check(here: Visit, locationId: str) -> Response:
        """What is wrong with the form so far, while it is filled in."""
        form = await request.form
        found = post_form.problems(post_form.document(_kind(form), form))
        return pages.page("_check.html", problems=found)

    @view(blueprint, f"{_SITE}/posts", "POST")
    async def create(here: Visit, locationId: str) -> Response:
        location, form = await here.reach(locationId), await request.form
        body = post_form.document(_kind(form), form)
        once = idempotency_key([[form.get("once", "")]], body)
        try:
            await posts.create(here.services, here.caller, location, body, once)
        except ServiceError as error:
            return await _page(here, location, form, error)
        return pages.see(f"{pages.PATH}/sites/{location.id}/posts")

    @view(blueprint, f"{_SITE}/posts/<post:postId>/delete", "POST")
    async def delete(here: Visit, locationId: str, postId: str) -> Response:
        location, form = await here.reach(locationId), await request.form
        try:
            ident = post_id(postId, location.name)
        except ValueError as error:
            raise invalid("path", "postId", str(error)) from None
        try:
            problems.require_sure("sure" in form)
            await posts.delete(here.services, location, ident)
        except ServiceError as error:
            return await _page(here, location, MultiDict(), error, f"delete-{ident}-")
        return pages.see(f"{pages.PATH}/sites/{location.id}/posts")


def _kind(form: "MultiDict[str, str]") -> str:
    return form["kind"] if form.get("kind") in words.KINDS else "STANDARD"


async def _page(
    here: Visit,
    location: Reached,
    form: "MultiDict[str, str]",
    error: ServiceError | None = None,
    prefix: str = "",
) -> Response:
    """The list and the form; after a refusal with what was typed, and what is wrong with it."""
    usage = await overview.usage(here.services, here.caller)
    return pages.page(
        "posts.html",
        200 if error is None else error.kind.status,
        visit=here,
        location=location,
        kind=_kind(form),
        form=form,
        title=await here.title(location),
        problems=problems.NONE if error is None else problems.of(error, prefix),
        usage=usage,
        once=random_id(here.services.entropy),
        **await _listed(here, location, form.get("page", ""), is_form=error is not None),
    )


async def _listed(here: Visit, location: Reached, token: str, *, is_form: bool = False) -> dict[str, Any]:
    """A page of posts as the API lists them; while the provider is away its refusal instead.

    With a form that is shown again (`is_form`) so is every error, because the input must not be lost.
    """
    asked = {"locationId": location.name, "pageSize": str(_SIZE), "pageToken": token}
    query = checked(PostListQuery, asked, "query")
    try:
        found = json.loads((await posts.list_page(here.services, here.caller, location, query)).data)
    except ServiceError as error:
        if error.kind.status < 500 and not is_form:
            raise
        return {"posts": [], "older": "", "trouble": error, "first": not token}
    return {"posts": found["localPosts"], "older": found["nextPageToken"], "trouble": None, "first": not token}
