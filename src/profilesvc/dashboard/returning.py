"""The page to return to after a sign-in, and the fields of a form whose session had ended.

The fields are in signed cookies of the browser until its user has signed in again, so that the service stores nothing
for a client without a session (D-134). Another user who signs in there does not see them. Files, confirmations and the
fields that a rule names as secret are left out.
"""

import contextlib
import json
import re
import zlib
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from quart import Response, current_app, request

from profilesvc.api import html_forms
from profilesvc.api.html_forms import BUTTONS, TOKEN, FormRule
from profilesvc.api.request import current_services, quart_request, receive
from profilesvc.dashboard import cookies, form_tokens, pages
from profilesvc.dashboard.words import problems as problem_words
from profilesvc.domain.domains import parse_origin
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import SECOND
from profilesvc.services import origins
from profilesvc.services.context import Caller, Services
from profilesvc.tokens.seals import Seal

_LOCAL = re.compile(r"/dashboard(?:/[A-Za-z0-9_/-]*)?(?:\?[A-Za-z0-9_.~%+=&/:,@!*$'();-]{0,1000})?\Z", re.ASCII)
_REFERER = re.compile(r"(?P<origin>https?://[^/?#]+)(?P<path>/[^#]*)")
MISSING = "dashboard.not_found"  # the endpoint of every other path
_SECONDS = 900
_PIECE, _PIECES = 3_000, 2  # characters of a cookie: proxies accept 8 KB of all cookies together
_LEFT_OUT = frozenset({TOKEN, "sure"})
_TECHNICAL = frozenset({"once", "intent", "draft", "kind", "find", "mask"})


def local(path: str) -> str:
    """Return the path, which may have a query, if it is in the dashboard, else the dashboard's first page."""
    return path if _LOCAL.match(path) and "//" not in path else pages.PATH


@dataclass(frozen=True, slots=True)
class TypedForm:
    """The path of a form, and its fields as they were typed."""

    page: str
    action: str
    fields: list[list[str]]

    @property
    def typed(self) -> list[tuple[str, str]]:
        """The labels and texts of the fields that people fill in."""
        return [
            (problem_words.input_of(name)[1], text)
            for name, text in self.fields
            if text.strip() and name not in _TECHNICAL and not name.startswith("shown-")
        ]


async def sign_in(rule: FormRule | None) -> Response:
    """Redirect to the sign-in, which leads back to this page. The form of an action is kept until then."""
    services, path = current_services(), pages.here() or _page_of_form()
    if rule is None:
        ended = "" if cookies.get(services, cookies.SESSION) is None else "&ended=1"
        return pages.redirect(f"{pages.PATH}/sign-in?next={quote(local(path), safe='/')}{ended}")
    response = pages.redirect(f"{pages.PATH}/sign-in?next={quote(local(path), safe='/')}&ended=1")
    if rule is BUTTONS or pages.is_fragment():
        return response
    await receive(services, quart_request(), None, None)
    owner = list[int]()
    with contextlib.suppress(ServiceError):
        await html_forms.read(quart_request(), rule, lambda token: owner.append(form_tokens.owner_of(services, token)))
        form = await request.form
        left_out = _LEFT_OUT | rule.secrets
        fields = [[name, text] for name, text in form.items(multi=True) if name not in left_out]
        return _keep(services, response, owner[0], TypedForm(local(path), request.path, fields))
    return response


def _keep(services: Services, response: Response, owner_id: int, form: TypedForm) -> Response:
    """Put what was typed into cookies, or show it on the page of the sign-in if it is too long for them."""
    until = services.clock.now() + _SECONDS * SECOND
    content = json.dumps([owner_id, until, form.page, form.action, form.fields], separators=(",", ":"))
    sealed = _seal(services).seal_bytes(zlib.compress(content.encode("utf-8", "replace"), 9))
    if len(sealed) > _PIECE * _PIECES:
        start = f"{services.settings.base_url}{pages.PATH}/sign-in/start?next={quote(form.page, safe='/')}"
        demo = services.settings.with_dev_issuer
        return pages.page("sign_in.html", 401, start=start, ended=True, demo=demo, typed=form.typed)
    for number in range(_PIECES):
        piece = sealed[number * _PIECE : (number + 1) * _PIECE]
        cookies.put(response, services, f"{cookies.TYPED}{number}", piece, _SECONDS if piece else 0)
    return response


async def show(services: Services, caller: Caller, page: Awaitable[Response]) -> Response:
    """Return a page, which shows once what its user had typed there before the session ended."""
    form = _opened(services, caller)
    if form is None:
        return await page
    cast(Any, request.scope)[pages.TYPED] = form
    response = await page
    for number in range(_PIECES):
        cookies.remove(response, services, f"{cookies.TYPED}{number}")
    return response


def _opened(services: Services, caller: Caller) -> TypedForm | None:
    """Return what this user had typed on this page, if that is to be shown now."""
    pieces = [cookies.get(services, f"{cookies.TYPED}{number}") or "" for number in range(_PIECES)]
    content = _seal(services).unseal_bytes("".join(pieces)) if pieces[0] and not pages.is_fragment() else None
    if content is None:
        return None
    owner_id, until, page, action, fields = json.loads(zlib.decompress(content))
    is_here = owner_id == caller.owner_id and services.clock.now() < until
    return TypedForm(page, action, fields) if is_here and page.partition("?")[0] == request.path else None


def _seal(services: Services) -> Seal:
    return Seal(services.signer.keyring, "typed before the session ended", services.clock.now())


def _page_of_form() -> str:
    """Return the page with the form of this request or with the part that it requests: the browser's Referer."""
    referer = _REFERER.fullmatch(request.headers.get("Referer", ""))
    if referer is not None and parse_origin(referer["origin"]) == origins.own(current_services().settings):
        path, _, _ = referer["path"].partition("?")
        if path.startswith(pages.PATH) and _is_page(path):
            return referer["path"]
    return page_of(request.path) or pages.PATH


def page_of(path: str) -> str | None:
    """Return the page of an action, because a browser may request the address of a form that was sent."""
    urls = current_app.create_url_adapter(request)
    assert urls is not None, "there is a request"
    if not urls.test(path, "POST"):
        return None
    while not _is_page(path) and path != pages.PATH:
        path = path.rpartition("/")[0]
    return path


def _is_page(path: str) -> bool:
    urls = current_app.create_url_adapter(request)
    assert urls is not None, "there is a request"
    return urls.test(path, "GET") and urls.match(path, "GET")[0] != MISSING
