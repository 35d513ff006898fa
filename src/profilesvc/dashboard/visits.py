"""Visits of signed-in users: the session is a user token in a cookie, and forms have a signed token."""

import contextlib
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from quart import Blueprint, Response, request

from profilesvc.api import html_forms
from profilesvc.api.html_forms import BUTTONS, FormRule
from profilesvc.api.parsing import idempotency_key
from profilesvc.api.request import AwaitedBody, bearer_token, current_services, quart_request, receive
from profilesvc.contract.common import location_name
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import cookies, form_tokens, pages, returning
from profilesvc.domain.domains import parse_origin
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.request import current_request
from profilesvc.limits.limiter import Kind
from profilesvc.services import access, locations, origins
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.services.idempotency import IdempotencyKey


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a user who has signed in. `token` is the session: a user token."""

    services: Services
    caller: Caller
    token: str

    @property
    def csrf(self) -> str:
        """The value that every form contains. Only pages of this session have it."""
        return form_tokens.make(self.services, self.caller.owner_id, self.token)

    def require_own_form(self, csrf: str) -> None:
        """Reject a form that is not from a page of this session, even if it is sent with a valid cookie.

        Raises:
            ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
        """
        form_tokens.require(self.services, csrf, self.caller.owner_id, self.token)

    @property
    def now(self) -> int:
        """The current time in milliseconds."""
        return self.services.clock.now()

    async def location(self, location: str) -> AllowedLocation:
        """Return the location of a path, if it is the user's.

        Raises:
            ServiceError: VALIDATION_ERROR, NOT_FOUND.
        """
        name = path_value("locationId", location_name, location)
        return await access.require_location(self.services, self.caller, name)

    async def title(self, location: AllowedLocation) -> str:
        profile = (await locations.load(self.services, location)).profile
        return str(json.loads(profile or "{}").get("title") or location.name)


View = TypeVar("View", bound=Callable[..., Coroutine[object, None, Response]])


def path_value(parameter: str, canonical: Callable[..., str], *values: str) -> str:
    """Return the canonical form of a parameter of the path.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    try:
        return canonical(*values)
    except ValueError as error:
        raise invalid("path", parameter, str(error)) from None


def form_key(form: Mapping[str, str], document: object) -> IdempotencyKey:
    """Return the idempotency key of a form: the value of its field `once`, and the fingerprint of what it sends.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    key = idempotency_key([[form.get("once", "")]], document)
    assert key is not None, "one value was given"
    return key


async def admit_visit(*, again: bool = False) -> Visit:
    """Admit the request of the session's user; `again`, without counting it, after its body was late.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if there is no session or it has ended.
    """
    services = current_services()
    token = cookies.get(services, cookies.SESSION)
    kind: Kind = "reads" if request.method in {"GET", "HEAD"} else "writes"

    async def admit(_is_first: bool) -> Caller:
        proof = bearer_token([f"Bearer {token}"] if token else [])
        return await access.admit(services, current_request(), proof, access.SESSION, None if again else kind)

    caller, _ = await receive(services, quart_request(), None, admit)
    assert caller is not None, "`admit` returns one"
    visit = Visit(services, caller, token or "")
    cast(JsonObject, request.scope)[pages.VISIT] = visit
    return visit


async def admit_if_signed_in() -> Visit | None:
    """Admit the user of the session, if there is one, so that the page or the error page has the navigation."""
    with contextlib.suppress(ServiceError):
        return await admit_visit()
    return None


async def counted_by_address() -> Services:
    """Return the services, after the client was counted by its address, because it may have no session."""
    services = current_services()
    await receive(services, quart_request(), None, None)
    return services


def view(blueprint: Blueprint, rule: str, method: str = "GET", form: FormRule = BUTTONS) -> Callable[[View], View]:
    """Declare a page (GET) or an action (POST) for signed-in users. Other users are redirected to the sign-in.

    `form` is the rule for the form of an action.
    """

    def register(handler: View) -> View:
        async def serve(**path: object) -> Response:
            if method == "POST":
                require_own_origin(current_services())
            try:
                visit = await admit_visit()
                if method == "POST":
                    visit = await _with_form(visit, form)
            except ServiceError as error:
                if not pages.is_signed_out(error):
                    raise
                return await returning.sign_in(form if method == "POST" else None)
            if method == "GET":
                return await returning.show(visit.services, visit.caller, handler(visit, **path))
            return await visit.services.background.finish(handler(visit, **path))

        blueprint.add_url_rule(rule, handler.__name__, serve, methods=[method])
        return handler

    return register


async def _with_form(visit: Visit, rule: FormRule) -> Visit:
    """Read the form, which may take minutes if it has a file; the session may have ended meanwhile."""
    incoming = quart_request()
    await html_forms.read(incoming, rule, visit.require_own_form)
    if not cast(AwaitedBody, incoming.body).was_late:
        return visit
    visit.services.storage.renew()
    return await admit_visit(again=True)


def require_own_origin(services: Services) -> None:
    """Reject a request that a page of another origin made.

    A browser with `Referrer-Policy: no-referrer`, which a proxy may add, sends `Origin: null` with our own forms, and
    reports in `Sec-Fetch-Site` that they are ours.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    own = origins.own(services.settings)
    if site == "same-origin" and origin == "null":
        current_request().origin_header = None
        return
    is_own = origin is None or (own is not None and parse_origin(origin) == own)
    if not is_own or site not in {None, "same-origin", "none"}:
        address = f"{services.settings.base_url}{pages.PATH}"
        raise ServiceError(
            AUTH_INSUFFICIENT_PERMISSIONS,
            f"Forms are accepted only from the pages of {address}. Open the dashboard at this address.",
        )
