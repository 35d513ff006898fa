"""`profilesvc emulator`: serve the provider emulator without the service."""

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from profilesvc.cli._process.listening import Host, announce, bound, print_once
from profilesvc.cli._process.stopping import until_stopped
from profilesvc.cli.opening import write_private
from profilesvc.settings import Settings

if TYPE_CHECKING:
    from profilesvc.emulator.access import ControlAccess

CONTROL_FILE = "emulator_token"
app = typer.Typer(name="emulator", help="Run the provider emulator.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Run the provider emulator."""


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 picks a free one.")] = 8001,
) -> None:
    """Serve the emulator without the service, for several services or for tests of a plugin."""
    from profilesvc.cli._process.sqlite_lock import exclusive_emulator
    from profilesvc.domain.entropy import SystemEntropy
    from profilesvc.domain.time import SystemClock
    from profilesvc.emulator.app import create_emulator
    from profilesvc.emulator.embedded import EMULATOR_FILE
    from profilesvc.fixtures import load_world
    from profilesvc.server.serving import serve_forever
    from profilesvc.settings import forbid_in_production, load

    forbid_in_production("the emulator")
    settings = load()
    with until_stopped(), bound(host, port) as listener, exclusive_emulator(settings):
        access, path = new_access(settings, host), settings.data_dir / EMULATOR_FILE
        app = create_emulator(path, clock=SystemClock(), entropy=SystemEntropy(), world=load_world(), access=access)
        announced = announce(host, listener)

        def ready() -> None:
            announced()
            print_once(control_line(settings, access))

        if not serve_forever(app, [listener], ready, lambda: None):
            raise typer.Exit(1)


def new_access(settings: Settings, host: str) -> "ControlAccess":
    """Return the access of the control API with a new token, and store the token in DATA_DIR for scripts."""
    from profilesvc.emulator.access import ControlAccess

    access = ControlAccess(secrets.token_urlsafe(32), host)
    write_private(settings.data_dir / CONTROL_FILE, access.token + "\n")
    return access


def control_line(settings: Settings, access: "ControlAccess") -> str:
    """Return the line that shows the control token and its file."""
    return f"control token  {access.token} (for /__emulator/; also in {settings.data_dir / CONTROL_FILE})"
