"""`profilesvc signing-keys`: manage the keys that sign tokens."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from profilesvc.domain.signing_keys import Algorithm
    from profilesvc.tokens.signing_keys import KeyInfo

app = typer.Typer(
    name="signing-keys",
    help="Manage signing keys. RS256 keys sign access tokens, HS256 keys sign refresh tokens.",
    no_args_is_help=True,
)


def _row(info: "KeyInfo") -> dict[str, str | None]:
    from profilesvc.domain.time import iso, iso_or_none

    dates = info.dates
    return {
        "kid": dates.kid,
        "alg": dates.alg,
        "state": info.state,
        "created_at": iso(dates.created_at),
        "active_from": iso(dates.active_from),
        "removed_at": iso_or_none(dates.removed_at),
    }


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all keys, including removed ones, oldest first."""
    show([_row(info) for info in run(lambda services: services.signing_keys.listing())], as_json)


@app.command()
def rotate(
    refresh: Annotated[bool, typer.Option("--refresh", help="Rotate the key of refresh tokens instead.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Sign with the new key as soon as all processes have it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create the next key, which signs after TOKENS__ANNOUNCE_DAYS. Tokens of the previous key stay valid."""
    alg: Algorithm = "HS256" if refresh else "RS256"
    show(_row(run(lambda services: services.signing_keys.rotate(alg, at_once=now))), as_json)


class _WithKid(TyperCommand):
    """A command whose argument may start with a dash, because every 64th kid does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `--` before everything that is not an option."""
        options = [word for word in args if word in ("-h", "--help", "--json")]
        rest = [word for word in args if word not in (*options, "--")]
        return super().parse_args(ctx, [*options, "--", *rest])


@app.command(cls=_WithKid)
def remove(kid: str, as_json: AsJson = False) -> None:
    """Remove a leaked key. All tokens that it signed end; clients get new tokens with their credentials."""
    show(_row(run(lambda services: services.signing_keys.remove(kid))), as_json)
