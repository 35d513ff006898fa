"""`profilesvc keys`: the operator's side of the key life cycle (D-27)."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.contract.keys import KeyCreated, KeyList
    from profilesvc.services.context import Services

app = typer.Typer(name="keys", help="API keys.", no_args_is_help=True)


class Reason(StrEnum):
    """Why a key is deactivated."""

    SECURITY_CONCERN = "security_concern"
    BILLING_ISSUE = "billing_issue"
    PLAN_DOWNGRADE = "plan_downgrade"
    USER_REQUESTED = "user_requested"


@app.command()
def create(
    email: Annotated[str, typer.Argument(help="The owner.")],
    name: Annotated[str, typer.Option(help="1 to 100 characters.")],
    business: Annotated[int, typer.Option(help="Id of a business of the owner.")],
    location: Annotated[str, typer.Option(help="locations/<id>; an unassigned one is assigned to the business.")],
    domain: Annotated[str | None, typer.Option(help="The site's own domain.")] = None,
    allowed_domain: Annotated[list[str] | None, typer.Option(help="Another good domain; repeat it.")] = None,
    permission: Annotated[list[str] | None, typer.Option(help="business.read or business.write; both.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. Its secret is printed now and never again."""
    body = {
        "name": name,
        "business_id": business,
        "assigned_location_id": location,
        "primary_domain": domain,
        "allowed_domains": allowed_domain or None,
        "permissions": permission or None,
    }
    show(run(lambda services: _create(services, email, body)).model_dump(), as_json)


async def _create(services: "Services", email: str, body: dict[str, Any]) -> "KeyCreated":
    from profilesvc.api.parsing import checked
    from profilesvc.contract.keys import KeyCreate
    from profilesvc.services import keys, operator

    owner = await operator.act_for(services, email)
    return await keys.create(services, owner, checked(KeyCreate, body, "key"))


@app.command("list")
def list_all(
    email: Annotated[str | None, typer.Argument(help="The owner; everyone's keys without it.")] = None,
    revoked: Annotated[bool, typer.Option("--revoked", help="Revoked keys too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List keys, newest first."""
    found = run(lambda services: _list(services, email, revoked))
    show([key.model_dump() for key in found.credentials], as_json)


async def _list(services: "Services", email: str | None, revoked: bool) -> "KeyList":
    from profilesvc.services import keys, operator

    owner = None if email is None else await operator.act_for(services, email)
    return await keys.list_all(services, owner, revoked)


@app.command()
def revoke(client_id: str, as_json: AsJson = False) -> None:
    """Revoke a key and all tokens issued with it, for good."""
    from profilesvc.services import operator

    show(run(lambda services: operator.revoke_key(services, client_id)).model_dump(), as_json)


@app.command()
def deactivate(client_id: str, reason: Annotated[Reason, typer.Option()], as_json: AsJson = False) -> None:
    """Hold a key back for a reason; again is harmless."""
    from profilesvc.services import keys

    changed = run(lambda services: keys.deactivate(services, client_id, reason.value))
    show({"client_id": client_id, "deactivation_reason": reason.value, "changed": changed}, as_json)


@app.command()
def reactivate(client_id: str, as_json: AsJson = False) -> None:
    """Lift every hold of a key, except a security concern."""
    from profilesvc.services import keys

    lifted = run(lambda services: keys.reactivate(services, client_id))
    show({"client_id": client_id, "holds_lifted": lifted}, as_json)
