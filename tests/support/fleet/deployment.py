"""The service as it is deployed: `serve` with its workers on its database, and a separate emulator."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from conftest import Postgres, make_settings
from profilesvc.settings import ProviderSettings, Settings, TokenSettings
from support.api import assert_ok, owner_of
from support.program import Server, command, controls, serving

KEYS = "/api/v1/developer/credentials"
TOKEN = "/api/v1/auth/token"


@dataclass
class Deployment:
    """A running service, its provider, and a way into its database."""

    service: Server
    emulator: Server
    _execute: Callable[[str], None]
    _environment: dict[str, str]

    @property
    def settings(self) -> Settings:
        """The settings of the service, for what has no route."""
        return make_settings(
            self.service.folder / "var",
            self._environment.get("DATABASE_URL", ""),
            base_url=self.service.url,
            provider=ProviderSettings(url=self.emulator.url),
            tokens=TokenSettings(),
        )

    async def sql(self, statement: str) -> None:
        """A statement of the test on the service's database."""
        await asyncio.to_thread(self._execute, statement)

    def user_token(self, email: str) -> str:
        """Minted as the operator does."""
        return command(self.service.folder, "users", "token", email, **self._environment).stdout.strip()

    @contextlib.asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """A caller with so many connections that every worker has some of them."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(
            base_url=self.service.url, headers=headers, timeout=180, limits=limits, trust_env=False
        ) as http:
            yield http

    async def provider_calls(self, method: str) -> int:
        """How many calls of that method the provider has seen, its tokens apart."""
        with controls(self.emulator.folder / "var", self.emulator.url) as control:
            seen = (await asyncio.to_thread(control.get, "requests")).json()["requests"]
        return sum(call["method"] == method and "/token" not in call["path"] for call in seen)


@contextlib.contextmanager
def deployed(folder: Path, workers: int, postgres: Postgres | None, **settings: str) -> Iterator[Deployment]:
    """The demo data on SQLite, or on a PostgreSQL database that is dropped afterwards."""
    environment = {"LIMITS__ENABLED": "false", "PROVIDER__TIMEOUT_SECONDS": "60", **settings}
    with contextlib.ExitStack() as stack:
        if postgres is not None:
            name = f"deployed_{workers}"
            postgres.create(name)
            stack.callback(postgres.drop, name)
            environment["DATABASE_URL"] = postgres.url(name)
            upgraded = command(folder, "db", "upgrade", **environment)
            assert upgraded.returncode == 0, upgraded.stderr
        emulator = stack.enter_context(serving(folder, "emulator", "serve", "--port", "0"))
        environment["PROVIDER__URL"] = emulator.url
        words = ("serve", "--demo", "--workers", str(workers), "--port", "0")
        service = stack.enter_context(serving(folder, *words, **environment))

        def execute(statement: str) -> None:
            if postgres is not None:
                postgres.run(statement, name)
                return
            with contextlib.closing(sqlite3.connect(folder / "var" / "profilesvc.db", timeout=10)) as connection:
                connection.execute(statement)
                connection.commit()

        yield Deployment(service, emulator, execute, environment)


async def new_site(user: httpx.AsyncClient, location: str = "locations/111", **members: Any) -> dict[str, Any]:
    """A new key and its first tokens, in one dictionary."""
    business = 10 if owner_of(location).startswith("alice") else 20
    body = {"name": "Race", "business_id": business, "assigned_location_id": location, **members}
    key = assert_ok(await user.post(KEYS, json=body), 201)
    credentials = {name: key[name] for name in ("client_id", "client_secret")}
    granted = await user.post(TOKEN, json={"grant_type": "client_credentials", **credentials})
    return {**key, **assert_ok(granted)}


async def at_once(count: int, request: Callable[[], Awaitable[httpx.Response]]) -> list[httpx.Response]:
    """The answers to a request that is sent many times at the same time."""
    return await asyncio.gather(*(request() for _ in range(count)))
