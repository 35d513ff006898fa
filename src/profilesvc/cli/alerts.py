"""`profilesvc alerts`: whether alarms are held back, and their release."""

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

app = typer.Typer(name="alerts", help="Show and release alarms that are held back.", no_args_is_help=True)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Print since when alarms are held back because many sites fell silent together."""
    from profilesvc.domain.time import iso_or_none
    from profilesvc.operations.notify import sweep

    since = run(sweep.held_since)
    show({"held_since": iso_or_none(since)}, as_json)


@app.command()
def release(as_json: AsJson = False) -> None:
    """Publish what is held back with the next sweep, within a minute."""
    from profilesvc.operations.notify import sweep

    run(sweep.release)
    show({"released": True}, as_json)
