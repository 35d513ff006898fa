"""The service inside this process, with a temporary folder, the demo data and a frozen clock."""

import asyncio
import contextlib
import copy
import json
import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx

from profilesvc.bootstrap import Runtime, create_app
from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.plans import load_catalogue
from profilesvc.domain.time import FrozenClock, parse_iso
from profilesvc.fixtures import fixture_path, load_world
from profilesvc.lab.dashboard import PATH, LocalDashboard
from profilesvc.lab.separate_provider import EmbeddedProvider, SeparateProvider
from profilesvc.operations import seeding
from profilesvc.server.scope import App, Receive, Scope, Send
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import tokens
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.settings import PREFIX, Settings

T = TypeVar("T")
START = "2026-01-02T03:04:05.678Z"
BASE_URL = "https://profiles.example"
_LOGGERS = ("profilesvc", "uvicorn", "quart", "asyncio", "alembic", "sqlalchemy")


async def _no_names(_owner_id: int, host: str) -> list[str]:
    """A resolver that knows addresses only: no output depends on the name server of the reader."""
    if host.strip("0123456789.") and ":" not in host:
        raise OSError
    return [host]


class _Fixed(Settings):
    """Settings only from arguments, because the reader's environment must not change the outputs of a notebook."""

    @classmethod
    def settings_customise_sources(cls, *_args: object, **sources: object) -> tuple[Any, ...]:
        """Return only the source of the arguments."""
        return (sources["init_settings"],)


