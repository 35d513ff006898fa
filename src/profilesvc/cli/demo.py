"""`profilesvc demo`: the service, the emulator and demo data, with a key to try them."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from profilesvc.cli._process.listening import Port, announce, bound, print_once, publish, url_of, with_base_url
from profilesvc.cli._process.stopping import until_stopped
from profilesvc.cli.emulator import control_line, new_access
from profilesvc.cli.opening import write_private
from profilesvc.cli.show import utc
from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import ShiftedClock
from profilesvc.settings import PREFIX, NotificationSettings, Settings, SettingsError, forbid_in_production, load

if TYPE_CHECKING:
    import socket

    from quart import Quart

    from profilesvc.bootstrap import Runtime
    from profilesvc.dev_issuer.provider import DevIssuer
    from profilesvc.server.scope import App, Receive, Scope, Send
    from profilesvc.services.context import Services

HOST = "127.0.0.1"
OWNER = "alice@example.com"
_KEY = {
    "name": "Demo site",
    "business_id": 10,
    "assigned_location_id": "locations/111",
    "primary_domain": "harbour.example",
    "allowed_domains": ["localhost"],
}
_SWITCHES: dict[str, object] = {"rewrites": True}  # so that the demo shows what the real provider returns
_FEED = NotificationSettings(
    topic="projects/demo/topics/profiles", service_account="push@emulator.iam.gserviceaccount.com"
)
_SED = r"""sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p'"""
_CALLS = """
Get a token, list posts and sync. Paste these lines into a shell:

TOKEN=$(curl -s {url}/api/v1/auth/token -H 'Content-Type: application/json' -d '{grant}' | {extract})

curl -s '{url}/api/v1/posts?locationId={location}&pageSize=2' -H "Authorization: Bearer $TOKEN"

curl -s {url}/api/v1/sync/{id} -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{profile}'
"""


def demo(port: Port = 8000) -> None:
    """Run the service with demo data. Create a key, and serve the provider emulator on the next port."""
    from profilesvc.bootstrap import Runtime, create_app
    from profilesvc.cli._process.sqlite_lock import exclusive_server
    from profilesvc.server.serving import serve_forever

    forbid_in_production("the demo")
    settings = _demo_settings(load())
    with until_stopped(), bound(HOST, port) as listener, exclusive_server(settings), ExitStack() as opened:
        settings = with_base_url(settings, HOST, listener)
        runtime = Runtime(clock=ShiftedClock(), own_url=url_of(HOST, listener), switches=_SWITCHES)
        provider = opened.enter_context(_next_port(listener, port)) if settings.provider.embedded else None
        notes: list[str] = []
        if provider is not None:
            runtime.access = new_access(settings, HOST)
            notes.append(f"provider       {url_of(HOST, provider)} (the emulator; its controls are under /__emulator/)")
            notes.append(control_line(settings, runtime.access))
            notes.append("change feed    the emulator pushes its changes, and the dashboard shows them within a minute")
        app, announced = create_app(settings, runtime), announce(HOST, listener)
        key: JsonObject = {}

        def ready() -> None:
            announced()
            print_once(_introduction(url_of(HOST, listener), key, runtime.issuer, notes))

        both = app if provider is None else _TwoPorts(app, runtime, provider)
        listeners = [listener] if provider is None else [listener, provider]
        draining, services = app.extensions["profilesvc.draining"].set, _prepared(settings, runtime, key)
        if not serve_forever(both, listeners, ready, draining, opened=services):
            raise typer.Exit(1)


def _demo_settings(settings: Settings) -> Settings:
    """Return the settings with newcomers who sign in with an empty account, and with the emulator's change feed."""
    changed: dict[str, object] = {}
    if settings.with_dev_issuer:
        changed["identity"] = settings.identity.model_copy(update={"create_users": True})
    if settings.provider.embedded and not settings.notifications.enabled:
        changed["notifications"] = _FEED
    return settings.model_copy(update=changed)


