"""The pages of keys. A secret is shown once, in the response to the form."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from quart import Blueprint, Response, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.alerts import KeyAlertsChange
from profilesvc.contract.audit import AuditQuery
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.keys import KeyDetails, KeyRoll
from profilesvc.dashboard import exports, pages, problems
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.keys import form as key_form
from profilesvc.dashboard.keys import listing as key_list
from profilesvc.dashboard.keys import requests as key_requests
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.dashboard.words import words
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.time import DAY, iso
from profilesvc.services import audit, credentials, key_changes, keys
from profilesvc.services.insight import badges, overview
from profilesvc.services.insight.overview import KeyView
from profilesvc.services.notify import key_alerts
from profilesvc.tokens.signer import random_id

_EVENTS = 30
_MOST_HOURS = 720


blueprint = Blueprint("keys", __name__)


@view(blueprint, "/keys")
async def show(visit: Visit) -> Response:
    wanted = request.args.get("location", "")
    return await _list(visit, {"location": f"locations/{wanted}"} if wanted else {})


@view(blueprint, "/keys/live")
async def live(visit: Visit) -> Response:
    """Return the list as it is now, or nothing if the page shows it already."""
    choices = await overview.choices(visit.services, visit.caller)
    values = await key_list.page_values(visit, key_list.listing_of(request.args), choices)
    if values["seen"] == request.args.get("seen"):
        return Response(status=204, headers={"Cache-Control": "no-store"})
    return pages.page("_keys.html", visit=visit, **values)


@view(blueprint, "/keys.csv")
async def export(visit: Visit) -> Response:
    """Return the keys that the list finds, on all its pages; never a secret."""
    listing = key_list.listing_of(request.args)

    async def rows(visit: Visit) -> AsyncIterator[list[tuple[object, ...]]]:
        choices = await overview.choices(visit.services, visit.caller)
        entries = await key_list.search(visit, listing, choices)
        titles = {choice.name: choice.title for choice in choices}
        yield [key_list.row(key, titles) for key in entries]

    return await exports.table(visit, "keys", key_list.HEADER, rows)


@view(blueprint, "/keys/locations")
async def found_locations(visit: Visit) -> Response:
    """Return the locations that a search for that of a new key finds."""
    choices = await overview.choices(visit.services, visit.caller)
    return pages.page("_locations.html", visit=visit, form=request.args, **key_list.locations(choices, request.args))


@view(blueprint, "/keys", "POST", TEXTS)
async def create(visit: Visit) -> Response:
    form = await request.form
    if form.get("intent") == "find":
        return await _list(visit, form)
    try:
        choices = await overview.choices(visit.services, visit.caller)
        businesses = (await keys.businesses(visit.services, visit.caller)).businesses
        body = key_form.body_of(visit.services, form, choices, businesses)
        once = form_key(form, "form")
        created = await credentials.create_once(visit.services, visit.caller, body, once.value)
    except ServiceError as error:
        return await _list(visit, form, error)
    if isinstance(created, str):
        return pages.redirect(f"{pages.PATH}/keys/{created}", "key_exists")
    return pages.page("secret.html", visit=visit, created=created, new=True)


@view(blueprint, "/keys/<client_id>/roll", "POST")
async def roll(visit: Visit, client_id: str) -> Response:
    form = await request.form
    overlap = form.get("overlap_seconds", type=int)
    try:
        body = checked(KeyRoll, {"overlap_seconds": overlap}, "body")
        problems.require_confirmation(overlap != 0 or "sure" in form)
        created = await credentials.roll(visit.services, visit.caller, client_id, body)
    except ServiceError as error:
        return await one(visit, client_id, error=error, action="leaked" if overlap == 0 else "roll")
    return pages.page("secret.html", visit=visit, created=created, new=False, is_ended=overlap == 0)


@view(blueprint, "/keys/<client_id>/change", "POST", TEXTS)
async def change(visit: Visit, client_id: str) -> Response:
    edit = key_form.edit_of(await keys.get(visit.services, visit.caller, client_id)).fill(await request.form)
    try:
        if body := key_form.change_of(edit):
            await key_changes.change(visit.services, visit.caller, client_id, body)
    except ServiceError as error:
        return await one(visit, client_id, error=error, action="change", edit=edit)
    return pages.redirect(f"{pages.PATH}/keys/{client_id}", "key_changed" if body else "saved")


@view(blueprint, "/keys/<client_id>/end-secret")
async def confirm_end(visit: Visit, client_id: str) -> Response:
    return pages.page("end_secret.html", visit=visit, key=await keys.get(visit.services, visit.caller, client_id))


@view(blueprint, "/keys/<client_id>/end-secret", "POST")
async def end_secret(visit: Visit, client_id: str) -> Response:
    await key_changes.end_previous_secret(visit.services, visit.caller, client_id)
    return pages.redirect(f"{pages.PATH}/keys/{client_id}", "secret_ended")


@view(blueprint, "/keys/<client_id>/deactivate", "POST")
async def deactivate(visit: Visit, client_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
        await keys.deactivate(visit.services, client_id, "user_requested", caller=visit.caller)
    except ServiceError as error:
        return await one(visit, client_id, error=error, action="deactivate")
    return pages.redirect(f"{pages.PATH}/keys/{client_id}", "paused")


@view(blueprint, "/keys/<client_id>/reactivate", "POST")
async def reactivate(visit: Visit, client_id: str) -> Response:
    try:
        await keys.reactivate_own(visit.services, visit.caller, client_id)
    except ServiceError as error:
        return await one(visit, client_id, error=error)
    return pages.redirect(f"{pages.PATH}/keys/{client_id}", "resumed")


@view(blueprint, "/keys/<client_id>/revoke")
async def confirm(visit: Visit, client_id: str) -> Response:
    return pages.page("revoke.html", visit=visit, key=await keys.get(visit.services, visit.caller, client_id))


@view(blueprint, "/keys/<client_id>/revoke", "POST")
async def revoke(visit: Visit, client_id: str) -> Response:
    await keys.revoke(visit.services, visit.caller, client_id)
    return pages.redirect(f"{pages.PATH}/keys", "revoked")


@view(blueprint, "/keys/<client_id>/badge", "POST")
async def badge(visit: Visit, client_id: str) -> Response:
    form = await request.form
    is_on = form.get("shown") == "on"
    try:
        problems.require_confirmation("sure" in form or not await _has_badge(visit, client_id))
        secret = await badges.show(visit.services, visit.caller, client_id, is_on)
    except ServiceError as error:
        return await one(visit, client_id, error=error, action=f"badge-{'on' if is_on else 'off'}")
    if secret is None:
        return pages.redirect(f"{pages.PATH}/keys/{client_id}", "badge-off")
    return await one(visit, client_id, f"{visit.services.settings.base_url}{pages.PATH}/badge/{secret}")


@view(blueprint, "/keys/<client_id>/grace", "POST", TEXTS)
async def grace(visit: Visit, client_id: str) -> Response:
    edit = None
    try:
        edit = key_form.grace_of(await key_alerts.get(visit.services, visit.caller, client_id))
        edit.fill(await request.form).require_no_conflict()
        if edit.changed():
            change = checked(KeyAlertsChange, {"grace_seconds": round(_hours(edit.inputs["grace"]) * 3600)}, "body")
            await key_alerts.change(visit.services, visit.caller, client_id, change)
    except ServiceError as error:
        return await one(visit, client_id, error=error, action="alerts", edit=edit)
    return pages.redirect(f"{pages.PATH}/keys/{client_id}#alerts", "saved")


@view(blueprint, "/keys/<client_id>/snooze", "POST")
async def snooze(visit: Visit, client_id: str) -> Response:
    """Snooze the alerts of a key for days; 0 ends it."""
    days = (await request.form).get("days", -1, type=int)
    try:
        if days not in (0, *words.SNOOZE_DAYS):
            raise invalid("body", "snoozed_until", "select one of the times")
        until = iso(visit.now + days * DAY) if days else None
        await key_alerts.change(visit.services, visit.caller, client_id, KeyAlertsChange(snoozed_until=until))
    except ServiceError as error:
        return await one(visit, client_id, error=error, action="alerts")
    return pages.redirect(f"{pages.PATH}/keys/{client_id}#alerts", "saved")


def _hours(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (hours := float(text)) <= _MOST_HOURS:
            return hours
    raise invalid("body", "grace_seconds", f"must be a number of hours from 0 to {_MOST_HOURS}")


async def _list(visit: Visit, form: Mapping[str, str], error: ServiceError | None = None) -> Response:
    """Return the page of keys. After an `error`, `form` is what the user entered."""
    choices = await overview.choices(visit.services, visit.caller)
    return pages.page(
        "keys.html",
        visit=visit,
        businesses=(await keys.businesses(visit.services, visit.caller)).businesses,
        form=form,
        once=form.get("once") or random_id(visit.services.entropy),
        problems=problems.from_error(error),
        can_create=any(choice.obstacle is None for choice in choices),
        asks_business=any(choice.obstacle is None and choice.business_id is None for choice in choices),
        unavailable=key_list.unavailable(choices, form),
        **key_list.locations(choices, form),
        **await key_list.page_values(visit, key_list.listing_of(request.args), choices),
    )


async def _site(visit: Visit, key: KeyDetails) -> str | None:
    """Return the name of the site of a key, or None if its location is disconnected."""
    try:
        return await visit.title(await visit.location(key.assigned_location_id))
    except ServiceError as error:
        if error.kind is not NOT_FOUND:
            raise
        return None


async def _live(visit: Visit, client_id: str) -> KeyView | None:
    keys_of_user = await overview.keys_of(visit.services, visit.caller)
    return next((key for key in keys_of_user if key.row.client_id == client_id), None)


async def _has_badge(visit: Visit, client_id: str) -> bool:
    live = await _live(visit, client_id)
    return live is not None and bool(live.row.has_badge)


@view(blueprint, "/keys/<client_id>")
async def one(
    visit: Visit,
    client_id: str,
    badge_url: str | None = None,
    error: ServiceError | None = None,
    action: str = "",
    edit: Edit | None = None,
) -> Response:
    """Return the page of a key. `badge_url` is shown once, after the badge was switched on.

    `action` is the form that failed with `error`; the ids of its inputs start with it. `edit` is that form, if it was
    typed.
    """
    key, live = await keys.get(visit.services, visit.caller, client_id), await _live(visit, client_id)
    alerts = None if live is None else await key_alerts.get(visit.services, visit.caller, client_id)
    grace = None if alerts is None else key_form.grace_of(alerts)
    trail = await audit.key_trail(visit.services, visit.caller, client_id, AuditQuery(limit=_EVENTS))
    return pages.page(
        "key.html",
        visit=visit,
        key=key,
        site=await _site(visit, key),
        edit=edit if edit and action == "change" else key_form.edit_of(key),
        live=live,
        alerts=alerts,
        grace=edit if edit and action == "alerts" else grace,
        events=trail.events,
        badge_url=badge_url,
        problems=problems.from_error(error, f"{action}-"),
        **await key_requests.usage_of(visit, client_id),
    )
