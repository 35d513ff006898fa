"""The lab's dashboard for a browser: the same database and clock, under an address that a browser reaches.

The lab's service calls itself `https://profiles.example`, so that pages show the same on every machine; a sign-in would
lead there. This second app calls itself what it is reached by. As a second process would, it has an emulator of its own
over the same file: it sees what the provider holds, not the faults that the lab has queued.
"""

from typing import Any

from profilesvc.bootstrap import World, create_app
from profilesvc.domain.world import Clock
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import Settings

PATH = "/dashboard"


class LocalDashboard:
    """The dashboard on a thread and a free port of its own; `stop` ends it."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._server = EmbeddedServer(self)
        self._app: Any = create_app(settings.model_copy(update={"base_url": self._server.base_url}), World(clock))
        self._server.start()
        self.url = f"{self._server.base_url}{PATH}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One ASGI call: the app is made after the server, because it needs to know the port."""
        await self._app(scope, receive, send)

    def stop(self) -> None:
        """End it."""
        self._server.stop()
