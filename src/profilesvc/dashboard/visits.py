"""Visits of signed-in users: the session is a user token in a cookie, and forms have a signed token."""

import contextlib
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from quart import Blueprint, Response, request

from profilesvc.api.parsing import idempotency_key
from profilesvc.api.request import AwaitedBody, bearer_token, current_services, quart_request, receive
from profilesvc.api.uploads import Upload
from profilesvc.contract.common import location_name
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import cookies, pages
from profilesvc.domain.domains import parse_origin
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.request import current_request
from profilesvc.limits.limiter import Kind
from profilesvc.services import access, locations, origins
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.services.idempotency import IdempotencyKey
from profilesvc.tokens.seals import Seal

_LOCAL = re.compile(r"/dashboard(?:/[A-Za-z0-9_/-]*)?(?:\?[A-Za-z0-9_.~%+=&/-]{0,1000})?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a user who has signed in. `token` is the session: a user token."""

    services: Services
    caller: Caller
    token: str

    @property
    def csrf(self) -> str:
        """The value that every form contains. Only pages of this session have it."""
        return self._seal.seal("form")

    def is_own_form(self, csrf: str) -> bool:
        """Return whether a form with this value comes from a page of this session."""
        return self._seal.unseal(csrf) == "form"

    @property
    def _seal(self) -> Seal:
        return Seal(self.services.signer.keyring, f"dashboard form\n{self.token}", self.now)

    @property
    def now(self) -> int:
        """The current time in milliseconds."""
        return self.services.clock.now()

    async def location(self, location: str) -> AllowedLocation:
        """Return the location of a path, if it is the user's.

        Raises:
            ServiceError: VALIDATION_ERROR, NOT_FOUND.
        """
        name = of_path("locationId", location_name, location)
        return await access.require_location(self.services, self.caller, name)

    async def title(self, location: AllowedLocation) -> str:
        """Return the name of the site."""
        profile = (await locations.load(self.services, location)).profile
        return str(json.loads(profile or "{}").get("title") or location.name)


View = Callable[..., Coroutine[object, None, Response]]


def local(path: str) -> str:
    """Return the path, which may have a query, if it is in the dashboard, else the dashboard's first page."""
    return path if _LOCAL.match(path) and "//" not in path else pages.PATH


def of_path(parameter: str, canonical: Callable[..., str], *values: str) -> str:
    """Return the canonical form of a parameter of the path.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    try:
        return canonical(*values)
    except ValueError as error:
        raise invalid("path", parameter, str(error)) from None


def form_key(form: Mapping[str, str], sent: object) -> IdempotencyKey:
    """Return the idempotency key of a form: the value of its field `once`, and the fingerprint of what it sends.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    key = idempotency_key([[form.get("once", "")]], sent)
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


def view(blueprint: Blueprint, rule: str, method: str = "GET", upload: Upload | None = None) -> Callable[[View], View]:
    """Declare a page (GET) or an action (POST) for signed-in users. Other users are redirected to the sign-in.

    `upload` is the rule for a form with a file.
    """

    def register(handler: View) -> View:
        async def serve(**path: object) -> Response:
            try:
                visit = await admit_visit()
                if upload is not None:
                    visit = await _receive_upload(visit, upload)
            except ServiceError as error:
                if not pages.is_signed_out(error):
                    raise
                return _sign_in()
            if method == "GET":
                return await handler(visit, **path)
            await _require_own_form(visit)
            return await visit.services.background.finish(handler(visit, **path))

        blueprint.add_url_rule(rule, handler.__name__, serve, methods=[method])
        return handler

    return register


async def _receive_upload(visit: Visit, upload: Upload) -> Visit:
    """Read a form with a file, which may take minutes; the session may have ended meanwhile."""
    require_own_origin(visit.services)
    incoming = quart_request()
    body = cast(AwaitedBody, incoming.body)
    body.allow(upload)
    incoming.max_content_length = upload.largest
    await body.read(upload.largest)
    if not body.was_late:
        return visit
    visit.services.storage.renew()
    return await admit_visit(again=True)


def _sign_in() -> Response:
    path = pages.here() or pages.PATH
    ended = "" if cookies.get(current_services(), cookies.SESSION) is None else "&ended=1"
    return pages.redirect(f"{pages.PATH}/sign-in?next={quote(local(path), safe='/')}{ended}")


async def _require_own_form(visit: Visit) -> None:
    """Reject a form that is not from one of our pages, even if it is sent with a valid cookie."""
    require_own_origin(visit.services)
    if not visit.is_own_form((await request.form).get("csrf", "")):
        raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "This form is not from your session. Reload the page.")


def require_own_origin(services: Services) -> None:
    """Reject a request that a page of another origin made.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    sent, own = request.headers.get("Origin"), origins.own(services.settings)
    is_own = sent is None or (own is not None and parse_origin(sent) == own)
    if not is_own or request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "Forms are accepted only from the dashboard's own pages.")
