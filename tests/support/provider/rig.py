"""The emulator inside the process and behind a socket, and the adapter towards either."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr
from quart import Quart, Response, g, request

from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import Clock, FrozenClock, parse_iso
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.provider.port import ProviderError
from profilesvc.provider.remote import READ_MASK, RemoteProvider
from profilesvc.provider.transport import Transport
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import ProviderSettings
from support.provider.oracle import check_answer

START = parse_iso("2026-03-04T05:06:07.890Z")
LOGIN = {"grant_type": "refresh_token", "client_id": "tests", "client_secret": "s", "refresh_token": "r"}


@dataclass
class Rig:
    """An emulator, the adapter towards it, and a plain client for raw calls and the control API."""

    provider: RemoteProvider
    http: httpx.AsyncClient
    clock: FrozenClock

    async def put_state(self, **change: Any) -> dict[str, Any]:
        answer = await self.http.put("/__emulator/state", json=change)
        assert answer.status_code == 200, answer.text
        state: dict[str, Any] = answer.json()
        return state

    async def fault(self, kind: str, **members: Any) -> None:
        answer = await self.http.post("/__emulator/faults", json={"kind": kind, **members})
        assert answer.status_code == 200, answer.text

    async def calls(self, path: str = "") -> list[dict[str, Any]]:
        calls = (await self.http.get("/__emulator/requests")).json()["requests"]
        return [call for call in calls if call["path"] != "/token" and path in call["path"]]

    async def log_in(self) -> None:
        """Give the plain client a token."""
        token = (await self.http.post("/token", data=LOGIN)).json()["access_token"]
        self.http.headers["Authorization"] = f"Bearer {token}"

    async def read(self, location: str, mask: str = READ_MASK) -> httpx.Response:
        return await self.http.get(f"/v1/{location}", params={"readMask": mask})

    async def patch(self, location: str, body: Any, mask: str) -> httpx.Response:
        return await self.http.patch(f"/v1/{location}", params={"updateMask": mask}, json=body)

    def adapter(self, **settings: Any) -> RemoteProvider:
        """Another adapter over the same connection."""
        return _adapter(self.http, self.clock, **settings)


def refusal(answer: Any) -> tuple[str, str]:
    """Field and description, or the reason and its field."""
    assert answer.status_code == 400, answer.text
    detail = answer.json()["error"]["details"][0]
    if "reason" in detail:
        return detail["reason"], next(iter(detail["metadata"].values()))
    first = detail["fieldViolations"][0]
    return first["field"], first["description"]


async def refused_by(call: Awaitable[object]) -> ProviderError:
    """The error that a call raises."""
    try:
        await call
    except ProviderError as error:
        return error
    raise AssertionError("it was not refused")


def _adapter(client: httpx.AsyncClient, clock: Clock, **settings: Any) -> RemoteProvider:
    login = {
        "client_id": "tests",
        "client_secret": SecretStr("s"),
        "refresh_token": SecretStr("r"),
        "edits_per_minute": 0,
        "requests_per_minute": 0,
        "updates_per_day": 0,
    }
    whole = ProviderSettings(**{**login, **settings})
    return RemoteProvider(Transport(client, whole, origin=str(client.base_url), clock=clock))


def emulator_at(folder: Path, clock: FrozenClock) -> Quart:
    """A new emulator whose every answer, unless it is a fault's, is held to the provider's schemas."""
    app = create_emulator(folder / "emulator.db", clock=clock, entropy=SeededEntropy("ids"), world=load_world())
    app.after_request(_judge)
    return app


async def _judge(response: Response) -> Response:
    validated = request.args.get("validateOnly") == "true"
    is_api = (
        request.path.startswith("/v") and request.path != "/v1/userinfo"
    )  # OpenID Connect is in no schema of theirs
    if is_api and response.status_code == 200 and g.get("fault") is None and not validated:
        found = check_answer(request.method, request.path, await response.get_json())
        assert found == [], found
    return response


@asynccontextmanager
async def in_process(folder: Path, clock: FrozenClock) -> AsyncIterator[Rig]:
    app = emulator_at(folder, clock)
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    async with app.test_app(), httpx.AsyncClient(transport=transport, base_url="http://emulator") as client:
        yield Rig(_adapter(client, clock), client, clock)


@contextmanager
def served(app: Quart) -> Iterator[str]:
    """The app behind a free port, on a thread; gives its origin."""
    with EmbeddedServer(app) as server:
        yield server.base_url


@asynccontextmanager
async def over_socket(folder: Path, clock: FrozenClock) -> AsyncIterator[Rig]:
    with served(emulator_at(folder, clock)) as origin:
        async with httpx.AsyncClient(base_url=origin, timeout=60) as client:
            yield Rig(_adapter(client, clock), client, clock)
