"""`profilesvc keys`: manage the API keys of all users."""

from typing import TYPE_CHECKING, Annotated

import typer

from profilesvc.cli.opening import LARGEST, run
from profilesvc.cli.show import AsJson, show
from profilesvc.contract.common import DeactivationReason
from profilesvc.contract.json import JsonObject

if TYPE_CHECKING:
    from profilesvc.contract.audit import AuditTrail
    from profilesvc.contract.keys import KeyCreated, KeyEntry
    from profilesvc.services.context import Services

app = typer.Typer(name="keys", help="Manage API keys.", no_args_is_help=True)
Version = Annotated[
    int | None,
    typer.Option(min=1, max=LARGEST, help="Version of the billing event; a late or repeated event changes nothing."),
]


@app.command()
def create(  # noqa: PLR0913 - Typer makes an option of each parameter
    email: Annotated[str, typer.Argument(help="E-mail address of the owner.")],
    name: Annotated[str, typer.Option(help="1 to 100 characters.")],
    business: Annotated[int, typer.Option(min=1, max=LARGEST, help="Id of one of the owner's businesses.")],
    location: Annotated[str, typer.Option(help="locations/<id>; an unassigned location is assigned to the business.")],
    domain: Annotated[str | None, typer.Option(help="Primary domain of the site.")] = None,
    allowed_domain: Annotated[list[str] | None, typer.Option(help="Another allowed domain (repeatable).")] = None,
    permission: Annotated[
        list[str] | None, typer.Option(help="business.read or business.write (repeatable; default: both).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key. Its secret is printed now and cannot be shown again."""
    body = {
        "name": name,
        "business_id": business,
        "assigned_location_id": location,
        "primary_domain": domain,
        "allowed_domains": allowed_domain or None,
        "permissions": permission or None,
    }
    show(run(lambda services: _create(services, email, body)).model_dump(), as_json)


async def _create(services: "Services", email: str, body: JsonObject) -> "KeyCreated":
    from profilesvc.api.parsing import checked
    from profilesvc.contract.keys import KeyCreate
    from profilesvc.operations import operator
    from profilesvc.services import credentials

    owner = await operator.act_for(services, email)
    return await credentials.create(services, owner, checked(KeyCreate, body, "body"))


@app.command("replace-pepper")
def replace_pepper(
    yes: Annotated[bool, typer.Option("--yes", help="Replace it without asking.")] = False, as_json: AsJson = False
) -> None:
    """Accept the pepper that is configured now. The secrets of all keys and webhooks end with the former pepper."""
    from profilesvc.services import pepper

    if not yes:
        typer.confirm("End the secrets of all keys and webhooks? This cannot be undone.", abort=True, err=True)
    ended = run(pepper.replace, accepts_new_pepper=True)
    show({"ended_secrets": ended}, as_json)


@app.command("list")
def list_all(
    email: Annotated[str | None, typer.Argument(help="E-mail address of the owner (default: all owners).")] = None,
    revoked: Annotated[bool, typer.Option("--revoked", help="Include revoked keys.")] = False,
    as_json: AsJson = False,
) -> None:
    """List keys, newest first."""
    entries = run(lambda services: _list(services, email, revoked))
    show([key.model_dump() for key in entries], as_json)


async def _list(services: "Services", email: str | None, revoked: bool) -> "list[KeyEntry]":
    from profilesvc.contract.common import MAX_LIMIT
    from profilesvc.contract.keys import KeyListQuery
    from profilesvc.operations import operator
    from profilesvc.services import keys

    owner = None if email is None else await operator.act_for(services, email)
    query, entries = KeyListQuery(include_revoked="true" if revoked else "false", limit=MAX_LIMIT), []
    while True:
        page = await keys.list_all(services, owner, query)
        entries += page.credentials
        if page.next_before is None:
            return entries
        query = query.model_copy(update={"before": page.next_before})


@app.command()
def revoke(client_id: str, as_json: AsJson = False) -> None:
    """Revoke a key and all its tokens permanently."""
    from profilesvc.services import keys

    show(run(lambda services: keys.revoke(services, None, client_id)).model_dump(), as_json)


def _check_version(version: int | None, reason: DeactivationReason | None) -> None:
    if version is not None and reason != "billing_issue":
        raise typer.BadParameter("requires --reason billing_issue", param_hint="--version")


@app.command()
def deactivate(
    client_id: str,
    reason: Annotated[DeactivationReason, typer.Option()],
    version: Version = None,
    as_json: AsJson = False,
) -> None:
    """Deactivate a key for a reason. A key can be deactivated for several reasons; the most severe is shown."""
    from profilesvc.services import keys

    _check_version(version, reason)
    done = run(lambda services: keys.deactivate(services, client_id, reason, version=version))
    show({**done.standing.model_dump(), "changed": done.changed}, as_json)


@app.command()
def reactivate(
    client_id: str,
    reason: Annotated[DeactivationReason | None, typer.Option(help="Lift only this hold (default: all).")] = None,
    roll: Annotated[
        bool, typer.Option("--roll", help="Give the key a new secret; the old secret and all tokens end.")
    ] = False,
    version: Version = None,
    as_json: AsJson = False,
) -> None:
    """Lift the holds of a key. A security concern requires --roll. A hold of a plan that is too small stays."""
    from profilesvc.services import keys

    _check_version(version, reason)
    done = run(lambda services: keys.reactivate(services, client_id, reason, roll=roll, version=version))
    secret = {} if done.rolled is None else done.rolled.model_dump(include={"client_secret", "warning"})
    show({**done.standing.model_dump(), "lifted": done.lifted, "left": done.remaining, **secret}, as_json)


@app.command()
def roll(
    client_id: str,
    overlap: Annotated[
        int, typer.Option(min=0, max=604_800, help="Seconds during which the old secret stays valid.")
    ] = 86_400,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret and print it. With --overlap 0 the old secret and all tokens end immediately."""
    from profilesvc.contract.keys import KeyRoll
    from profilesvc.services import credentials

    body = KeyRoll(overlap_seconds=overlap)
    show(run(lambda services: credentials.roll(services, None, client_id, body)).model_dump(), as_json)


@app.command()
def audit(
    client_id: Annotated[str | None, typer.Argument(help="Client id of a key (default: all keys).")] = None,
    user: Annotated[
        str | None, typer.Option(help="E-mail address of a user; lists their events and those of their keys.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 50,
    before: Annotated[str | None, typer.Option(help="next_before of the previous page.", metavar="ID")] = None,
    as_json: AsJson = False,
) -> None:
    """List the events of a key, a user or all keys, newest first (kept for 400 days)."""
    if client_id is not None and user is not None:
        raise typer.BadParameter("cannot be combined with a client id", param_hint="--user")
    trail = run(lambda services: _audit(services, client_id, user, {"limit": limit, "before": before})).model_dump()
    if as_json:
        show(trail, as_json)
    else:
        show([{**event, "details": _words(event["details"])} for event in trail["events"]], as_json)


def _words(details: JsonObject) -> str:
    return " ".join(f"{name}={value}" for name, value in details.items()) or "-"


async def _audit(services: "Services", client_id: str | None, user: str | None, page: JsonObject) -> "AuditTrail":
    from profilesvc.api.parsing import checked
    from profilesvc.contract.audit import AuditQuery
    from profilesvc.operations import operator
    from profilesvc.services import audit

    query = checked(AuditQuery, page, "body")
    if client_id is not None:
        return await audit.key_trail(services, None, client_id, query)
    owner = None if user is None else (await operator.act_for(services, user)).owner_id
    return await audit.user_trail(services, owner, query)
