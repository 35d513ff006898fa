"""`profilesvc users`: manage the users of the dashboard and their tokens."""

from typing import TYPE_CHECKING, Annotated

import typer

from profilesvc.cli.opening import LARGEST, run
from profilesvc.cli.show import AsJson, show
from profilesvc.contract.json import JsonObject

if TYPE_CHECKING:
    from profilesvc.storage.users import UserState

app = typer.Typer(name="users", help="Manage the users of the dashboard.", no_args_is_help=True)


def _row(user: "UserState") -> JsonObject:
    from profilesvc.domain.time import iso_or_none

    suspended_at = iso_or_none(user.suspended_at)
    return {"id": user.id, "email": user.email, "name": user.name, "plan": user.plan, "suspended_at": suspended_at}


@app.command()
def add(
    email: str,
    name: Annotated[
        str | None, typer.Option(help="Display name (default: the part of the e-mail address before the @).")
    ] = None,
    plan: Annotated[str | None, typer.Option(help="Plan (default: the first one).")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a user."""
    from profilesvc.operations import operator

    show(_row(run(lambda services: operator.add_user(services, email, name, plan))), as_json)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all users, oldest first."""
    from profilesvc.operations import operator

    show([_row(user) for user in run(operator.list_users)], as_json)


@app.command()
def token(email: str, as_json: AsJson = False) -> None:
    """Print a user token."""
    from profilesvc.services import tokens

    minted = run(lambda services: tokens.user_token(services, email))
    if as_json:
        show({"access_token": minted}, as_json)
    else:
        typer.echo(minted)


_Issuer = Annotated[str | None, typer.Option(help="Issuer (default: the configured one).")]


@app.command()
def link(
    email: str,
    subject: Annotated[str, typer.Argument(help="The `sub` of the user's ID tokens.")],
    issuer: _Issuer = None,
    as_json: AsJson = False,
) -> None:
    """Link a login of the identity provider to a user."""
    from profilesvc.operations import operator

    show(run(lambda services: operator.link(services, email, subject, issuer))._asdict(), as_json)


@app.command()
def unlink(subject: str, issuer: _Issuer = None, as_json: AsJson = False) -> None:
    """Remove the link between a login and a user."""
    from profilesvc.operations import operator

    show(run(lambda services: operator.unlink(services, subject, issuer))._asdict(), as_json)


@app.command()
def suspend(email: str, as_json: AsJson = False) -> None:
    """Suspend a user and all of their keys."""
    from profilesvc.operations import operator

    show(_row(run(lambda services: operator.suspend(services, email))), as_json)


@app.command()
def resume(email: str, as_json: AsJson = False) -> None:
    """Resume a suspended user."""
    from profilesvc.operations import operator

    show(_row(run(lambda services: operator.resume(services, email))), as_json)


@app.command()
def logout(email: str, as_json: AsJson = False) -> None:
    """End all tokens of a user."""
    from profilesvc.operations import operator

    show(_row(run(lambda services: operator.logout(services, email))), as_json)


@app.command()
def delete(
    email: str,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a user with all their data. Pseudonymous audit events stay for 400 days."""
    from profilesvc.services.accounts import deletion

    planned = run(lambda services: deletion.delete_user(services, email, dry_run=True))
    if not dry_run:
        if not yes:
            total = sum(planned.rows.values())
            typer.confirm(f"Delete {planned.email} and {total} rows? This cannot be undone.", abort=True, err=True)
        planned = run(lambda services: deletion.delete_user(services, email))
    rows = [{"table": name, "rows": count} for name, count in planned.rows.items() if count or as_json]
    if as_json:
        show({"email": planned.email, "requested_at": planned.requested_at, "rows": planned.rows}, as_json)
    else:
        show(rows, as_json)
        typer.echo(f"{planned.email}: {'would be deleted' if dry_run else 'deleted'}")


@app.command()
def billing(
    email: str,
    paid: Annotated[bool, typer.Option("--paid/--failed", help="Whether the invoices are paid.")],
    version: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Version of the event; a late or repeated event changes nothing.")
    ],
    as_json: AsJson = False,
) -> None:
    """Record a billing event. Unpaid invoices deactivate all keys of the user."""
    from profilesvc.services import holds

    effect = run(lambda services: holds.billing_event(services, email, paid, version))
    show({"email": email, **effect._asdict()}, as_json)
