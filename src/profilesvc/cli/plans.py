"""`profilesvc plans`: list the plans and assign them to users."""

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

app = typer.Typer(name="plans", help="Manage plans.", no_args_is_help=True)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all plans."""
    from profilesvc.bootstrap import open_plans
    from profilesvc.settings import load

    rows = [plan.model_dump(mode="json") for plan in open_plans(load()).values()]
    if not as_json:  # the list of syncable fields is too wide for a table
        rows = [{name: value for name, value in row.items() if name != "syncable"} for row in rows]
    show(rows, as_json)


@app.command()
def assign(email: str, plan: str, as_json: AsJson = False) -> None:
    """Change a user's plan. Keys of locations beyond the plan are deactivated; keys within it are reactivated."""
    from profilesvc.operations import operator

    show(run(lambda services: operator.assign_plan(services, email, plan))._asdict(), as_json)
