"""The post form sends a post, stores it as a draft, or schedules it. The page also lists the drafts of a location."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.contract.errors import IDEMPOTENCY_IN_PROGRESS, VALIDATION_ERROR
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages
from profilesvc.dashboard.edits import Edit, is_digest
from profilesvc.dashboard.listing import Listing, matches, page_of
from profilesvc.dashboard.posts import form as post_form
from profilesvc.dashboard.posts import photos
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.dashboard.words import posts as post_words
from profilesvc.domain.errors import ServiceError, invalid_many, problems_in, problems_of
from profilesvc.domain.posts import check_create
from profilesvc.services import posts
from profilesvc.services.context import AllowedLocation
from profilesvc.services.drafts import drafts
from profilesvc.services.idempotency import unsettled
from profilesvc.services.insight import overview

_TIMES, _PAUSE = 10, 0.5  # seconds
_NOT_KEPT = frozenset({"csrf", "once", "intent", "draft", "photo_file", "site", "find"})


blueprint = Blueprint("drafts", __name__)


@view(blueprint, "/drafts")
async def show(visit: Visit) -> Response:
    """Show the drafts of all sites, by a search in their texts and the names of the sites, and by state."""
    choices = {"q": None, "state": post_words.DRAFT_STATES, "site": None, "page": None}
    listing = Listing.of(f"{pages.PATH}/drafts", request.args, choices)
    sites = {site.row.name: site for site in await overview.sites(visit.services, visit.caller)}
    site = f"locations/{listing.get('site')}" if listing.get("site") else ""
    heads = [
        draft
        for draft in await drafts.heads(visit.services, visit.caller)
        if draft.location_name in sites
        and listing.get("state") in ("", draft.state)
        and site in ("", draft.location_name)
    ]
    if wanted := listing.get("q"):
        starts = await _starts(visit, [draft.id for draft in heads])
        heads = [each for each in heads if matches(wanted, sites[each.location_name].title, starts.get(each.id))]
    page = page_of(heads, listing)
    starts = await _starts(visit, [draft.id for draft in page.rows])
    return pages.page("drafts.html", visit=visit, listing=listing, page=page, sites=sites, starts=starts)


async def _starts(visit: Visit, ids: list[str]) -> dict[str, str]:
    """Return the starts of the texts of drafts, read on a thread, because hundreds of drafts may be long."""
    documents = await drafts.texts(visit.services, visit.caller.owner_id, ids)
    return await asyncio.to_thread(
        lambda: {ident: post_words.start_of(json.loads(document)) for ident, document in documents.items()}
    )


@view(blueprint, "/sites/<location:locationId>/drafts/<draft_id>/delete", "POST")
async def delete(visit: Visit, locationId: str, draft_id: str) -> Response:
    """Delete a draft, after the page has asked."""
    location = await visit.location(locationId)
    path = f"{pages.PATH}/sites/{location.id}/posts"
    if "sure" not in await request.form:
        return pages.redirect(f"{path}#drafts")
    await drafts.delete(visit.services, location, draft_id)
    return pages.redirect(path, "draft-deleted")


async def uploaded(visit: Visit, form: "MultiDict[str, str]") -> "MultiDict[str, str]":
    """Return the form with the URL of an uploaded photo.

    Raises:
        ServiceError: VALIDATION_ERROR that names the problems of the photo and of all other fields.
    """
    try:
        return await photos.with_upload(visit)
    except ServiceError as error:
        if error.kind is not VALIDATION_ERROR:
            raise
        document = post_form.document(form)
        raise invalid_many(problems_in(error) + problems_of(lambda: check_create(document))) from None


async def act(visit: Visit, location: AllowedLocation, form: "MultiDict[str, str]") -> str:
    """Do what the button of the form says and return the notice.

    Raises:
        ServiceError: VALIDATION_ERROR with every problem; those of `posts.create` and `drafts.save`.
    """
    post_form.require_kind(form)
    body, draft_id = post_form.document(form), form.get("draft", "")
    if form.get("intent") in ("draft", "schedule"):
        fields = fields_of(form)
        due = due_of(form, body) if form["intent"] == "schedule" else None
        if draft_id:
            await drafts.save(visit.services, location, fields, body, due, draft_id)
        else:
            key = form_key(form, [fields, due])
            await _once(visit, lambda: drafts.save_once(visit.services, visit.caller, location, fields, body, due, key))
        return "drafted" if due is None else "scheduled"
    once = form_key(form, body)
    before = await drafts.unschedule(visit.services, location, draft_id) if draft_id else None
    try:
        await _once(visit, lambda: posts.create(visit.services, visit.caller, location, body, once))
    except ServiceError:
        if before is not None and not await may_exist(visit, location, form):
            await drafts.reschedule(visit.services, location, before)
        raise
    if draft_id:
        with contextlib.suppress(ServiceError):  # the post exists; the draft can be deleted by hand
            await drafts.end(visit.services, location, draft_id)
    return "posted"


async def _once(visit: Visit, run: Callable[[], Awaitable[object]]) -> None:
    """Do what a form says. A form that was sent twice waits for the result of the first."""
    for _ in range(_TIMES):
        try:
            await run()
        except ServiceError as error:
            if error.kind is not IDEMPOTENCY_IN_PROGRESS:
                raise
            await visit.services.clock.sleep(_PAUSE)
        else:
            return
    await run()


def fields_of(form: "MultiDict[str, str]") -> JsonObject:
    """Return what was typed, as a draft keeps it."""
    typed = {name: text for name, text in form.items() if name not in _NOT_KEPT and not is_digest(name)}
    return typed | {"kind": post_form.kind_of(form)}


async def may_exist(visit: Visit, location: AllowedLocation, form: "MultiDict[str, str]") -> bool:
    """Return whether the form was sent and its post may exist, although the provider has not confirmed it."""
    return bool(await unsettled(visit.services, visit.caller, "posts", [location.name], form.get("once", "")))


def due_of(form: "MultiDict[str, str]", body: JsonObject) -> tuple[int, str]:
    """Return the instant at which the post is to be published and its time zone, or raise all problems of the form."""
    day, time, zone = (form.get(name, "").strip() for name in ("publish_date", "publish_time", "zone"))
    due = list[int]()
    problems = problems_of(lambda: check_create(body), lambda: due.append(drafts.instant(day, time, zone or "UTC")))
    if problems:
        raise invalid_many(problems)
    return due[0], zone or "UTC"


async def form_of(visit: Visit, location: AllowedLocation, draft_id: str) -> "MultiDict[str, str]":
    """Return the form as it was filled in for a draft.

    Raises:
        ServiceError: NOT_FOUND.
    """
    fields = json.loads((await drafts.get(visit.services, location, draft_id)).fields)
    return MultiDict({**fields, **_inputs_of(_edit_of(fields)), "draft": draft_id})


async def merge(visit: Visit, location: AllowedLocation, form: "MultiDict[str, str]") -> None:
    """Put into the form of a draft what somebody else has changed meanwhile.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT for what the user has changed too.
    """
    edit = _edit_of(json.loads((await drafts.get(visit.services, location, form["draft"])).fields))
    due = {name: form.get(name, text) for name, text in edit.current["due_at"].items()}
    edit.fill(form, {"due_at": due})
    try:
        edit.require_no_conflict(lambda name: _in_words(edit, name))
    finally:
        for name, text in _inputs_of(edit).items():
            form[name] = text


def _edit_of(fields: JsonObject) -> Edit:
    """Return the form of a draft. The parts of its time belong together."""
    due = {
        **{name: fields.get(name, "") for name in ("publish_date", "publish_time")},
        "zone": fields.get("zone") or "UTC",
    }
    return Edit({**post_form.inputs_of(fields), "photo": fields.get("photo", ""), "due_at": due})


def _inputs_of(edit: Edit) -> dict[str, str]:
    """Return the inputs of the page of a draft."""
    inputs = {name: text for name, text in edit.inputs.items() if name != "due_at"}
    return {**inputs, **edit.inputs["due_at"], **edit.digests()}


def _in_words(edit: Edit, name: str) -> str:
    return " ".join(edit.current[name].values()) if name == "due_at" else post_form.in_words(edit, name)
