"""A tab of Chromium that notes what a page asks for outside and what it writes to the console."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

SOON = 20_000
ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "build" / "browser"
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}

_WIDE = """[...document.querySelectorAll("body *")].filter(one => one.getBoundingClientRect().right > innerWidth)
  .slice(0, 5).map(one => one.outerHTML.slice(0, 200))"""


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8") + "; null"


class Tab:
    """A page that asks for nothing outside and says nothing on the console."""

    def __init__(self, chromium: Any, url: str, **options: Any) -> None:
        self.url = url
        # axe is put into the page from here, which the page's own policy would refuse.
        still = {"reduced_motion": "reduce"}  # axe would measure the contrast in the middle of a transition
        self.context = chromium.new_context(**{"viewport": DESK, "timezone_id": "Asia/Tokyo", **still, **options})
        self.outside: list[str] = []
        self.console: list[str] = []
        self.context.on("request", self._asked)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SOON)
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.outside.append(request.url)

    def sign_in(self, name: str) -> Any:
        self.page.goto(f"{self.url}/dashboard")
        self.page.get_by_role("link", name="Sign in").click()
        self.page.get_by_role("button", name=name).click()
        self.page.wait_for_url("**/dashboard")
        return self.page

    def findings(self, rules: list[str] | None = None) -> list[tuple[str, list[str]]]:
        """Return what axe finds by all rules or by these, and whether the page scrolls to the side."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(_axe())
        options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": rules} if rules else {})}
        found = self.page.evaluate("options => axe.run(options)", options)["violations"]
        findings = [(finding["id"], [node["html"] for node in finding["nodes"]]) for finding in found]
        if not self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            findings.append(("scrolls to the side", self.page.evaluate(_WIDE)))
        return findings

    def assert_accessible(self) -> None:
        """No finding of axe, and no scrolling to the side."""
        found = self.findings()
        assert found == [], (self.page.url, found)
