"""The observer of a running service: traces if a collector is configured, else nothing."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from profilesvc.database.engine import Storage
from profilesvc.fixtures import how_to_install
from profilesvc.settings import PREFIX, Settings, SettingsError

if TYPE_CHECKING:
    from profilesvc.server.scope import App


class Observer:
    """A observer that does nothing."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Observe while the block runs."""
        return nullcontext()

    def around(self, app: "App") -> "App":
        """Wrap an ASGI app to observe its requests."""
        return app

    def storage(self, url: str, pool_size: int, replica_url: str = "") -> Storage:
        """Open a storage to observe its transactions."""
        return Storage(url, pool_size, replica_url)

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """Observe a request to the provider that has just ended (`provider.transport.Observe`)."""


def open_observer(settings: Settings) -> Observer:
    """Return the observer of the settings.

    Raises:
        SettingsError: The packages of the extra `otel` are not installed.
    """
    if not settings.tracing.endpoint:
        return Observer()
    try:
        from profilesvc.telemetry.tracing import Tracing
    except ImportError as error:
        hint = f"requires the extra `otel`: {how_to_install('otel')} ({error})"
        raise SettingsError(f"{PREFIX}TRACING__ENDPOINT {hint}") from None
    return Tracing(settings.tracing)