class _LogList(logging.Handler):
    """The server's log lines, which must not appear in the cells."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


class Embedded:
    """The app on a thread and a free port. `close` stops it and removes its folder."""

    def __init__(self, posts_a_month: int | None, separate: bool, overrides: JsonObject) -> None:
        self.clock = FrozenClock(parse_iso(START))
        self._server: EmbeddedServer | None = None
        self._separate: SeparateProvider | None = None
        self._dashboard: LocalDashboard | None = None
        self._runtime = Runtime(self.clock, SeededEntropy("lab"), resolver=_no_names)
        self._folder = tempfile.TemporaryDirectory(prefix="profilesvc-lab-")
        self._log = _LogList()
        self._running = threading.Lock()  # prevents a restart, which replaces the loop, while a coroutine runs on it
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._log)
        try:
            if separate:
                self._separate = SeparateProvider(Path(self._folder.name), self.clock)
            self._serve(self._settings(posts_a_month, overrides))
            self._seed()
        except BaseException:
            self.close()
            raise

    def _settings(self, posts_a_month: int | None, overrides: JsonObject) -> Settings:
        folder = Path(self._folder.name)
        plans = None if posts_a_month is None else _small_plans(folder / "plans.toml", posts_a_month)
        values: JsonObject = {
            "base_url": BASE_URL,
            "data_dir": folder,
            "plans_file": plans,
            **overrides,
            # The reader moves the clock and delivers, so that no output depends on when a worker ran.
            "provider": {
                "readings_per_minute": 0,
                **(self._separate.settings if self._separate else {}),
                **overrides.get("provider", {}),
            },
            "webhooks": {"deliver": False, "allow_private": True, **overrides.get("webhooks", {})},
            "tokens": {
                "signing_key_file": fixture_path("signing_key.pem"),
                "refresh_key_file": fixture_path("refresh_key.pem"),
                **overrides.get("tokens", {}),
            },
        }
        return _Fixed(**values)

    def _serve(self, settings: Settings, port: int = 0) -> None:
        self._app = create_app(settings, self._runtime)
        self._app.before_serving(self._remember_loop)
        server = EmbeddedServer(self, port)
        try:
            server.start()
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {'; '.join(self._log.lines[-3:])}") from None
        self._server, self.url = server, server.base_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an ASGI call to the service, but redirect the dashboard to the app in which a browser can sign in.

        The end of a consent is passed on too, because `consenting.py` is the browser then.
        """
        is_page = scope["type"] == "http" and scope["path"].startswith(PATH) and scope["method"] == "GET"
        if is_page and scope["path"] != f"{PATH}/connections/callback":
            url = await asyncio.to_thread(self.dashboard)
            headers = [(b"location", url.encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        app: App = self._app
        await app(scope, receive, send)

    def dashboard(self) -> str:
        """Return the address of the dashboard, which the first call starts."""
        with self._running:
            if self._dashboard is None:
                self._dashboard = LocalDashboard(self.services.settings, self.clock)
            return self._dashboard.url

    def _seed(self) -> None:
        world = load_world()
        self.run(seeding.load(self.services, {**world, "locations": []} if self._separate else world))

    async def _remember_loop(self) -> None:
        self._loop = asyncio.get_running_loop()

    @property
    def services(self) -> Services:
        """The running services, for the operator's commands."""
        services: Services = self._app.extensions["profilesvc"]
        return services

    @property
    def logs(self) -> list[str]:
        """The lines that the server logged."""
        return list(self._log.lines)

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine on the server's loop and wait for it."""
        with self._running:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def drain(self) -> None:
        """Report not ready, the first step after SIGTERM."""

        async def start() -> None:
            self._app.extensions["profilesvc.draining"].set()

        self.run(start())

    def restart(self) -> None:
        """Finish the requests in flight, stop, and start again on the same files and port."""
        assert self._server is not None, "the service is not open"
        with self._running:
            settings, port = self.services.settings, self._server.port
            self._server.stop()
            self._serve(settings, port)

    @contextlib.contextmanager
    def database_held(self) -> Iterator[None]:
        """Hold the database's write lock during a block, as another program could."""
        other = sqlite3.connect(Path(self._folder.name, "profilesvc.db"), isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            yield
        finally:
            other.close()

    def execute(self, statement: str) -> None:
        """Change the database by SQL, as another program could."""
        with contextlib.closing(sqlite3.connect(Path(self._folder.name, "profilesvc.db"))) as other, other:
            other.execute(statement)

    def user_token(self, email: str) -> str:
        """Return a user token as `profilesvc users token` issues it.

        Raises:
            ServiceError: The user is unknown.
        """
        return self.run(tokens.user_token(self.services, email))

    def id_token(self, email: str, nonce: str | None, audience: str | None) -> str:
        """Return an ID token of the development issuer, as its login page issues it.

        Raises:
            ValueError: The user cannot sign in, or the issuer is switched off.
        """
        if self._runtime.issuer is None:
            raise ValueError("the development issuer is switched off")
        issuer = copy.copy(self._runtime.issuer)
        issuer.client_id = audience or issuer.client_id
        users = self.run(issuer.users(self.services))
        subject = next((user.subject for user in users if user.email == email), "")
        token = self.run(issuer.id_token(self.services, subject, nonce))
        if token is None:
            raise ValueError(f"{email} cannot sign in at the development issuer")
        return token

    @property
    def _provider(self) -> EmbeddedProvider | SeparateProvider:
        if self._separate is not None:
            return self._separate
        assert self._runtime.emulator is not None, "the lab's provider is the emulator"
        return EmbeddedProvider(self._runtime.emulator)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Call the emulator's control API (emulator/control.py).

        Raises:
            ValueError: The call was rejected.
        """

        async def call() -> httpx.Response:
            async with self._provider.controls() as client:
                return await client.request(method, path, json=body)

        response = self.run(call())
        if response.is_error:
            raise ValueError(response.json()["error"]["message"])
        return response.json()

    def doctor(self, provider: dict[str, object]) -> str:
        """Return the output of `profilesvc doctor` for a new data folder, without the names of folders."""
        settings = {**self.services.settings.provider.model_dump(exclude_unset=True), **provider}
        env = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
        env |= {f"{PREFIX}PROVIDER__{name.upper()}": str(value) for name, value in settings.items()}
        env[f"{PREFIX}DATA_DIR"] = str(Path(self._folder.name, "new"))
        command = [sys.executable, "-m", "profilesvc", "doctor"]
        process = subprocess.run(command, env=env, cwd=self._folder.name, capture_output=True, text=True, check=False)  # noqa: S603
        return f"{process.stdout}{process.stderr}".replace(self._folder.name, "").strip()

    def settle(self) -> None:
        """Wait for the work that the service does after a response, so that notebooks show the same on every run."""
        self.run(self._settled())

    async def _settled(self) -> None:
        await self.services.part(PendingEvents).write(self.services)  # else their order would depend on a timer
        await self.services.background.settle()

    def provider_calls(self) -> list[JsonObject]:
        """Return the calls to the provider since the last call of this method."""
        calls = self._provider.app.extensions["emulator"].calls
        return [calls.popleft() for _ in range(len(calls))]

    def close(self) -> None:
        """Stop the servers, restore the loggers and remove the folder."""
        if self._dashboard is not None:
            self._dashboard.stop()
            self._dashboard = None
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._separate is not None:
            self._separate.stop()
            self._separate = None
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._log)
        self._folder.cleanup()


def _small_plans(path: Path, posts_a_month: int) -> Path:
    """Write a plan catalogue with a low quota. JSON's scalars and lists are valid TOML."""
    tables = []
    for plan in load_catalogue(None).values():
        row = plan.model_dump(exclude={"name"}, exclude_none=True)
        row["monthly_posts"] = min(plan.monthly_posts, posts_a_month)
        tables.append(f"[{plan.name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in row.items()))
    path.write_text("\n\n".join(tables), "utf-8")
    return path
