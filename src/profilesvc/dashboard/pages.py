"""Making pages: templates with everything escaped, and the headers that keep a page to itself."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from quart import Response, request

from profilesvc.api.failures import headers_of, refusal
from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.dashboard import problems, values, words
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current
from profilesvc.domain.world import iso

PATH = "/dashboard"
VISIT = "profilesvc.visit"  # where a request's scope keeps who is visiting, for a page of an error
FRAGMENT = "X-Fragment"  # sent by live.js, which asks for a part of a page
# No script or style but the files of our own; nothing is loaded from or sent to anywhere else.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# With `no-referrer` browsers would send `Origin: null` with our own forms.
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@cache
def _templates() -> Environment:
    """Not Quart's own, which renders as a coroutine: several times slower for a page of hundreds of rows."""
    made = Environment(
        loader=PackageLoader("profilesvc.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        iso=iso, utc=words.utc, exactly=words.exactly, ago=words.ago, field=values.field, event=words.event
    )
    made.globals.update(words=words, columns=values.columns)
    return made


def text(template: str, **shown: Any) -> str:
    """Render a template; `visit` is None if no user is signed in."""
    return _templates().get_template(template).render(**{"visit": None, "problems": problems.NONE, **shown})


def page(template: str, status: int = 200, **shown: Any) -> Response:
    """Return a page that only the browser may cache."""
    return Response(
        text(template, **shown), status, {"Cache-Control": "no-store"}, content_type="text/html; charset=utf-8"
    )


def is_fragment() -> bool:
    """Whether a script asks for a part of a page."""
    return FRAGMENT in request.headers


def see(path: str) -> Response:
    """Go on there by GET; also for a script's request, which must not swap a page in for a fragment."""
    if is_fragment():
        return Response(status=204, headers={"X-Go-To": path, "Cache-Control": "no-store"})
    return Response(status=303, headers={"Location": path, "Cache-Control": "no-store"})


async def guard(response: Response) -> Response:
    """Add the headers of every answer under /dashboard."""
    response.headers.update(_HEADERS)
    return response


async def failed(error: Exception) -> Response:
    """The refusal in words, with the id by which our log knows it."""
    told, here = refusal(error), request.scope.get(VISIT)
    current().outcome = told.kind.code
    response = page("error.html", told.kind.status, visit=here, error=told, request_id=current().request_id or "")
    response.headers.update({name: value for name, value in headers_of(told).items() if name != "WWW-Authenticate"})
    return response


def is_signed_out(error: ServiceError) -> bool:
    """Return whether the error is a missing or invalid session."""
    return error.kind is AUTH_INVALID_TOKEN
