"""The provider of the lab: a separate server, as `profilesvc emulator serve` starts it, or an embedded one."""

import secrets
from pathlib import Path
from typing import Any

import httpx

from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import Clock
from profilesvc.emulator.access import ControlAccess
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer

CONTROL = "/__emulator/"


class SeparateProvider:
    """The emulator on its own thread and port, with the lab's clock."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        path = folder / "provider.db"
        entropy, self._access = SeededEntropy("provider"), ControlAccess(secrets.token_urlsafe(32))
        self.app = create_emulator(path, clock=clock, entropy=entropy, world=load_world(), access=self._access)
        self._server = EmbeddedServer(self.app).start()
        self.settings = {"url": self._server.base_url, "edits_per_minute": 0}

    def controls(self) -> httpx.AsyncClient:
        origin, bearer = f"{self._server.base_url}{CONTROL}", {"Authorization": f"Bearer {self._access.token}"}
        return httpx.AsyncClient(base_url=origin, headers=bearer, trust_env=False)

    def stop(self) -> None:
        self._server.stop()


class EmbeddedProvider:
    """The emulator inside the service's process, which starts and stops it."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def controls(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=f"http://emulator{CONTROL}")
