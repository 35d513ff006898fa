"""The page of an owner's templates of replies."""

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.html_forms import TEXTS
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.posts import form as post_form
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services.reviews import reply_templates

_PATH = "/templates"


blueprint = Blueprint("reply_templates", __name__)


@view(blueprint, _PATH, "POST", TEXTS)
async def save(visit: Visit) -> Response:
    form = await request.form
    name, text = form.get("name", ""), post_form.one_line_ends(form.get("comment", ""))
    try:
        await reply_templates.save(visit.services, visit.caller, name, text)
    except ServiceError as error:
        return await show(visit, form, error)
    return pages.redirect(f"{pages.PATH}{_PATH}", "template")


@view(blueprint, f"{_PATH}/<template_id>/delete", "POST")
async def delete(visit: Visit, template_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
        await reply_templates.delete(visit.services, visit.caller, template_id)
    except ServiceError as error:
        return await show(visit, None, error, f"delete-{template_id}-")
    return pages.redirect(f"{pages.PATH}{_PATH}", "removed")


@view(blueprint, _PATH)
async def show(
    visit: Visit, form: "MultiDict[str, str] | None" = None, error: ServiceError | None = None, prefix: str = ""
) -> Response:
    return pages.page(
        "templates.html",
        visit=visit,
        templates=await reply_templates.listing(visit.services, visit.caller),
        form=form or MultiDict(),
        problems=problems.from_error(error, prefix),
    )
