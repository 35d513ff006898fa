"""The service behind a real socket, with its clock, its provider and its operator at hand."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx

from profilesvc.bootstrap import Runtime, create_app
from profilesvc.client import ProfileClient
from profilesvc.contract.keys import KeyCreated
from profilesvc.dev_issuer.provider import DevIssuer
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import keys, tokens
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import ALICE, BUSINESSES

T = TypeVar("T")
PIER, BOOKS, STATION, AIRPORT = "locations/111", "locations/114", "locations/112", "locations/113"

TOKEN = {
    "scope": "service",
    "plan": "pro",
    "access_token": "access",
    "expires_in": 3600,
    "permissions": ["business.read"],
    "refresh_token": "refresh",
    "refresh_expires_in": 36000,
}


class Service:
    """The service on a thread; it can be stopped and started again on the same port and the same data."""

    def __init__(self, settings: Settings, clock: FrozenClock) -> None:
        self.clock = clock
        self._settings, self._port, self._started = settings, 0, 0
        self.start()

    def start(self) -> None:
        self._started += 1
        self._world = Runtime(self.clock, SeededEntropy(f"client {self._started}"))
        self._app = create_app(self._settings, self._world)
        self._app.before_serving(self._remember_loop)
        self._server = EmbeddedServer(self._app, self._port)
        self._server.start()
        self._port, self.url = self._server.port, self._server.base_url

    async def _remember_loop(self) -> None:
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        self._server.stop()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    @property
    def services(self) -> Services:
        running: Services = self._app.extensions["profilesvc"]
        return running

    @property
    def issuer(self) -> DevIssuer | None:
        return self._world.issuer

    def user_token(self, email: str = ALICE) -> str:
        return self.do(tokens.user_token(self.services, email))

    def deactivate(self, client_id: str, reason: str = "billing_issue") -> None:
        assert self.do(keys.deactivate(self.services, client_id, reason)).changed

    def provider(self, method: str, path: str, body: Any) -> None:
        """Call the emulator's control API: /faults, /state."""

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._world.emulator)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://emulator/__emulator") as client:
                return await client.request(method, path, json=body)

        assert self.do(call()).is_success

    def seconds(self) -> float:
        """The clock as clients read it."""
        return self.clock.now() / 1000


class Recorded(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """The network, and what went over it: `METHOD path` for each request."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.grants: list[str] = []
        self.lose = 0
        self._network, self._async_network = httpx.HTTPTransport(), httpx.AsyncHTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._note(request)
        answer = self._network.handle_request(request)
        if self.lose:
            self.lose -= 1
            answer.close()
            raise httpx.ReadError("the answer was lost", request=request)
        return answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._note(request)
        return await self._async_network.handle_async_request(request)

    def _note(self, request: httpx.Request) -> None:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.url.path == "/api/v1/auth/token":
            self.grants.append("refresh" if b"refresh_token" in request.content else "credentials")

    def close(self) -> None:
        self._network.close()

    async def aclose(self) -> None:
        await self._async_network.aclose()


def new_key(owner: ProfileClient, location: str = PIER, **members: Any) -> KeyCreated:
    """A key of a location, made through the client."""
    return owner.create_key(name="Site", business_id=BUSINESSES[location], assigned_location_id=location, **members)
