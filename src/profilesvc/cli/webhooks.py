"""`profilesvc webhooks` and `profilesvc events`: what is delivered, and what happens."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from profilesvc.cli._process.stopping import until_stopped
from profilesvc.cli.opening import Id, run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.services.context import Services

app = typer.Typer(name="webhooks", help="Show and switch the webhooks of all users.", no_args_is_help=True)
events_app = typer.Typer(name="events", help="Show the events of a user.", no_args_is_help=True)
_POLL_SECONDS = 1.0
_PAGE = 100


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the webhooks of all users, oldest first."""
    from profilesvc.operations.notify import webhooks

    show([row._asdict() for row in run(webhooks.listing)], as_json)


@app.command()
def backlog(as_json: AsJson = False) -> None:
    """Print how many deliveries are due, and for how long the oldest one is."""
    from profilesvc.operations.notify import webhooks

    show({**run(webhooks.backlog)}, as_json)


@app.command()
def disable(owner_id: Id, webhook_id: Id, as_json: AsJson = False) -> None:
    """Disable a webhook. Its owner can enable it again."""
    from profilesvc.operations.notify import webhooks

    show(run(lambda services: webhooks.switch(services, owner_id, webhook_id, enabled=False))._asdict(), as_json)


@app.command()
def enable(owner_id: Id, webhook_id: Id, as_json: AsJson = False) -> None:
    """Enable a webhook."""
    from profilesvc.operations.notify import webhooks

    show(run(lambda services: webhooks.switch(services, owner_id, webhook_id, enabled=True))._asdict(), as_json)


@events_app.callback()
def events() -> None:
    """Show the events of a user."""


@events_app.command()
def tail(
    email: str,
    follow: Annotated[bool, typer.Option("--follow/--once", help="Wait for new events, until Ctrl-C.")] = True,
) -> None:
    """Print the events of a user as JSON, one per line: the last 100, then new ones."""
    with until_stopped():
        run(lambda services: _tail(services, email, follow=follow))


async def _tail(services: "Services", email: str, *, follow: bool) -> None:
    from profilesvc.services import events as service
    from profilesvc.services.users import find_user
    from profilesvc.storage import events

    async with services.storage.read() as session:
        user = await find_user(session, email)
        after = max(0, await events.last(session, user.id) - _PAGE)
    while True:
        async with services.storage.read() as session:
            rows = await events.page(session, user.id, after, [], None, _PAGE)
        for row in rows:
            typer.echo(service.published(user.id, row).model_dump_json())
            after = row.id
        if not follow and len(rows) < _PAGE:
            return
        if len(rows) < _PAGE:
            await asyncio.sleep(_POLL_SECONDS)
