"""`profilesvc businesses`: add and list businesses, which the API cannot do."""

from typing import Annotated

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

app = typer.Typer(name="businesses", help="Manage businesses.", no_args_is_help=True)


@app.command()
def add(email: str, name: str, as_json: AsJson = False) -> None:
    """Add a business for a user."""
    from profilesvc.operations import operator

    business_id = run(lambda services: operator.add_business(services, email, name))
    show({"id": business_id, "name": name.strip()}, as_json)


@app.command("list")
def list_all(email: Annotated[str | None, typer.Argument()] = None, as_json: AsJson = False) -> None:
    """List the businesses of a user (default: of all users)."""
    from profilesvc.operations import operator

    rows = run(lambda services: operator.list_businesses(services, email))
    show([{"id": row[0], "user_id": row[1], "name": row[2]} for row in rows], as_json)
