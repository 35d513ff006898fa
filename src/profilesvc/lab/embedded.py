"""The whole service inside this process: a temporary folder, the demo world, a clock that waits to be moved."""

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

from profilesvc.bootstrap import World, create_app
from profilesvc.domain.plans import load_catalogue
from profilesvc.domain.world import FrozenClock, SeededEntropy, parse_iso
from profilesvc.fixtures import fixture_path, load_world
from profilesvc.lab.dashboard import PATH, LocalDashboard
from profilesvc.lab.elsewhere import ProviderElsewhere, ProviderWithin
from profilesvc.operations import seeding
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.settings import PREFIX, Settings

T = TypeVar("T")
START = "2026-01-02T03:04:05.678Z"
BASE_URL = "https://profiles.example"
_LOGGERS = ("profilesvc", "uvicorn", "quart", "asyncio", "alembic", "sqlalchemy")


class _Fixed(Settings):
    """Build settings only from arguments, because the reader's environment must not change what a page shows."""

    @classmethod
    def settings_customise_sources(cls, *_args: Any, **sources: Any) -> tuple[Any, ...]:
        """Only the arguments."""
        return (sources["init_settings"],)


class _LogList(logging.Handler):
    """Keeps what the server says out of the cells."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


class Embedded:
    """The app on a thread and a free port of its own; `close` ends it and removes its folder."""

    def __init__(self, posts_a_month: int | None, elsewhere: bool, overrides: dict[str, Any]) -> None:
        self.clock = FrozenClock(parse_iso(START))
        self._server: EmbeddedServer | None = None
        self._elsewhere: ProviderElsewhere | None = None
        self._dashboard: LocalDashboard | None = None
        self._world = World(self.clock, SeededEntropy("lab"))
        self._folder = tempfile.TemporaryDirectory(prefix="profilesvc-lab-")
        self._log = _LogList()
        self._running = threading.Lock()  # held while a restart changes the loop, and while something runs on it
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._log)
        try:
            if elsewhere:
                self._elsewhere = ProviderElsewhere(Path(self._folder.name), self.clock)
            self._serve(self._settings(posts_a_month, overrides))
            self._seed()
        except BaseException:
            self.close()
            raise

    def _settings(self, posts_a_month: int | None, overrides: dict[str, Any]) -> Settings:
        folder = Path(self._folder.name)
        plans = None if posts_a_month is None else _small_plans(folder / "plans.toml", posts_a_month)
        values: dict[str, Any] = {
            "base_url": BASE_URL,
            "data_dir": folder,
            "plans_file": plans,
            **overrides,
            "provider": {**(self._elsewhere.settings if self._elsewhere else {}), **overrides.get("provider", {})},
            "tokens": {
                "signing_key_file": fixture_path("signing_key.pem"),
                "refresh_key_file": fixture_path("refresh_key.pem"),
                **overrides.get("tokens", {}),
            },
        }
        return _Fixed(**values)

    def _serve(self, settings: Settings, port: int = 0) -> None:
        self._app = create_app(settings, self._world)
        self._app.before_serving(self._remember_loop)
        server = EmbeddedServer(self, port)
        try:
            server.start()
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {'; '.join(self._log.lines[-3:])}") from None
        self._server, self.url = server, server.base_url

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One ASGI call: the service, except that its dashboard is where a browser can sign in."""
        if scope["type"] == "http" and scope["path"].startswith(PATH) and scope["method"] == "GET":
            url = await asyncio.to_thread(self.dashboard)
            headers = [(b"location", url.encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)

    def dashboard(self) -> str:
        """The address of the dashboard, which is started when it is first asked for."""
        with self._running:
            if self._dashboard is None:
                self._dashboard = LocalDashboard(self.services.settings, self.clock)
            return self._dashboard.url

    def _seed(self) -> None:
        world = load_world()
        self.run(seeding.load(self.services, {**world, "locations": []} if self._elsewhere else world))

    async def _remember_loop(self) -> None:
        self._loop = asyncio.get_running_loop()

    @property
    def services(self) -> Services:
        """The running services, for what only an operator can do."""
        services: Services = self._app.extensions["profilesvc"]
        return services

    @property
    def logs(self) -> list[str]:
        """What the server logged, a line each."""
        return list(self._log.lines)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's own loop and wait for it."""
        with self._running:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def drain(self) -> None:
        """Report not ready, the first step after SIGTERM."""

        async def begin() -> None:
            self._app.extensions["profilesvc.draining"].set()

        self.run(begin())

    def restart(self) -> None:
        """End in order, requests in flight first, and start again on the same files and port."""
        assert self._server is not None, "it is open"
        with self._running:
            settings, port = self.services.settings, self._server.port
            self._server.stop()
            self._serve(settings, port)

    @contextlib.contextmanager
    def database_held(self) -> Iterator[None]:
        """A block in which another program keeps the database's one place for writers."""
        other = sqlite3.connect(Path(self._folder.name, "profilesvc.db"), isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            yield
        finally:
            other.close()

    def user_token(self, email: str) -> str:
        """A user token, minted as `profilesvc users token` does. ServiceError for an unknown user."""
        return self.run(tokens.user_token(self.services, email))

    def id_token(self, email: str, nonce: str | None, audience: str | None) -> str:
        """An ID token of the development issuer, as its login page gives one. ValueError for who cannot sign in."""
        if self._world.issuer is None:
            raise ValueError("the development issuer is switched off")
        issuer = copy.copy(self._world.issuer)
        issuer.client_id = audience or issuer.client_id
        people = self.run(issuer.users(self.services))
        subject = next((person.subject for person in people if person.email == email), "")
        token = self.run(issuer.id_token(self.services, subject, nonce))
        if token is None:
            raise ValueError(f"{email} cannot sign in at the development issuer")
        return token

    @property
    def _provider(self) -> ProviderWithin | ProviderElsewhere:
        if self._elsewhere is not None:
            return self._elsewhere
        assert self._world.emulator is not None, "the lab's provider is the emulator"
        return ProviderWithin(self._world.emulator)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Call the emulator's control surface (emulator/control.py). ValueError when it refuses."""

        async def call() -> httpx.Response:
            async with self._provider.controls() as client:
                return await client.request(method, path, json=body)

        answer = self.run(call())
        if answer.is_error:
            raise ValueError(answer.json()["error"]["message"])
        return answer.json()

    def doctor(self, provider: dict[str, object]) -> str:
        """What `profilesvc doctor` prints where nothing was served yet, without the names of folders."""
        settings = {**self.services.settings.provider.model_dump(exclude_unset=True), **provider}
        env = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
        env |= {f"{PREFIX}PROVIDER__{name.upper()}": str(value) for name, value in settings.items()}
        env[f"{PREFIX}DATA_DIR"] = str(Path(self._folder.name, "new"))
        command = [sys.executable, "-m", "profilesvc", "doctor"]
        done = subprocess.run(command, env=env, cwd=self._folder.name, capture_output=True, text=True, check=False)  # noqa: S603
        return f"{done.stdout}{done.stderr}".replace(self._folder.name, "").strip()

    def settle(self) -> None:
        """Wait for what the service does after an answer, so that the next call always finds it done."""
        self.run(self.services.background.drain())

    def provider_calls(self) -> list[dict[str, Any]]:
        """The calls to the provider since the last time this was asked."""
        calls = self._provider.app.extensions["emulator"].calls
        return [calls.popleft() for _ in range(len(calls))]

    def close(self) -> None:
        """Stop the servers, give the loggers back and remove the folder."""
        if self._dashboard is not None:
            self._dashboard.stop()
            self._dashboard = None
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._elsewhere is not None:
            self._elsewhere.stop()
            self._elsewhere = None
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._log)
        self._folder.cleanup()


def _small_plans(path: Path, posts_a_month: int) -> Path:
    """The plan catalogue with a quota that a page can reach; JSON's scalars and lists are TOML's too."""
    tables = []
    for plan in load_catalogue(None):
        row = plan.model_dump(exclude={"name"}, exclude_none=True)
        row["monthly_posts"] = min(plan.monthly_posts, posts_a_month)
        tables.append(f"[{plan.name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in row.items()))
    path.write_text("\n\n".join(tables), "utf-8")
    return path
