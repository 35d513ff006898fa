"""The page of a location's posts, with a form for each kind."""

import json

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.common import post_id
from profilesvc.contract.json import JsonObject
from profilesvc.contract.posts import PostListQuery
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.posts import drafts, photos
from profilesvc.dashboard.posts import form as post_form
from profilesvc.dashboard.visits import Visit, path_value, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import post_changes, posts
from profilesvc.services.context import AllowedLocation
from profilesvc.services.drafts import drafts as stored_drafts
from profilesvc.services.drafts import photos as stored_photos
from profilesvc.services.insight import overview
from profilesvc.tokens.signer import random_id

_SITE = "/sites/<location:locationId>"
_SIZE = 25


blueprint = Blueprint("posts", __name__)


@view(blueprint, f"{_SITE}/posts")
async def show(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    if draft := request.args.get("draft"):
        return await _page(visit, location, await drafts.form_of(visit, location, draft))
    return await _page(visit, location, MultiDict(request.args))


@view(blueprint, f"{_SITE}/posts/live")
async def live(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    return pages.page("_posts.html", visit=visit, location=location, **await _listed(visit, location, ""))


@view(blueprint, f"{_SITE}/posts/check", "POST", TEXTS)
async def check(visit: Visit, locationId: str) -> Response:
    """Return the problems of the form while the user fills it in."""
    form = await request.form
    problems_so_far = post_form.problems(post_form.document(form))
    return pages.page("_check.html", 200, problems=problems_so_far)


@view(blueprint, f"{_SITE}/posts", "POST", photos.FORM)
async def create(visit: Visit, locationId: str) -> Response:
    """Send the post, or store it as a draft or for a time."""
    location = await visit.location(locationId)
    form: MultiDict[str, str] = MultiDict(await request.form)
    try:
        form = await drafts.uploaded(visit, form)
        if form.get("draft"):
            await drafts.merge(visit, location, form)
        done = await drafts.act(visit, location, form)
    except ServiceError as error:
        return await _page(visit, location, form, error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}/posts", done)


@view(blueprint, f"{_SITE}/posts/<post:postId>/edit")
async def edit(visit: Visit, locationId: str, postId: str) -> Response:
    location = await visit.location(locationId)
    ident = path_value("postId", post_id, postId, location.name)
    existing = await post_changes.get(visit.services, location, ident)
    return await _edit_page(visit, location, ident, Edit(post_form.inputs_of(post_form.values(existing))))


@view(blueprint, f"{_SITE}/posts/<post:postId>/edit", "POST", TEXTS)
async def change(visit: Visit, locationId: str, postId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident = path_value("postId", post_id, postId, location.name)
    edit = Edit(post_form.inputs_of(form)).fill(form)
    try:
        post_form.require_kind(form)
        existing = await post_changes.get(visit.services, location, ident)
        edit = Edit(post_form.inputs_of(post_form.values(existing))).fill(form)
        if changes := post_form.changes(existing, edit):
            await post_changes.change(visit.services, location, ident, changes)
    except ServiceError as error:
        return await _edit_page(visit, location, ident, edit, error)
    done = "changed" if changes else "unchanged"
    return pages.redirect(f"{pages.PATH}/sites/{location.id}/posts", done)


async def _edit_page(
    visit: Visit, location: AllowedLocation, ident: str, edit: Edit, error: ServiceError | None = None
) -> Response:
    return pages.page(
        "post.html",
        visit=visit,
        location=location,
        title=await visit.title(location),
        id=ident,
        kind=post_form.kind_of(edit.inputs),
        form=edit.inputs,
        edit=edit,
        problems=problems.from_error(error),
    )


@view(blueprint, f"{_SITE}/posts/<post:postId>/delete", "POST")
async def delete(visit: Visit, locationId: str, postId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident = path_value("postId", post_id, postId, location.name)
    try:
        problems.require_confirmation("sure" in form)
        await post_changes.delete(visit.services, location, ident)
    except ServiceError as error:
        return await _page(visit, location, MultiDict(), error, f"delete-{ident}-")
    return pages.redirect(f"{pages.PATH}/sites/{location.id}/posts", "deleted")


async def _page(
    visit: Visit,
    location: AllowedLocation,
    form: "MultiDict[str, str]",
    error: ServiceError | None = None,
    prefix: str = "",
) -> Response:
    """Return the list and the form. After an `error`, `form` is what the user entered."""
    usage = await overview.usage(visit.services, visit.caller)
    drafts_page, number = await stored_drafts.listing(visit.services, location, _SIZE)
    may_exist = error is not None and "once" in form and await drafts.may_exist(visit, location, form)
    return pages.page(
        "posts.html",
        visit=visit,
        location=location,
        kind=post_form.kind_of(form),
        form=form,
        title=await visit.title(location),
        problems=problems.from_error(error, prefix),
        usage=usage,
        may_exist=may_exist,
        once=form["once"] if may_exist else random_id(visit.services.entropy),
        drafts=drafts_page,
        more_drafts=number - len(drafts_page),
        preview=form.get("photo", "") if stored_photos.is_ours(visit.services, form.get("photo", "")) else "",
        **await _listed(visit, location, form.get("page", ""), is_form=error is not None),
    )


async def _listed(visit: Visit, location: AllowedLocation, token: str, *, is_form: bool = False) -> JsonObject:
    """Return a page of posts, or the error if the provider is not available.

    If the form is shown again (`is_form`), show every error with it, because the user's input must not be lost.
    """
    values = {"locationId": location.name, "pageSize": str(_SIZE), "pageToken": token}
    query = checked(PostListQuery, values, "query")
    try:
        listed = json.loads((await posts.list_page(visit.services, visit.caller, location, query)).data)
    except ServiceError as error:
        if error.kind.status < 500 and not is_form:
            raise
        return {"posts": [], "older": "", "failure": error, "first": not token}
    return {"posts": listed["localPosts"], "older": listed["nextPageToken"], "failure": None, "first": not token}
