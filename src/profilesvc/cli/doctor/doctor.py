"""`profilesvc doctor`: check a deployment."""

import asyncio
from typing import Annotated

import typer

from profilesvc.cli.doctor.check import Check
from profilesvc.cli.show import AsJson, say, show


def doctor(
    url: Annotated[
        str | None,
        typer.Argument(
            help="Base URL of a deployed service to check from outside (default: check the local settings)."
        ),
    ] = None,
    ready: Annotated[
        bool, typer.Option("--ready", help="Check only whether the server on this machine accepts requests.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the server, for --ready.")] = 8000,
    as_json: AsJson = False,
) -> None:
    """Check a deployment. Print a hint for each problem, and exit with code 1 if a check fails."""
    from profilesvc.cli.doctor import outside as checks_outside

    if ready and url is not None:
        raise typer.BadParameter("--ready asks the server on this machine: remove the URL")
    if ready:
        checks = [checks_outside.ready(port)]
    else:
        checks = _inside() if url is None else list(checks_outside.outside(url.rstrip("/")))
    if as_json:
        show([check._asdict() for check in checks], as_json)
    else:
        for check in checks:
            hint = f" ({check.hint})" if check.hint else ""
            say(f"{check.status:<5} {check.name:<13} {check.message}{hint}")
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(1)


def _inside() -> list[Check]:
    from profilesvc.cli.doctor.checks import inside
    from profilesvc.cli.opening import command_settings
    from profilesvc.settings import SettingsError

    try:
        settings = command_settings()
    except SettingsError as error:
        return [Check("settings", "fail", str(error), "correct the environment or .env")]

    async def collect() -> list[Check]:
        return [check async for check in inside(settings)]

    return asyncio.run(collect())
