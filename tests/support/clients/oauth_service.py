"""The service as its own issuer on a socket, for OAuth libraries."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from profilesvc.bootstrap import Runtime, create_app, open_services
from profilesvc.domain.time import FrozenClock
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import tokens
from profilesvc.settings import Settings
from support.api import ALICE, assert_ok
from support.wire import KEYS, seeded

LOCATIONS = "/api/v1/external-business/locations"


class _Late:
    """An ASGI app that comes after its address is known: the address is the issuer."""

    app: Any

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@dataclass
class Service:
    """The address of the service, and one of its keys."""

    url: str
    user: str
    client_id: str
    client_secret: str

    @property
    def token_url(self) -> str:
        return f"{self.url}/oauth2/token"


@dataclass
class Issuer:
    """A running service whose clock the test moves."""

    url: str
    clock: FrozenClock
    settings: Settings

    def user(self) -> str:
        """A user token of this moment."""

        async def mint() -> str:
            async with open_services(self.settings, Runtime(self.clock)) as services:
                return await tokens.user_token(services, ALICE)

        return asyncio.run(mint())

    @contextlib.contextmanager
    def service(self) -> Iterator[Service]:
        """A key of the test's own; revoked after it, because a location has room for few."""
        user = self.user()
        key = new_key(self.url, user)
        yield Service(self.url, user, key["client_id"], key["client_secret"])
        headers = {"Authorization": f"Bearer {self.user()}"}
        assert_ok(httpx.delete(f"{self.url}{KEYS}/{key['client_id']}", headers=headers, trust_env=False))


def new_key(url: str, user: str) -> dict[str, str]:
    body = {"name": "Integration", "business_id": 10, "assigned_location_id": "locations/111"}
    headers = {"Authorization": f"Bearer {user}"}
    made: dict[str, str] = assert_ok(httpx.post(url + KEYS, json=body, headers=headers, trust_env=False), 201)
    return made


@contextlib.contextmanager
def issuing(template: Path, folder: Path) -> Iterator[Issuer]:
    """Serve the seeded databases from now on."""
    late, clock = _Late(), FrozenClock(int(time.time() * 1000))
    server = EmbeddedServer(late)
    settings = seeded(template, folder, base_url=server.base_url)
    late.app = create_app(settings, Runtime(clock))
    with server:
        yield Issuer(server.base_url, clock, settings)
