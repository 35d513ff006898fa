"""The plan catalogue: features and limits of each plan as data, so that a new plan needs no release (D-90)."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from profilesvc.contract.provider.location import Location
from profilesvc.domain.messages import access_of
from profilesvc.domain.problems import problem_of
from profilesvc.domain.rates import Rate

WRITABLE = tuple(name for name, field in Location.model_fields.items() if access_of(field) is None)
_Count = Annotated[int, Field(ge=0)]


def _writable(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    for name in names or ():
        if name not in WRITABLE:
            raise ValueError(f"{name} is not a writable field of a Location")
    return names


Feature = Literal["posts", "reviews", "sync"]  # the names of fields of a plan


class Plan(BaseModel):
    """A plan: its features, posts per month, locations, live keys per location, webhooks, and the fields of a sync.

    If `syncable` is None, a sync may write every writable field of the provider's Location. `reads` is the rate of each
    key and each user of the plan, such as `1200/minute`, if it is higher than the one in the settings.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    display_name: str
    sync: bool
    posts: bool
    reviews: bool
    monthly_posts: _Count
    locations: _Count
    live_keys_per_location: _Count
    webhooks: _Count = 5
    reads: Rate | None = None
    syncable: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
        AfterValidator(_writable),
    ] = None


class Catalogue(dict[str, Plan]):
    """All plans by name, in the order of the file."""

    def __missing__(self, name: str) -> Plan:
        raise KeyError(f"there is no plan {name}; the catalogue has {', '.join(self)}")


def load_catalogue(path: Path | None) -> Catalogue:
    """Read the catalogue from a file, or the packaged one.

    Raises:
        ValueError: The file is invalid; the message names the file, the plan and the rule.
    """
    source = path or files("profilesvc").joinpath("plans.toml")
    try:
        document = tomllib.loads(source.read_text("utf-8"))
        if not document:
            raise ValueError("has no plan")
        return Catalogue({name: _plan(name, row) for name, row in document.items()})
    except (OSError, ValueError) as error:
        raise ValueError(f"plan catalogue {source}: {error}") from None


def _plan(name: str, row: object) -> Plan:
    if not isinstance(row, dict):
        raise ValueError(f"{name} must be a table of a plan")  # noqa: TRY004
    try:
        return Plan.model_validate({**row, "name": name})
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join([name, *map(str, problem["loc"])])
        raise ValueError(f"{field}: {problem_of(problem)}") from None
