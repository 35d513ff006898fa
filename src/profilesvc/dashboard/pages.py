"""Making pages: templates with everything escaped, and the headers that keep a page to itself."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from quart import Response, request

from profilesvc.api.failures import REQUEST_ID, refusal
from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.dashboard import words
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.world import iso

PATH = "/dashboard"
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
    made.filters.update(iso=iso, ago=words.ago, value=words.value, event=words.event)
    made.globals.update(words=words)
    return made


def text(template: str, **values: Any) -> str:
    """A template as text; `visit` is None where nobody has signed in."""
    return _templates().get_template(template).render(**{"visit": None, **values})


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page that nobody but the browser keeps."""
    return Response(
        text(template, **values), status, {"Cache-Control": "no-store"}, content_type="text/html; charset=utf-8"
    )


def see(path: str) -> Response:
    """Go on there by GET; also for a script's request, which must not swap a page in for a fragment."""
    if request.headers.get("HX-Request") == "true":
        return Response(status=204, headers={"HX-Redirect": path, "Cache-Control": "no-store"})
    return Response(status=303, headers={"Location": path, "Cache-Control": "no-store"})


async def guard(response: Response) -> Response:
    """Add the headers of every answer under /dashboard."""
    response.headers.update(_HEADERS)
    return response


async def failed(error: Exception) -> Response:
    """The refusal in words, with the id by which our log knows it."""
    told = refusal(error)
    response = page("error.html", told.kind.status, error=told, request_id=request.scope.get(REQUEST_ID, ""))
    response.headers.update({name: value for name, value in told.headers.items() if name != "WWW-Authenticate"})
    return response


def is_signed_out(error: ServiceError) -> bool:
    """Whether what is missing is a session that is good."""
    return error.kind is AUTH_INVALID_TOKEN
