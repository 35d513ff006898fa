"""Commands in this process."""

import json
from collections.abc import Callable
from typing import Any

from typer.testing import CliRunner, Result

from profilesvc.cli import app
from support.api import ALICE

Run = Callable[..., Result]


def run_command(*words: str) -> Result:
    """A command as typed."""
    return CliRunner().invoke(app, list(words), prog_name="profilesvc")


def printed(result: Result) -> Any:
    """The JSON of a command that succeeded."""
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def refused(result: Result, code: int = 1) -> str:
    """Return the message of a failed command, and check that stdout is empty."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert code == 2 or result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def create_key(run: Run, *more: str) -> Any:
    """A key of Alice's for locations/111."""
    site = ("--name", "Site", "--business", "10", "--location", "111")
    return printed(run("keys", "create", ALICE, *site, *more, "--json"))
