"""The command line: one module per group of commands; each opens the same services as the server."""

import typer

from profilesvc.cli import (
    businesses,
    db,
    demo,
    doctor,
    emulator,
    keys,
    lab,
    locations,
    openapi,
    plans,
    serve,
    signing_keys,
    simulate,
    users,
)
from profilesvc.cli.failures import Commands
from profilesvc.cli.logs import log_to_stderr
from profilesvc.loopback import spare_loopback

app = typer.Typer(
    cls=Commands,
    help="Business Profile Management Service.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("openapi")(openapi.openapi)
app.command("lab")(lab.lab)
for group in (emulator, db, users, businesses, keys, plans, locations, signing_keys, simulate):
    app.add_typer(group.app)


def main() -> None:
    """The entry point: 0, or 1 with one line on stderr, or 2 for wrong usage."""
    log_to_stderr()
    spare_loopback()
    app(prog_name="profilesvc")
