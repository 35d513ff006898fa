"""`profilesvc provider`: the logins at the provider that owners have connected."""

from typing import TYPE_CHECKING

import typer

from profilesvc.cli import provider_notifications
from profilesvc.cli.opening import Id, run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.provider.port import QuotaStanding
    from profilesvc.services.context import Services

app = typer.Typer(
    name="provider", help="Manage owners' logins at the provider, its quota and its change feed.", no_args_is_help=True
)
connections = typer.Typer(name="connections", help="The logins that owners have connected.", no_args_is_help=True)
app.add_typer(connections)
app.add_typer(provider_notifications.app)


@app.command()
def quota(as_json: AsJson = False) -> None:
    """Show the requests per minute of each API, and those of the last minute."""
    apis, is_shared = run(_quota, provider=True)
    show(
        [{"api": api, "requests_per_minute": limit, "used": used if is_shared else None} for api, limit, used in apis],
        as_json,
    )
    if not is_shared:
        typer.echo("Each process counts on its own, so only /metrics shows what they have used.", err=True)


async def _quota(services: "Services") -> tuple[list["QuotaStanding"], bool]:
    return await services.provider.quota(), services.settings.limits.shared


@connections.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the logins of all users, without tokens."""
    from profilesvc.operations import provider_logins

    show([row._asdict() for row in run(provider_logins.listing)], as_json)


@connections.command()
def check(owner_id: Id, connection_id: Id, as_json: AsJson = False) -> None:
    """Ask the provider which accounts a login sees. The exit code is 1 if the login does not work."""
    from profilesvc.operations import provider_logins

    result = run(lambda services: provider_logins.check(services, owner_id, connection_id), provider=True)
    show(result, as_json)
    if not result["works"]:
        raise typer.Exit(1)


@connections.command()
def disconnect(owner_id: Id, connection_id: Id, as_json: AsJson = False) -> None:
    """End a login, delete the data of its locations here, and deactivate their keys. Its owner can connect it again."""
    from profilesvc.operations import provider_logins

    done = run(lambda services: provider_logins.disconnect(services, owner_id, connection_id), provider=True)
    show(done.model_dump(), as_json)
