"""The pages of webhooks: the list, one webhook with its settings, and its secret, which is shown once."""

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.json import JsonObject
from profilesvc.contract.webhooks import (
    MOST_RECOVERED,
    DeliveryListQuery,
    WebhookChange,
    WebhookCreate,
    WebhookEntry,
    WebhookRecover,
)
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import channels as channel_words
from profilesvc.dashboard.words import events as event_words
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, iso, parse_iso
from profilesvc.services.notify import deliveries, webhooks

_SIZE = 25
_MINUTES = len("2026-01-05T09:00")


blueprint = Blueprint("webhooks", __name__)
_FORM = TEXTS._replace(secrets=frozenset({"url"}))  # the addresses of some services work like a secret


@view(blueprint, "/webhooks", "POST", _FORM)
async def create(visit: Visit) -> Response:
    form = await request.form
    values: JsonObject = {name: form.get(name, "").strip() for name in ("url", "description")}
    values |= {"types": form.getlist("types"), "format": form.get("format", "")}
    try:
        created = await webhooks.create(visit.services, visit.caller, checked(WebhookCreate, values, "body"))
    except ServiceError as error:
        return await show(visit, form, error)
    if created.secret is None:  # a chat has none
        return pages.redirect(f"{pages.PATH}/webhooks/{created.id}", "webhook-created")
    return pages.page("webhook_secret.html", visit=visit, id=created.id, secret=created.secret, until=None)


@view(blueprint, "/webhooks/<webhook_id>/live")
async def live(visit: Visit, webhook_id: str) -> Response:
    entry = await webhooks.get(visit.services, visit.caller, webhook_id)
    return pages.page("_deliveries.html", visit=visit, webhook=entry, **await _deliveries(visit, entry))


@view(blueprint, "/webhooks/<webhook_id>", "POST", _FORM)
async def change(visit: Visit, webhook_id: str) -> Response:
    form, entry = await request.form, await webhooks.get(visit.services, visit.caller, webhook_id)
    edit = _edit_of(entry).fill(form, {"types": form.getlist("types")})
    try:
        current = {**edit.current, "types": event_words.kinds(entry.types)}
        edit.require_no_conflict(lambda name: current[name])
        if values := edit.changed():
            body = checked(WebhookChange, values, "body")
            await webhooks.change(visit.services, visit.caller, webhook_id, body)
    except ServiceError as error:
        return await one(visit, webhook_id, edit, error)
    return pages.redirect(f"{pages.PATH}/webhooks/{webhook_id}", "saved")


@view(blueprint, "/webhooks/<webhook_id>/switch", "POST")
async def switch(visit: Visit, webhook_id: str) -> Response:
    enabled = (await request.form).get("enabled") == "on"
    await webhooks.change(visit.services, visit.caller, webhook_id, WebhookChange(enabled=enabled))
    return pages.redirect(f"{pages.PATH}/webhooks/{webhook_id}", "enabled" if enabled else "disabled")


@view(blueprint, "/webhooks/<webhook_id>/test", "POST")
async def test(visit: Visit, webhook_id: str) -> Response:
    try:
        queued = await deliveries.test(visit.services, visit.caller, webhook_id)
    except ServiceError as error:
        return await one(visit, webhook_id, error=error)
    return pages.redirect(f"{pages.PATH}/webhooks/{webhook_id}/deliveries/{queued.id}", "test-queued")


@view(blueprint, "/webhooks/<webhook_id>/recover", "POST")
async def recover(visit: Visit, webhook_id: str) -> Response:
    """Send what was missed since a time, which the form has in UTC."""
    since = (await request.form).get("since", "")
    try:
        body = checked(WebhookRecover, {"since": f"{since}{':00' * (len(since) == _MINUTES)}Z"}, "body")
        recovered = await deliveries.recover(visit.services, visit.caller, webhook_id, body)
    except ServiceError as error:
        return await one(visit, webhook_id, error=error, prefix="recover-", since=since)
    return pages.redirect(f"{pages.PATH}/webhooks/{webhook_id}?done=recovered&queued={recovered.queued}")


@view(blueprint, "/webhooks/<webhook_id>/roll", "POST")
async def roll(visit: Visit, webhook_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
        rolled = await webhooks.roll(visit.services, visit.caller, webhook_id)
    except ServiceError as error:
        return await one(visit, webhook_id, error=error, prefix="roll-")
    values: JsonObject = {"id": rolled.id, "secret": rolled.secret, "until": rolled.previous_secret_expires_at}
    return pages.page("webhook_secret.html", visit=visit, **values)


@view(blueprint, "/webhooks/<webhook_id>/delete", "POST")
async def delete(visit: Visit, webhook_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
    except ServiceError as error:
        return await one(visit, webhook_id, error=error, prefix="delete-")
    await webhooks.delete(visit.services, visit.caller, webhook_id)
    return pages.redirect(f"{pages.PATH}/webhooks", "removed")


def _edit_of(entry: WebhookEntry) -> Edit:
    return Edit({"url": entry.url, "description": entry.description, "types": entry.types})


@view(blueprint, "/webhooks")
async def show(visit: Visit, form: "MultiDict[str, str] | None" = None, error: ServiceError | None = None) -> Response:
    """Return the page of webhooks. After an `error`, `form` is what the user entered."""
    form = form or MultiDict()
    listed = await webhooks.list_all(visit.services, visit.caller)
    return pages.page(
        "webhooks.html",
        visit=visit,
        entries=listed.webhooks,
        limit=listed.limit,
        allow_private=visit.services.settings.webhooks.allow_private,
        form=form,
        chosen=form.getlist("types"),
        problems=problems.from_error(error),
    )


@view(blueprint, "/webhooks/<webhook_id>")
async def one(
    visit: Visit,
    webhook_id: str,
    edit: Edit | None = None,
    error: ServiceError | None = None,
    prefix: str = "",
    since: str = "",
) -> Response:
    """Return the page of a webhook. After an `error`, `edit` or `since` is what the user entered."""
    entry = await webhooks.get(visit.services, visit.caller, webhook_id)
    missed_since = parse_iso(entry.failing_since) if entry.failing_since else visit.now - DAY
    return pages.page(
        "webhook.html",
        visit=visit,
        webhook=entry,
        edit=edit or _edit_of(entry),
        since=since or iso(missed_since)[:_MINUTES],
        done=request.args.get("done", ""),
        queued=request.args.get("queued", 0, type=int),
        most_recovered=MOST_RECOVERED,
        problems=problems.from_error(error, prefix),
        **await _deliveries(visit, entry),
    )


async def _deliveries(visit: Visit, entry: WebhookEntry) -> JsonObject:
    """Return a page of deliveries by the state and the position in the query."""
    state = next((name for name in channel_words.DELIVERY_STATES if name == request.args.get("state")), None)
    query = checked(DeliveryListQuery, {"limit": str(_SIZE), "before": request.args.get("before") or None}, "query")
    listed = await deliveries.list_deliveries(visit.services, visit.caller, str(entry.id), query, state=state)
    return {
        "deliveries": listed.deliveries,
        "older": listed.next_before,
        "state": state or "",
        "is_first": query.before is None,
    }
