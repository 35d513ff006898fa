"""`profilesvc locations`: import locations from the provider and assign them."""

import re
from typing import Annotated

import typer

from profilesvc.cli.opening import Id, run
from profilesvc.cli.show import AsJson, show
from profilesvc.services.logins import importing

app = typer.Typer(name="locations", help="Manage locations.", no_args_is_help=True)
_ACCOUNT = re.compile(r"accounts/[A-Za-z0-9_-]{1,64}\Z")


def _account(value: str) -> str:
    if not _ACCOUNT.match(value):
        raise typer.BadParameter("must be a provider account such as accounts/1")
    return value


def _location(value: str) -> str:
    from profilesvc.contract.common import location_name

    try:
        return location_name(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command("import")
def import_account(
    email: str,
    account: Annotated[str, typer.Option(help="Provider account, such as accounts/1.", callback=_account)],
    as_json: AsJson = False,
) -> None:
    """Import all locations of a provider account for a user."""

    names = run(lambda services: importing.import_account(services, email, account), provider=True)
    show({"email": email, "account": account, "locations": names}, as_json)


@app.command()
def assign(
    location: Annotated[str, typer.Argument(callback=_location)], business_id: Id, as_json: AsJson = False
) -> None:
    """Assign a location to a business of its owner."""
    from profilesvc.services import locations

    run(lambda services: locations.assign(services, location, business_id))
    show({"location": location, "business_id": business_id}, as_json)


@app.command()
def unassign(location: Annotated[str, typer.Argument(callback=_location)], as_json: AsJson = False) -> None:
    """Unassign a location from its business. It must not have active keys. This frees a place in the plan."""
    from profilesvc.operations import operator

    lifted = run(lambda services: operator.unassign_location(services, location))
    show({"location": location, "lifted": lifted}, as_json)
