"""One post for several sites: choose them, write it, look at it, send it, and see what happened at each."""

from collections.abc import Collection

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.posts import drafts, photos
from profilesvc.dashboard.posts import form as post_form
from profilesvc.dashboard.problems import NONE, Problems
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.domain.errors import ServiceError, invalid, invalid_many, problems_of
from profilesvc.domain.posts import check_create
from profilesvc.services.drafts import photos as stored_photos
from profilesvc.services.drafts import several
from profilesvc.services.drafts.several import NewDraft, SiteResult
from profilesvc.services.idempotency import unsettled
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import SiteView
from profilesvc.tokens.signer import random_id

_PATH = "/posts/new"
_MOST_OFFERED = 20  # sites that are offered
_BUTTONS = frozenset({"csrf", "intent", "photo_file", "find"})


blueprint = Blueprint("many_posts", __name__)


@view(blueprint, _PATH)
async def new(visit: Visit) -> Response:
    return await _form_page(visit, MultiDict(request.args))


@view(blueprint, _PATH, "POST", photos.FORM)
async def act(visit: Visit) -> Response:
    """Search sites, show the post before it is sent, or send, schedule or store it."""
    form: MultiDict[str, str] = MultiDict(await request.form)
    intent = form.get("intent", "preview")
    if intent == "enter":  # the key: a person who has typed a name searches it
        intent = "search" if form.get("find", "").strip() else "preview"
    due: tuple[int, str] | None = None
    try:
        form = await drafts.uploaded(visit, form)
        if intent in ("search", "edit"):
            return await _form_page(visit, form)
        post_form.require_kind(form)
        ids, document = set(form.getlist("site")), post_form.document(form)
        chosen = [site for site in await overview.sites(visit.services, visit.caller) if site.id in ids]
        if intent == "draft":
            _require_sites(chosen)
        elif failures := problems_of(lambda: _require_sites(chosen), lambda: check_create(document)):
            raise invalid_many(failures)
        if intent != "draft" and form.get("publish_date", "").strip():
            due = drafts.due_of(form, document)
    except ServiceError as error:
        return await _form_page(visit, form, problems.from_error(error))
    once = form_key({"once": form.get("once") or random_id(visit.services.entropy)}, document)
    if intent in ("draft", "schedule"):
        draft = NewDraft(drafts.fields_of(form), document, due)
        return await _done(visit, form, chosen, await several.draft(visit.services, visit.caller, chosen, draft, once))
    if intent != "send":
        return await _preview(visit, form, chosen, once.value, due)
    outcomes = await several.post(visit.services, visit.caller, chosen, document, once)
    failed = [one.name for one in outcomes if one.changes is None]
    unsure = await unsettled(visit.services, visit.caller, "posts", failed, once.value)
    return await _done(visit, form, chosen, outcomes, unsure)


async def _done(
    visit: Visit,
    form: "MultiDict[str, str]",
    chosen: list[SiteView],
    outcomes: list[SiteResult],
    unsure: Collection[str] = (),
) -> Response:
    """Return what happened at each site; `unsure` names those where the post may exist."""
    results = list(zip(chosen, outcomes, strict=True))
    return pages.page(
        "many_posts_done.html",
        visit=visit,
        results=results,
        intent=form.get("intent", ""),
        done=sum(one.changes is not None for one in outcomes),
        again=[site for site, one in results if one.changes is None and one.name not in unsure],
        unsure=[site for site, one in results if one.name in unsure],
        once=form.get("once", ""),
        fields=_fields(form),
    )


def _require_sites(chosen: list[SiteView]) -> None:
    if not 1 <= len(chosen) <= several.MOST:
        raise invalid("body", "site", f"select 1 to {several.MOST} sites")


def _fields(form: "MultiDict[str, str]") -> list[tuple[str, str]]:
    """Return what was typed, for the hidden fields of the next page. The sites are separate."""
    return [(name, text) for name, text in form.items(multi=True) if name not in _BUTTONS | {"site", "once"}]


async def _form_page(visit: Visit, form: "MultiDict[str, str]", failures: Problems = NONE) -> Response:
    sites = await overview.sites(visit.services, visit.caller)
    ids, wanted = set(form.getlist("site")), form.get("find", "").strip().casefold()
    offered = [site for site in sites if site.id not in ids and wanted in site.title.casefold()]
    photo = form.get("photo", "")
    return pages.page(
        "many_posts.html",
        visit=visit,
        form=form,
        kind=post_form.kind_of(form),
        chosen=sorted((site for site in sites if site.id in ids), key=lambda site: site.title),
        offered=sorted(offered, key=lambda site: site.title)[:_MOST_OFFERED],
        matching=len(offered),
        most=several.MOST,
        once=form.get("once") or random_id(visit.services.entropy),
        preview=photo if stored_photos.is_ours(visit.services, photo) else "",
        usage=await overview.usage(visit.services, visit.caller),
        problems=failures,
    )


async def _preview(
    visit: Visit, form: "MultiDict[str, str]", chosen: list[SiteView], once: str, due: tuple[int, str] | None
) -> Response:
    usage = await overview.usage(visit.services, visit.caller)
    return pages.page(
        "many_posts_preview.html",
        visit=visit,
        post=post_form.document(form),
        kind=post_form.kind_of(form),
        chosen=chosen,
        left=max(visit.caller.plan.monthly_posts - usage.posts, 0),
        fields=_fields(form),
        photo=form.get("photo", ""),
        is_ours=stored_photos.is_ours(visit.services, form.get("photo", "")),
        once=once,
        due=due,
    )
