"""`profilesvc businesses`: what the API has no route for."""

from typing import Annotated

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

app = typer.Typer(name="businesses", help="Businesses of users.", no_args_is_help=True)


@app.command()
def add(email: str, name: str, as_json: AsJson = False) -> None:
    """Add a business of a user."""
    from profilesvc.operations import operator

    business_id = run(lambda services: operator.add_business(services, email, name))
    show({"id": business_id, "name": name.strip()}, as_json)


@app.command("list")
def list_all(email: Annotated[str | None, typer.Argument()] = None, as_json: AsJson = False) -> None:
    """List the businesses of a user, or all."""
    from profilesvc.operations import operator

    found = run(lambda services: operator.list_businesses(services, email))
    show([{"id": row[0], "user_id": row[1], "name": row[2]} for row in found], as_json)