class _TwoPorts:
    """One ASGI app that serves the service on one port and its embedded emulator on another."""

    def __init__(self, service: "Quart", runtime: "Runtime", provider: "socket.socket") -> None:
        self._service, self._runtime = service, runtime
        self._provider_port = provider.getsockname()[1]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Call the app of the port. The service's lifespan includes the emulator's."""
        on_provider = scope["type"] != "lifespan" and scope["server"][1] == self._provider_port
        app: App | None = self._runtime.emulator if on_provider else self._service
        assert app is not None, "the emulator runs as long as the service"
        await app(scope, receive, send)


def _next_port(listener: "socket.socket", requested: int) -> "socket.socket":
    """Bind a socket for the emulator, on the port after the service's or else on a free one."""
    port = listener.getsockname()[1] + 1
    if requested and port <= 65_535:
        with suppress(SettingsError):
            return bound(HOST, port)
    return bound(HOST, 0)


@asynccontextmanager
async def _prepared(settings: Settings, runtime: "Runtime", key: JsonObject) -> AsyncIterator[None]:
    """Open the services, seed an empty database, and fill in the demo key, a new one if there is no usable key.

    The emulator publishes what changes in any account with locations here, as after `provider notifications enable`.
    """
    from profilesvc.bootstrap import DEMO_KEY_FILE, open_services
    from profilesvc.fixtures import load_world
    from profilesvc.operations import seeding
    from profilesvc.operations.feed import notifications
    from profilesvc.services.tokens import verify_secret

    path = settings.data_dir / DEMO_KEY_FILE
    async with open_services(settings, runtime) as services:
        await seeding.load_if_empty(services, load_world())
        if settings.provider.embedded:
            await notifications.enable(services)
        usable = _stored_key(path)
        if await verify_secret(services, str(usable.get("client_id")), str(usable.get("client_secret"))) is None:
            usable = await _new_key(services)
            write_private(path, json.dumps(usable, indent=2) + "\n")
        key |= usable
        publish(settings)
        runtime.services = services
        yield


def _stored_key(path: Path) -> JsonObject:
    """Return the key that an earlier start stored, or an empty dict."""
    try:
        key = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return key if isinstance(key, dict) else {}


async def _new_key(services: "Services") -> JsonObject:
    from profilesvc.api.parsing import checked
    from profilesvc.contract.keys import KeyCreate
    from profilesvc.domain.errors import ServiceError
    from profilesvc.operations import operator
    from profilesvc.services import credentials

    try:
        owner = await operator.act_for(services, OWNER)
        created = await credentials.create(services, owner, checked(KeyCreate, _KEY, "body"))
    except ServiceError as error:
        raise SettingsError(
            f"the demo key cannot be created in this database ({error.message}); "
            f"set {PREFIX}DATA_DIR to a directory for the demo"
        ) from None
    return created.model_dump(include={"client_id", "client_secret", "name", "assigned_location_id", "created_at"})


def _introduction(url: str, key: JsonObject, issuer: "DevIssuer | None", provider: list[str]) -> str:
    lines = [
        "",
        f"dashboard      {url}/dashboard",
        f"client id      {key['client_id']}",
        f"client secret  {key['client_secret']}",
        f"location       {key['assigned_location_id']}",
        *([f"key created    {utc(key['created_at'])}"] if "created_at" in key else []),
        f"user token     {_command()} users token {OWNER}",
        f"API page       {url}/docs",
        f"guides         {url}/guides/ (`make docs` builds them)",
    ]
    if issuer is not None:
        lines.append(f"sign in        with OpenID Connect: issuer {issuer.url}, client {issuer.client_id}, no password")
    lines += provider
    grant = {"grant_type": "client_credentials", **{name: key[name] for name in ("client_id", "client_secret")}}
    calls = _CALLS.format(
        url=url,
        grant=json.dumps(grant, separators=(",", ":")),
        extract=_SED,
        location=key["assigned_location_id"],
        id=key["assigned_location_id"].removeprefix("locations/"),
        profile='{"websiteUri":"https://harbour.example/menu"}',
    )
    return "\n".join(lines) + "\n" + calls.rstrip("\n")


def _command() -> str:
    """Return the command line of this program, so that the printed line works when it is pasted."""
    program = Path(sys.argv[0])
    words = [sys.executable, "-m", "profilesvc"] if program.name == "__main__.py" else [sys.argv[0]]
    on_path = shutil.which(program.name)
    if on_path is not None and Path(on_path).absolute() == program.absolute():
        words = [program.name]
    data_dir = os.environ.get(f"{PREFIX}DATA_DIR")
    prefix = "" if not data_dir else f"{PREFIX}DATA_DIR={shlex.quote(str(Path(data_dir).absolute()))} "
    return prefix + shlex.join(words)
