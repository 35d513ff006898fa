"""Keys: the list with a form for a new one; what shows a secret shows it once, in the answer to the form."""

from typing import Any

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.audit import AuditQuery
from profilesvc.contract.keys import KeyListQuery, KeyRoll
from profilesvc.dashboard import key_form, pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import audit, badges, credentials, keys, overview
from profilesvc.services.overview import KeyView

_EVENTS = 30


def register(blueprint: Blueprint) -> None:
    """Declare them."""

    @view(blueprint, "/keys")
    async def show(here: Visit) -> Response:
        return await _list(here, {"location": f"locations/{request.args.get('location', '')}"})

    @view(blueprint, "/keys", "POST")
    async def create(here: Visit) -> Response:
        form = await request.form
        try:
            choices = await overview.choices(here.services, here.caller)
            body = key_form.wanted(here.services, form, choices)
            made = await credentials.create(here.services, here.caller, body)
        except ServiceError as error:
            return await _list(here, form, error)
        return pages.page("secret.html", visit=here, made=made, new=True)

    @view(blueprint, "/keys/<client_id>")
    async def one(here: Visit, client_id: str) -> Response:
        return await _one(here, client_id)

    @view(blueprint, "/keys/<client_id>/roll", "POST")
    async def roll(here: Visit, client_id: str) -> Response:
        await _own(here, client_id)
        form = await request.form
        overlap = form.get("overlap_seconds", type=int)
        try:
            body = checked(KeyRoll, {"overlap_seconds": overlap}, "body")
            problems.require_sure(overlap != 0 or "sure" in form)
            made = await credentials.roll(here.services, here.caller, client_id, body)
        except ServiceError as error:
            return await _one(here, client_id, error=error, action="leaked" if overlap == 0 else "roll")
        return pages.page("secret.html", visit=here, made=made, new=False)

    _register_switches(blueprint)


def _register_switches(blueprint: Blueprint) -> None:
    @view(blueprint, "/keys/<client_id>/deactivate", "POST")
    async def deactivate(here: Visit, client_id: str) -> Response:
        await _own(here, client_id)
        try:
            problems.require_sure("sure" in await request.form)
            await keys.deactivate(here.services, client_id, "user_requested", caller=here.caller)
        except ServiceError as error:
            return await _one(here, client_id, error=error, action="deactivate")
        return pages.see(f"{pages.PATH}/keys/{client_id}")

    @view(blueprint, "/keys/<client_id>/reactivate", "POST")
    async def reactivate(here: Visit, client_id: str) -> Response:
        try:
            await keys.reactivate_own(here.services, here.caller, client_id)
        except ServiceError as error:
            return await _one(here, client_id, error=error)
        return pages.see(f"{pages.PATH}/keys/{client_id}")

    @view(blueprint, "/keys/<client_id>/revoke")
    async def confirm(here: Visit, client_id: str) -> Response:
        return pages.page("revoke.html", visit=here, key=await _own(here, client_id))

    @view(blueprint, "/keys/<client_id>/revoke", "POST")
    async def revoke(here: Visit, client_id: str) -> Response:
        await keys.revoke(here.services, here.caller, client_id)
        return pages.see(f"{pages.PATH}/keys")

    @view(blueprint, "/keys/<client_id>/badge", "POST")
    async def badge(here: Visit, client_id: str) -> Response:
        await _own(here, client_id)
        form = await request.form
        shown = form.get("shown") == "on"
        try:
            problems.require_sure("sure" in form or not await _has_badge(here, client_id))
            secret = await badges.show(here.services, here.caller, client_id, shown)
        except ServiceError as error:
            return await _one(here, client_id, error=error, action=f"badge-{'on' if shown else 'off'}")
        if secret is None:
            return pages.see(f"{pages.PATH}/keys/{client_id}")
        return await _one(here, client_id, f"{here.services.settings.base_url}{pages.PATH}/badge/{secret}")


async def _list(here: Visit, form: Any, error: ServiceError | None = None) -> Response:
    """The page of keys; `form` fills the form in again, `error` says why it did not do."""
    revoked, before = "revoked" in request.args, request.args.get("before") or None
    asked = {"include_revoked": str(revoked).lower(), "before": before}
    entries = await keys.list_all(here.services, here.caller, checked(KeyListQuery, asked, "query"))
    choices = await overview.choices(here.services, here.caller)
    return pages.page(
        "keys.html",
        200 if error is None else error.kind.status,
        visit=here,
        keys=entries.credentials,
        titles={choice.name: choice.title for choice in choices},
        choices=choices,
        businesses=(await keys.businesses(here.services, here.caller)).businesses,
        form=form,
        problems=problems.NONE if error is None else problems.of(error),
        with_revoked=revoked,
        older=entries.next_before,
    )


async def _own(here: Visit, client_id: str) -> Any:
    """A key of the user, live or not. NOT_FOUND."""
    return await keys.get(here.services, here.caller, client_id)


async def _live(here: Visit, client_id: str) -> KeyView | None:
    found = await overview.keys_of(here.services, here.caller)
    return next((seen for seen in found if seen.row.client_id == client_id), None)


async def _has_badge(here: Visit, client_id: str) -> bool:
    live = await _live(here, client_id)
    return live is not None and bool(live.row.has_badge)


async def _one(
    here: Visit, client_id: str, badge_url: str | None = None, error: ServiceError | None = None, action: str = ""
) -> Response:
    """The page of a key; `badge_url` is shown once, when the badge was switched on.

    `error` is the problem with `action`, which is the prefix of the inputs of its form.
    """
    key = await _own(here, client_id)
    trail = await audit.of_key(here.services, here.caller, client_id, AuditQuery(limit=_EVENTS))
    return pages.page(
        "key.html",
        200 if error is None else error.kind.status,
        visit=here,
        key=key,
        live=await _live(here, client_id),
        events=trail.events,
        badge_url=badge_url,
        problems=problems.NONE if error is None else problems.of(error, f"{action}-"),
    )
