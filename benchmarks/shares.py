"""The parts of the service that a request spends its CPU in, by a profile of the app in this process."""

import asyncio
import cProfile
from collections import defaultdict
from collections.abc import Awaitable, Callable

_CALLERS, _TIMES = 32, 50
# The parts by what their files have in their path. The first that fits counts.
_PARTS = {
    "Quart and Werkzeug": ("/quart/", "/werkzeug/", "/api/quart_fast.py", "/server/routing.py"),
    "the guard, headers, metrics and the log of requests": (
        "/api/guard.py",
        "/telemetry/",
        "/prometheus_client/",
        "/services/request_log.py",
        "/domain/request.py",
    ),
    "declaration, parsing and rendering": ("/profilesvc/api/", "/profilesvc/contract/", "/pydantic"),
    "token, limits and permissions": ("/services/access.py", "/profilesvc/tokens/", "/profilesvc/limits/"),
    "statements and the driver": ("/profilesvc/storage/", "/profilesvc/database/", "/asyncpg/", "/sqlite3/"),
    "the use case": ("/profilesvc/services/", "/profilesvc/domain/"),
}


def _part(path: str) -> str:
    return next((name for name, marks in _PARTS.items() if any(mark in path for mark in marks)), "")


async def of_requests(send: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Return the share of each part in the CPU of `send`, which requests the app, with 32 callers at the same time.

    Functions in C count for the module that calls them. What fits no part, such as the event loop, is left out.
    """

    async def repeat() -> None:
        for _ in range(_TIMES):
            await send()

    await repeat()
    profile = cProfile.Profile(builtins=False)
    profile.enable()
    await asyncio.gather(*(repeat() for _ in range(_CALLERS)))
    profile.disable()
    spent: defaultdict[str, float] = defaultdict(float)
    for entry in profile.getstats():
        spent[_part(getattr(entry.code, "co_filename", ""))] += entry.inlinetime
    spent.pop("", None)
    total = sum(spent.values())
    return {name: seconds / total for name, seconds in sorted(spent.items(), key=lambda item: -item[1])}
