"""Keys: the list with a form for a new one; what shows a secret shows it once, in the answer to the form."""

from typing import Any

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.parsing import checked
from profilesvc.contract.audit import AuditQuery
from profilesvc.contract.keys import KeyCreate, KeyListQuery, KeyRoll
from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import audit, badges, credentials, keys, overview

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
            made = await credentials.create(here.services, here.caller, await _wanted(here, form))
        except ServiceError as error:
            if error.kind.status >= 500:
                raise
            return await _list(here, form, error)
        return pages.page("secret.html", visit=here, made=made, new=True)

    @view(blueprint, "/keys/<client_id>")
    async def one(here: Visit, client_id: str) -> Response:
        return await _one(here, client_id)

    @view(blueprint, "/keys/<client_id>/roll", "POST")
    async def roll(here: Visit, client_id: str) -> Response:
        overlap = (await request.form).get("overlap_seconds", type=int)
        body = checked(KeyRoll, {"overlap_seconds": overlap}, "body")
        made = await credentials.roll(here.services, here.caller, client_id, body)
        return pages.page("secret.html", visit=here, made=made, new=False)

    _register_switches(blueprint)


def _register_switches(blueprint: Blueprint) -> None:
    @view(blueprint, "/keys/<client_id>/deactivate", "POST")
    async def deactivate(here: Visit, client_id: str) -> Response:
        await keys.deactivate(here.services, client_id, "user_requested", caller=here.caller)
        return pages.see(f"{pages.PATH}/keys/{client_id}")

    @view(blueprint, "/keys/<client_id>/reactivate", "POST")
    async def reactivate(here: Visit, client_id: str) -> Response:
        await keys.reactivate_own(here.services, here.caller, client_id)
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
        shown = (await request.form).get("shown") == "on"
        secret = await badges.show(here.services, here.caller, client_id, shown)
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
        error=error,
        with_revoked=revoked,
        older=entries.next_before,
    )


async def _wanted(here: Visit, form: "MultiDict[str, str]") -> KeyCreate:
    """The form as the API's body; a location that is in a business brings its business along."""
    location = form.get("location", "")
    choices = await overview.choices(here.services, here.caller)
    business = next((choice.business_id for choice in choices if choice.name == location), None)
    domains = [part for part in form.get("allowed_domains", "").replace(",", " ").split() if part]
    values: dict[str, Any] = {
        "name": form.get("name", ""),
        "business_id": business or form.get("business_id", type=int),
        "assigned_location_id": location,
        "primary_domain": form.get("primary_domain", "").strip() or None,
        "allowed_domains": domains or None,
        "permissions": form.getlist("permissions"),
    }
    if day := form.get("expires_on", ""):
        values["expires_at"] = f"{day}T23:59:59Z"
    return checked(KeyCreate, values, "body")


async def _own(here: Visit, client_id: str) -> Any:
    """A key of the user, live or not. NOT_FOUND."""
    return await keys.get(here.services, here.caller, client_id)


async def _one(here: Visit, client_id: str, badge_url: str | None = None) -> Response:
    """The page of a key; `badge_url` is told once, when the badge was switched on."""
    key = await _own(here, client_id)
    live = [seen for seen in await overview.keys_of(here.services, here.caller) if seen.row.client_id == client_id]
    trail = await audit.of_key(here.services, here.caller, client_id, AuditQuery(limit=_EVENTS))
    return pages.page(
        "key.html", visit=here, key=key, live=live[0] if live else None, events=trail.events, badge_url=badge_url
    )
