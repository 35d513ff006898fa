"""`profilesvc signing-keys`: the keys that sign tokens."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.services.signing_keys import KeyInfo

app = typer.Typer(name="signing-keys", help="The keys that sign tokens.", no_args_is_help=True)


def _row(info: "KeyInfo") -> dict[str, Any]:
    from profilesvc.domain.world import iso

    dates = info.dates._asdict()
    kid = dates.pop("kid")
    return {"kid": kid, "state": info.state} | {name: at if at is None else iso(at) for name, at in dates.items()}


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all keys, removed ones too, oldest first."""
    from profilesvc.services import signing_keys

    show([_row(info) for info in run(signing_keys.listing)], as_json)


@app.command()
def rotate(
    now: Annotated[bool, typer.Option("--now", help="Let it sign as soon as every process knows it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Announce the next key; it signs after TOKENS__ANNOUNCE_DAYS. Tokens of the previous key stay valid."""
    from profilesvc.services import signing_keys

    show(_row(run(lambda services: signing_keys.rotate(services, at_once=now))), as_json)


class _WithKid(TyperCommand):
    """A command whose argument can start with a dash, like every 64th kid: only its own options are options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a `--` before what is no option."""
        options = [word for word in args if word in ("-h", "--help", "--json")]
        rest = [word for word in args if word not in (*options, "--")]
        return super().parse_args(ctx, [*options, "--", *rest])


@app.command(cls=_WithKid)
def remove(kid: str, as_json: AsJson = False) -> None:
    """End a key that leaked and every token that it signed; sites get new tokens by their credentials."""
    from profilesvc.services import signing_keys

    show(_row(run(lambda services: signing_keys.remove(services, kid))), as_json)
