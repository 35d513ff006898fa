"""Render pages from templates that escape everything, with headers that protect them."""

from functools import cache, partial
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from quart import Response, request

from profilesvc.api.caching import compressed
from profilesvc.api.failures import headers_of, service_error
from profilesvc.api.request import current_services
from profilesvc.api.request import headers_of as scope_headers
from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.dashboard.problems import NONE, Problems
from profilesvc.dashboard.problems import from_error as problems_of
from profilesvc.dashboard.words import channels as channel_words
from profilesvc.dashboard.words import events as event_words
from profilesvc.dashboard.words import help_links, marked, values, words
from profilesvc.dashboard.words import posts as post_words
from profilesvc.dashboard.words import problems as problem_words
from profilesvc.domain.bidi import html_without_controls
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request
from profilesvc.domain.time import iso
from profilesvc.language import formats, texts
from profilesvc.language.choice import LANGUAGES

PATH = "/dashboard"
VISIT = "profilesvc.visit"  # the key of the visit in a request's scope, for error pages
_DONE = "notice"  # the parameter of a page after a redirect
TYPED = "profilesvc.kept"  # the key of what was typed before the session ended
FRAGMENT = "X-Fragment"  # sent by live.js, which requests parts of pages
# Only our own scripts and styles. Nothing is loaded from or sent to other origins.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# With `Referrer-Policy: no-referrer`, browsers would send `Origin: null` with our own forms.
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@cache
def _templates() -> Environment:
    """Return our environment. Quart's renders in a coroutine, which is several times slower for hundreds of rows."""
    environment = Environment(
        loader=PackageLoader("profilesvc.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    marked.install(environment)
    environment.filters.update(
        iso=iso,
        utc=formats.utc,
        exactly=partial(formats.utc, seconds=True),
        ago=words.ago,
        month=formats.month,
        number=formats.number,
        weekday=formats.weekday,
        field=values.field,
        lines=values.lines,
        sentence=values.sentence,
        service=values.service,
        anchor=values.anchor,
        event=words.event,
    )
    environment.globals.update(
        words=words,
        channel_words=channel_words,
        post_words=post_words,
        event_words=event_words,
        problems_of=problems_of,
        in_words=problem_words.in_words,
        columns=values.columns,
        help_of=help_links.guide_url,
    )
    return environment


def text(template: str, **values: object) -> str:
    """Render a template; `visit` is None if no user is signed in."""
    settings = current_services().settings
    guides = settings.effective_guides_folder is not None  # without them, pages have no links to them
    reader = {"visit": None, "kept": request.scope.get(TYPED), "language": texts.language()}
    common = {**reader, "product": settings.dashboard, "guides": guides}
    return html_without_controls(_templates().get_template(template).render(**{**common, **values}))


def page(template: str, status: int | None = None, *, problems: Problems = NONE, **values: object) -> Response:
    """Return a page that only the browser may cache; its status is that of its problems, unless one is given.

    Back to a form with problems shows it as it was. A browser cannot do that if it may not store the response to a
    POST: it would show an error page of its own.
    """
    return Response(
        text(template, problems=problems, notice=_notice(), here=here(), languages=LANGUAGES, **values),
        problems.status if status is None else status,
        {"Cache-Control": "private, no-cache" if request.method == "POST" and problems else "no-store"},
        content_type="text/html; charset=utf-8",
    )


def _notice() -> str:
    """Return what the redirect to this page reports, in the words of `words.DONE`."""
    return words.DONE.get(request.args.get(_DONE, ""), "")


def here() -> str:
    """Return the address of this page to return to; none for the response to a form, which would be lost."""
    if request.method != "GET" or is_fragment():
        return ""
    query = f"?{request.query_string.decode('latin1')}" if request.query_string else ""
    return f"{request.path}{query}"


def is_fragment() -> bool:
    """Return whether a script requests a part of a page."""
    return FRAGMENT in request.headers


def redirect(path: str, done: str = "") -> Response:
    """Redirect to a path, which then shows what is `done`, a name of `words.DONE`.

    A script gets the path in `X-Go-To`, because it must not show a page as a part.
    """
    if done:
        page_path, mark, part = path.partition("#")
        path = f"{page_path}{'&' if '?' in page_path else '?'}{_DONE}={done}{mark}{part}"
    if is_fragment():
        return Response(status=204, headers={"X-Go-To": path, "Cache-Control": "no-store"})
    return Response(status=303, headers={"Location": path, "Cache-Control": "no-store"})


# A picture of the operator's. An SVG file that a browser opens as a page runs no script and loads nothing.
_PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


async def add_headers(response: Response) -> Response:
    """Add the headers of every response under /dashboard, and compress the pages that only our own pages requested.

    A page has the token of its forms. The length of a compressed page reveals it to a site that can cause many
    requests (BREACH), and browsers name such a site in `Sec-Fetch-Site`.
    """
    response.headers.update(_HEADERS)
    if response.mimetype == "text/html":
        response.headers["Content-Language"] = texts.language()
    if response.mimetype == "image/svg+xml":
        response.headers["Content-Security-Policy"] = _PICTURE_POLICY
    is_page = response.status_code == 200 and request.method == "GET" and response.mimetype == "text/html"
    if is_page and request.headers.get("Sec-Fetch-Site") in ("same-origin", "none"):
        return await compressed(scope_headers(cast(Any, request.scope)), response)
    return response


async def failed(error: Exception) -> Response:
    """Return the error page, with the request id that is in our log."""
    failure, visit = service_error(error), request.scope.get(VISIT)
    current_request().outcome = failure.kind.code
    response = page(
        "error.html", failure.kind.status, visit=visit, error=failure, request_id=current_request().request_id or ""
    )
    response.headers.update({name: value for name, value in headers_of(failure).items() if name != "WWW-Authenticate"})
    return response


def is_signed_out(error: ServiceError) -> bool:
    """Return whether the error is a missing or invalid session."""
    return error.kind is AUTH_INVALID_TOKEN
