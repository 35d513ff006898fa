"""The browser and the operating system in a User-Agent, in words."""

import re
from typing import NamedTuple

_LONGEST = 40
# In this order, because most browsers also name those that they are compatible with.
_BROWSERS = (
    (r"Edg(?:e|A|iOS)?/", "Edge"),
    (r"OPR/|OPiOS/|Opera", "Opera"),
    (r"SamsungBrowser/", "Samsung Internet"),
    (r"Vivaldi/", "Vivaldi"),
    (r"YaBrowser/", "Yandex Browser"),
    (r"DuckDuckGo/|Ddg/", "DuckDuckGo"),
    (r"Firefox/|FxiOS/", "Firefox"),
    (r"Chrome/|CriOS/|Chromium/", "Chrome"),
    (r"Version/[0-9.]+ (?:Mobile/\w+ )?Safari/", "Safari"),
)
_SYSTEMS = (
    (r"Windows NT|Windows Phone", "Windows"),
    (r"iPad", "iPad"),
    (r"iPhone|iPod", "iPhone"),
    (r"Android", "Android"),
    (r"Cr[O]S", "ChromeOS"),  # codespell knows no such word
    (r"Mac OS X|Macintosh", "macOS"),
    (r"Linux|X11", "Linux"),
)
_PROGRAM = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


class Agent(NamedTuple):
    """The names of a browser, or of another program, and of its operating system. They are empty if unknown."""

    browser: str = ""
    system: str = ""


def summary(user_agent: str) -> Agent:
    """Return what a User-Agent says, without versions; any client can send any, so this decides nothing."""
    text = user_agent[:400]
    system = _first(_SYSTEMS, text)
    browser = _first(_BROWSERS, text) if text.startswith("Mozilla/") else ""
    if not browser and not text.startswith("Mozilla/") and (program := _PROGRAM.match(text)):
        browser = program[0][:_LONGEST]
    return Agent(browser, system)


def _first(patterns: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in patterns if re.search(pattern, text)), "")
