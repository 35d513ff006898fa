"""`profilesvc doctor`: is this deployment well?"""

import asyncio
from typing import Annotated

import typer

from profilesvc.cli.checks import Check
from profilesvc.cli.show import AsJson, show


def doctor(
    url: Annotated[
        str | None, typer.Argument(help="A deployed service, looked at from outside; else the settings here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a deployment and print a hint for each problem; exit code 1 if a check fails."""
    found = _inside() if url is None else _outside(url)
    if as_json:
        show([check._asdict() for check in found], as_json)
    else:
        for check in found:
            hint = f" ({check.hint})" if check.hint else ""
            typer.echo(f"{check.status:<5} {check.name:<13} {check.message}{hint}")
    if any(check.status == "fail" for check in found):
        raise typer.Exit(1)


def _inside() -> list[Check]:
    from profilesvc.cli.checks import inside
    from profilesvc.cli.opening import command_settings
    from profilesvc.settings import SettingsError

    try:
        settings = command_settings()
    except SettingsError as error:
        return [Check("settings", "fail", str(error), "correct the environment or .env")]

    async def collected() -> list[Check]:
        return [check async for check in inside(settings)]

    return asyncio.run(collected())


def _outside(url: str) -> list[Check]:
    from profilesvc.cli.checks_outside import outside

    return list(outside(url.rstrip("/")))
