"""An observer of a running service, which may see its requests, transactions and calls of the provider."""

from contextlib import AbstractAsyncContextManager, nullcontext

from profilesvc.database.engine import Storage
from profilesvc.server.scope import App


class Observer:
    """An observer that does nothing."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Observe while the block runs."""
        return nullcontext()

    def around(self, app: App) -> App:
        """Wrap an ASGI app to observe its requests."""
        return app

    def storage(self, url: str, pool_size: int, replica_url: str = "") -> Storage:
        """Open a storage to observe its transactions."""
        return Storage(url, pool_size, replica_url)

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """Observe a request to the provider that has just ended (`provider.transport.Observe`)."""
