"""The pages of connections: the owner's logins at the provider, their locations, and connect links."""

import re
from urllib.parse import quote

from quart import Blueprint, Response, request
from werkzeug.datastructures import MultiDict

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.provider_connections import ProviderConnectionImport
from profilesvc.dashboard import cookies, exports, pages, problems
from profilesvc.dashboard.visits import Visit, admit_if_signed_in, counted_by_address, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import keys
from profilesvc.services.context import Services
from profilesvc.services.logins import consent as provider_consent
from profilesvc.services.logins import export as provider_export
from profilesvc.services.logins import logins
from profilesvc.services.logins.consent import STATE_MS, Begun

blueprint = Blueprint("connections", __name__)
_NUMBER = re.compile("[0-9]{1,18}", re.ASCII)
_LIST, _ONE = "/connections", "/connections/<connection_id>"
_IMPORT = TEXTS._replace(fields=1_100)  # a login may reach that many locations


@view(blueprint, _LIST)
async def show(visit: Visit, link: str | None = None) -> Response:
    listed = await logins.list_all(visit.services, visit.caller)
    problem = None if visit.services.provider.consent.is_configured else provider_consent.NO_CLIENT
    return pages.page("connections.html", visit=visit, connections=listed.connections, link=link, problem=problem)


@view(blueprint, f"{_LIST}/start")
async def start(visit: Visit) -> Response:
    """Send the browser to the provider. It is a link, because the policy of our pages forbids forms that leave."""
    begun = provider_consent.begin(visit.services, visit.caller.owner_id, in_browser=True)
    return _redirect(visit.services, begun)


def _redirect(services: Services, begun: Begun) -> Response:
    response = pages.redirect(begun.url)
    cookies.put(response, services, cookies.CONSENT, begun.cookie, STATE_MS // 1000)
    return response


@view(blueprint, f"{_LIST}/links", "POST")
async def link(visit: Visit) -> Response:
    """Show a connect link once."""
    return await show(visit, provider_consent.new_link(visit.services, visit.caller).url)


@blueprint.get(f"{_LIST}/link/<link>")
async def asked(link: str) -> Response:
    """Show who asks and for what. Programs that check links follow this one, so that it uses nothing up."""
    services = await counted_by_address()
    return pages.page(
        "connect_link.html", link=link, asking=await provider_consent.link_owner(services, link), done=False
    )


@blueprint.get(f"{_LIST}/link/<link>/start")
async def start_by_link(link: str) -> Response:
    """Send the browser to the provider, if it comes from the page that shows who asks."""
    services = await counted_by_address()
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return pages.redirect(f"{pages.PATH}{_LIST}/link/{quote(link, safe='')}")
    return _redirect(services, await provider_consent.begin_by_link(services, link))


@blueprint.get(f"{_LIST}/callback")
async def callback() -> Response:
    """Connect the login that has consented, in the browser that was sent to the provider."""
    visit = await admit_if_signed_in()
    services = visit.services if visit else await counted_by_address()
    cookie, signed_in = cookies.get(services, cookies.CONSENT), visit.caller.owner_id if visit else None
    work = provider_consent.finish(services, request.args.to_dict(), cookie, signed_in)
    attempt = await services.background.finish(work)
    response = pages.page("connect_link.html", asking=None, done=True)
    if not attempt.link:
        response = pages.redirect(f"{pages.PATH}{_LIST}", "connected")
    cookies.remove(response, services, cookies.CONSENT)
    return response


@view(blueprint, _ONE)
async def one(
    visit: Visit,
    connection_id: str,
    error: ServiceError | None = None,
    done: object = None,
    form: "MultiDict[str, str] | None" = None,
) -> Response:
    """Return the page of a connection. It is shown without its locations if the provider does not respond.

    After an `error` of the import, `form` is what the user entered.
    """
    services, caller = visit.services, visit.caller
    entry = await logins.summary(services, caller, connection_id)
    detail, failure = None, None
    try:
        detail = await logins.get(services, caller, connection_id)
    except ServiceError as failed:
        failure = failed
        entry = await logins.summary(services, caller, connection_id)
    wanted, form = request.args.get("search", ""), form or MultiDict()
    accounts, text = [] if detail is None else detail.accounts, wanted.casefold()
    every_location = [location for account in accounts for location in account.locations]
    matching = [each for each in every_location if text in f"{each.title} {each.address}".casefold()]
    return pages.page(
        "connection.html",
        visit=visit,
        connection=entry,
        found=sorted(matching, key=lambda each: (each.title.casefold(), each.name)),
        failure=failure,
        search=wanted,
        everything="all" in request.args,
        businesses=(await keys.businesses(services, caller)).businesses,
        done=done,
        form=form,
        chosen=form.getlist("locations"),
        problems=problems.from_error(error),
    )


@view(blueprint, f"{_ONE}/import", "POST", _IMPORT)
async def import_chosen(visit: Visit, connection_id: str) -> Response:
    form = await request.form
    business = form.get("business_id", "")
    values = {
        "locations": form.getlist("locations"),
        "business_id": int(business) if _NUMBER.fullmatch(business) else business or None,
        "business_name": form.get("business_name", "").strip() or None,
    }
    try:
        problems.require_confirmation(bool(values["locations"]))
        body = checked(ProviderConnectionImport, values, "body")
        done = await logins.import_locations(visit.services, visit.caller, connection_id, body)
    except ServiceError as error:
        return await one(visit, connection_id, error, form=form)
    return await one(visit, connection_id, done=done)


@view(blueprint, f"{_ONE}/data.json")
async def export(visit: Visit, connection_id: str) -> Response:
    """Return a copy of the data of a login to download."""
    copy = await provider_export.export(visit.services, visit.caller, connection_id)
    return await exports.json_file(visit, f"login-{copy.connection.id}", copy.model_dump(mode="json"))


@view(blueprint, f"{_ONE}/disconnect", "POST")
async def disconnect(visit: Visit, connection_id: str) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
        await logins.disconnect(visit.services, visit.caller, connection_id)
    except ServiceError as error:
        return await one(visit, connection_id, error)
    return pages.redirect(f"{pages.PATH}{_LIST}", "disconnected")
