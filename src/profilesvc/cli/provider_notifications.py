"""`profilesvc provider notifications`: the change feed (docs/notifications.md)."""

from typing import TYPE_CHECKING

import typer

from profilesvc.cli.opening import command_settings, run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.operations.feed.notifications import AccountFeed

app = typer.Typer(name="notifications", help="The provider's change feed.", no_args_is_help=True)


@app.command()
def enable(as_json: AsJson = False) -> None:
    """Let the provider publish the changes of all accounts to the topic. The exit code is 1 if one fails."""
    from profilesvc.operations.feed import notifications

    if not command_settings().notifications.enabled:
        typer.echo("PROFILESVC_NOTIFICATIONS__TOPIC is not set: see docs/notifications.md", err=True)
        raise typer.Exit(1)
    _show(run(notifications.enable, provider=True), as_json)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show what the provider publishes of each account. The exit code is 1 if it is not what the service needs."""
    from profilesvc.operations.feed import notifications

    _show(run(notifications.status, provider=True), as_json)


def _show(rows: "list[AccountFeed]", as_json: bool) -> None:
    show([row._asdict() for row in rows], as_json)
    if not all(row.works for row in rows):
        raise typer.Exit(1)
