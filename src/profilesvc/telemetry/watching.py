"""Who watches a running service beside its metrics: nobody, or a collector of traces where one is configured."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from profilesvc.database.engine import Storage
from profilesvc.settings import PREFIX, Settings, SettingsError

if TYPE_CHECKING:
    from profilesvc.api.guard import App


class Watcher:
    """Nobody: everything is as it is."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """A block that is watched."""
        return nullcontext()

    def around(self, app: "App") -> "App":
        """An ASGI app whose requests are seen."""
        return app

    def storage(self, url: str, pool_size: int) -> Storage:
        """A database whose units of work are seen."""
        return Storage(url, pool_size)

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """A request to the provider that has just ended (`provider.transport.Observe`)."""


def open_watcher(settings: Settings) -> Watcher:
    """Whom the settings name. SettingsError without the packages of the extra."""
    if not settings.tracing.endpoint:
        return Watcher()
    try:
        from profilesvc.telemetry.tracing import Tracing
    except ImportError as error:
        needed = f"needs the extra: pip install 'profilesvc[otel]' ({error})"
        raise SettingsError(f"{PREFIX}TRACING__ENDPOINT {needed}") from None
    return Tracing(settings.tracing)
