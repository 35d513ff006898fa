"""Services with other parts than they were opened with, here or in the processes of a deployment."""

from dataclasses import replace
from typing import Any, NoReturn

from profilesvc.database.engine import Storage
from profilesvc.domain.rates import Window, Windows
from profilesvc.domain.time import MINUTE
from profilesvc.limits.limiter import Limiter
from profilesvc.limits.settings import LimitSettings
from profilesvc.services.context import Services
from profilesvc.services.jobs import Job

AWAY = "postgresql+asyncpg://postgres@127.0.0.1:1/nothing"
NO_ROOM = LimitSettings().model_copy(
    update={name: Window(0, MINUTE) for name in LimitSettings.model_fields if "_per_" in name}
)


def changed(
    opened: Services, windows: Windows, *, limits: LimitSettings | None = None, database: str = "", **parts: Any
) -> Services:
    """`limits` counted in `windows`, a `database` by its URL, other attributes of Services unchanged."""
    if limits is not None:
        parts["limiter"] = Limiter(limits, windows if limits.enabled else None, opened.metrics.limit_reached)
    if database:
        parts["storage"] = Storage(database)
    return replace(opened, **parts)


def no_jobs(*_values: object) -> list[Job]:
    """Return no jobs. A test runs those that it needs; on a busy machine others would run in its midst."""
    return []


class Broken:
    """A part whose every use raises an error with a secret in its message."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error or RuntimeError("secret path /srv/private and password hunter2")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # used by copy
            raise AttributeError(name)
        raise self._error


class Odd:
    """A provider whose pages of reviews are what a test says."""

    def __init__(self, page: dict[str, Any]) -> None:
        self._page = page

    def for_owner(self, _owner_id: int) -> "Odd":
        return self

    async def reviews(self, *_: object, **__: object) -> dict[str, Any]:
        return self._page
