"""A browser without a script: it stores cookies, follows links, and sends the forms of the page."""

from collections.abc import Awaitable, Callable
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx
from benchmarks import generate
from benchmarks.generate import Amounts
from sqlalchemy import select

from profilesvc.operations.demo_data import GENERATED
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.storage.tables import users
from support.api import ALICE, BOB, CAROL

SUBJECTS = {ALICE: "demo-1", BOB: "demo-2", CAROL: "demo-3"}
COOKIE, SIGN_IN = "profilesvc_session", "profilesvc_signin"


class Page(HTMLParser):
    """The forms of a page with their fields, its links, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self.languages: list[dict[str, Any]] = []  # the form of every page that selects a language
        self._form: dict[str, Any] = {}
        self.links: list[str] = []
        self.words: list[str] = []
        self._select: tuple[str, bool] | None = None
        self._area: str | None = None
        self.feed(html)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert not any(name.startswith("on") or name == "style" for name in given), f"{tag} {given}"
        quoted = [name for name, text in given.items() if text.startswith('"') and name != "value"]
        assert not quoted, f"{tag} {given}: written twice"
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "form":
            self._form = {"action": given.get("action", ""), "method": given.get("method"), "fields": {}}
            kind = self.languages if self._form["action"] == "/dashboard/language" else self.forms
            kind.append(self._form)
        elif self._form:
            self._field(tag, given)

    def _field(self, tag: str, given: dict[str, str]) -> None:
        fields: dict[str, list[str]] = self._form["fields"]
        kind = given.get("type", "text")
        if tag == "input" and "disabled" not in given and (kind not in ("checkbox", "radio") or "checked" in given):
            fields.setdefault(given["name"], []).append(given.get("value", ""))
        elif tag == "select":
            self._select = (given["name"], False)
        elif tag == "option" and self._select is not None and "disabled" not in given:
            name, chosen = self._select
            if "selected" in given or (name not in fields and not chosen):
                fields[name] = [given.get("value", "")]
                self._select = (name, "selected" in given or chosen)
        elif tag == "textarea":
            self._area = given["name"]
            fields[self._area] = [""]

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._area is not None:
            self._form["fields"][self._area] = [data.strip()]

    def form(self, action: str) -> dict[str, Any]:
        """The form that goes to a path with this end; `POST /path` leaves out the searches."""
        method, _, end = action.rpartition(" ")
        return next(
            form
            for form in (*self.forms, *self.languages)
            if form["action"].endswith(end) and (form["method"] or "get").upper() in (method or "GET POST")
        )


class Browser:
    """A person at the dashboard. `page` is what they look at."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.answer: httpx.Response
        self.page: Page

    async def open(self, path: str, status: int = 200, **headers: str) -> Page:
        return self._look(await self.http.get(path, headers=headers, follow_redirects=True), status)

    async def send(self, action: str, status: int = 200, /, **changes: Any) -> Page:
        """Send the form of this page that goes there, with some fields filled in otherwise; None leaves one out."""
        form = self.page.form(action)
        fields = {**form["fields"], **changes}
        data = {name: value for name, value in fields.items() if value is not None}
        target = urljoin(str(self.answer.url), form["action"])
        origin = str(httpx.URL(target).copy_with(raw_path=b"")).rstrip("/")
        answer = await self.http.post(target, data=data, headers={"Origin": origin}, follow_redirects=True)
        return self._look(answer, status)

    def _look(self, answer: httpx.Response, status: int) -> Page:
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        self.answer, self.page = answer, Page(answer.text)
        return self.page

    async def sign_in(self, email: str) -> Page:
        page = await self.open("/dashboard/sign-in")
        await self.open(next(link for link in page.links if "/sign-in/start" in link))
        fields = self.page.forms[0]["fields"] | {"subject": SUBJECTS[email]}
        answer = await self.http.post("/dev/issuer/authorize", data=fields, follow_redirects=True)
        return self._look(answer, 200)

    @property
    def token(self) -> str:
        """The session."""
        return next(cookie.value or "" for cookie in self.http.cookies.jar if cookie.name.endswith(COOKIE))


SignIn = Callable[[str], Awaitable[Browser]]


async def as_agency(browser: Browser, services: Services, sites: int) -> int:
    """Go on as the owner of so many generated sites, one of 100 drifted; return the owner's number."""
    await generate.load(services, Amounts(sites, 0, 0, sites_per_user=sites), seed=1)
    async with services.storage.read() as session:
        query = select(users.c.id, users.c.email).where(users.c.email.like(f"%@{GENERATED}"))
        owner = (await session.execute(query)).one()
    token = await tokens.user_token(services, owner.email)
    session_cookie = next(cookie for cookie in browser.http.cookies.jar if cookie.name.endswith(COOKIE))
    session_cookie.value = token
    await browser.open("/dashboard")
    return int(owner.id)
