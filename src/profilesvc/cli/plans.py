"""`profilesvc plans`: the catalogue, and the plans of users."""

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

app = typer.Typer(name="plans", help="Plans.", no_args_is_help=True)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the catalogue, in its order."""
    from profilesvc.bootstrap import open_plans
    from profilesvc.settings import load

    rows = [plan.model_dump(mode="json") for plan in open_plans(load())]
    if not as_json:  # the list of fields is too wide for a table
        rows = [{name: value for name, value in row.items() if name != "syncable"} for row in rows]
    show(rows, as_json)


@app.command()
def assign(email: str, plan: str, as_json: AsJson = False) -> None:
    """Change a user's plan; keys of locations beyond it are held, keys within it set free."""
    from profilesvc.operations import operator

    show(run(lambda services: operator.assign_plan(services, email, plan))._asdict(), as_json)
