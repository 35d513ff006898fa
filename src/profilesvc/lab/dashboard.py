"""The lab's dashboard for a browser: a second app on the same database and clock, with a reachable address.

The base URL of the lab's service is `https://profiles.example`, so that notebooks show the same on every machine. A
sign-in would redirect there, so this app has its real address as its base URL. It has its own emulator over the same
file, which sees the provider's data but not the faults that the lab has queued.
"""

from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.time import Clock
from profilesvc.server.scope import App
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import Settings

PATH = "/dashboard"


class LocalDashboard:
    """The dashboard on a thread and a free port."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._server = EmbeddedServer(self)
        self._app: App = create_app(settings.model_copy(update={"base_url": self._server.base_url}), Runtime(clock))
        self._server.start()
        self.url = f"{self._server.base_url}{PATH}"

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        """Pass an ASGI call to the app, which is created after the server because it needs the port."""
        await self._app(scope, receive, send)

    def stop(self) -> None:
        self._server.stop()
