"""The pages of e-mail alerts: the addresses, and what each one receives."""

from quart import Blueprint, Response, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.alerts import AlertChange, AlertCreate
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.notify import alert_form
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services.insight import overview
from profilesvc.services.notify import alerts

_DONE = ("added", "sent", "saved")  # what the pages confirm: an argument with the id of the address


blueprint = Blueprint("alerts", __name__)


@view(blueprint, "/alerts", "POST", TEXTS)
async def create(visit: Visit) -> Response:
    """Add the address of the form, or without one that of the login."""
    form = await request.form
    values: JsonObject = {"time_zone": alert_form.zone_or_utc(form.get("time_zone", ""))}
    if "address" in form:
        values["address"] = form["address"].strip()
    try:
        added = await alerts.create(visit.services, visit.caller, checked(AlertCreate, values, "body"))
    except ServiceError as error:
        return await show(visit, form.get("address", ""), error)
    return pages.redirect(f"{pages.PATH}/alerts?added={added.id}")


@view(blueprint, "/alerts/<alert_id>", "POST", TEXTS)
async def change(visit: Visit, alert_id: str) -> Response:
    entry = await alerts.get(visit.services, visit.caller, alert_id)
    edit = alert_form.filled(alert_form.edit_of(entry), await request.form)
    titles = {site.name: site.title for site in await overview.choices(visit.services, visit.caller)}
    try:
        if body := alert_form.change_of(edit, titles):
            await alerts.change(visit.services, visit.caller, alert_id, body)
    except ServiceError as error:
        return await one(visit, alert_id, edit, error)
    return pages.redirect(f"{pages.PATH}/alerts?saved={alert_id}")


@view(blueprint, "/alerts/<alert_id>/test", "POST")
async def test(visit: Visit, alert_id: str) -> Response:
    await alerts.get(visit.services, visit.caller, alert_id)
    try:
        await alerts.test(visit.services, visit.caller, alert_id)
    except ServiceError as error:
        return await show(visit, error=error)
    return pages.redirect(f"{pages.PATH}/alerts?sent={alert_id}")


@view(blueprint, "/alerts/<alert_id>/switch", "POST")
async def switch(visit: Visit, alert_id: str) -> Response:
    enabled = (await request.form).get("enabled") == "on"
    await alerts.get(visit.services, visit.caller, alert_id)
    try:
        await alerts.change(visit.services, visit.caller, alert_id, AlertChange(enabled=enabled))
    except ServiceError as error:
        return await show(visit, error=error)
    return pages.redirect(f"{pages.PATH}/alerts?added={alert_id}")


@view(blueprint, "/alerts/<alert_id>/delete", "POST")
async def delete(visit: Visit, alert_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
    except ServiceError as error:
        return await one(visit, alert_id, error=error, prefix="delete-")
    await alerts.delete(visit.services, visit.caller, alert_id)
    return pages.redirect(f"{pages.PATH}/alerts", "removed")


@view(blueprint, "/alerts")
async def show(visit: Visit, typed: str = "", error: ServiceError | None = None) -> Response:
    """Return the page of addresses. After an `error`, `typed` is the address that the user entered."""
    settings, entries = visit.services.settings, (await alerts.list_all(visit.services, visit.caller)).alerts
    _, email = await overview.person(visit.services, visit.caller)
    return pages.page(
        "alerts.html",
        visit=visit,
        entries=entries,
        failures=await alerts.failures(visit.services, visit.caller),
        email=email,
        is_on=any(entry.address.lower() == email.lower() for entry in entries),
        done={name: str(request.args.get(name, "")) for name in _DONE},
        sends=settings.mail.sends(settings.production),
        to_files=not settings.production and not settings.mail.url.get_secret_value(),
        typed=typed,
        problems=problems.from_error(error),
    )


@view(blueprint, "/alerts/<alert_id>")
async def one(
    visit: Visit, alert_id: str, edit: Edit | None = None, error: ServiceError | None = None, prefix: str = ""
) -> Response:
    """Return the page of an address. After an `error`, `edit` is what the user entered."""
    entry = await alerts.get(visit.services, visit.caller, alert_id)
    _, email = await overview.person(visit.services, visit.caller)
    edit = edit or alert_form.edit_of(entry)
    return pages.page(
        "alert.html",
        visit=visit,
        entry=entry,
        failure=(await alerts.failures(visit.services, visit.caller)).get(entry.id),
        is_own=entry.address.lower() == email.lower(),
        edit=edit,
        zones=alert_form.zones(edit.inputs["time_zone"]),
        sites=await overview.choices(visit.services, visit.caller),
        problems=problems.from_error(error, prefix),
    )
