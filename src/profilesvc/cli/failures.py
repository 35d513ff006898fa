"""Expected failures of commands: one clear line on stderr and exit code 1, never a traceback."""

from typing import Any

import typer
from typer.core import TyperGroup


class Commands(TyperGroup):
    """The root of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            line = expected(error)
            if line is None:
                raise
            typer.echo(f"profilesvc: {line}", err=True)
            raise typer.Exit(1) from None


def expected(error: Exception) -> str | None:
    """The line for a failure that is not a defect, None for a defect."""
    from profilesvc.contract.errors import SERVICE_UNAVAILABLE
    from profilesvc.domain.errors import ServiceError
    from profilesvc.settings import SettingsError

    if isinstance(error, ServiceError):
        if error.kind is SERVICE_UNAVAILABLE and isinstance(error.__cause__, Exception):
            return expected(error.__cause__) or error.message
        return error.message
    if isinstance(error, SettingsError):
        return str(error)
    return _database(error) or (_one_line(error) if isinstance(error, OSError) else None)


def _database(error: Exception) -> str | None:
    from sqlalchemy import exc

    refused = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, TimeoutError, ConnectionError)
    if isinstance(error, refused) or getattr(error, "sqlstate", None):
        return f"the database does not answer: {_one_line(getattr(error, 'orig', None) or error)}"
    return None


def _one_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
