"""`profilesvc emulator`: the provider's stand-in as a server of its own."""

from typing import Annotated

import typer

from profilesvc.cli.listening import Host, announce, bound
from profilesvc.cli.stopping import until_stopped

app = typer.Typer(name="emulator", help="The provider emulator.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """The provider emulator."""


@app.command()
def serve(host: Host = "127.0.0.1", port: Annotated[int, typer.Option(min=0, max=65535)] = 8001) -> None:
    """Serve the emulator alone, for several services or for testing a plugin."""
    from profilesvc.domain.world import SystemClock, SystemEntropy
    from profilesvc.fixtures import load_world
    from profilesvc.provider.connect import EMULATOR_FILE
    from profilesvc.provider.emulator.app import create_emulator
    from profilesvc.serving import serve_forever
    from profilesvc.settings import load, refuse_in_production

    refuse_in_production("the emulator")
    settings = load()
    with until_stopped(), bound(host, port) as listener:
        app = create_emulator(
            settings.data_dir / EMULATOR_FILE, clock=SystemClock(), entropy=SystemEntropy(), world=load_world()
        )
        if not serve_forever(app, [listener], announce(host, listener), lambda: None):
            raise typer.Exit(1)
