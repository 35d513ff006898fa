"""The command line, with one module per group of commands. Commands open the same services as the server."""

import atexit
import gc
from typing import Annotated

import typer

from profilesvc import __version__
from profilesvc.cli import (
    alerts,
    businesses,
    db,
    demo,
    emulator,
    keys,
    lab,
    locations,
    openapi,
    plans,
    provider,
    serve,
    signing_keys,
    simulate,
    users,
    webhooks,
)
from profilesvc.cli._process.logs import log_to_stderr
from profilesvc.cli.doctor import doctor
from profilesvc.cli.failures import Commands
from profilesvc.server.loopback import exempt_loopback

# Imports create no garbage. With the default threshold, a fifth of the CPU time until the first response of `serve` is
# spent on garbage collection. The start creates fewer objects than this, and then the server sets its own threshold.
_GARBAGE_THRESHOLD = 500_000

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"profilesvc {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Business Profile Management Service."""


app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("openapi")(openapi.openapi)
app.command("lab")(lab.lab)
for group in (emulator, db, users, businesses, keys, plans, locations, signing_keys):
    app.add_typer(group.app)
for group in (simulate, webhooks, alerts, provider):
    app.add_typer(group.app)
app.add_typer(webhooks.events_app)


def main() -> None:
    """Run the command line. Exit with 0, with 1 and one line on stderr, or with 2 for wrong usage."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # else Python collects garbage once more at its end: a third of a short command's time
    log_to_stderr()
    exempt_loopback()
    app(prog_name="profilesvc")
