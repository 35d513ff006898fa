"""Masks, which name fields of a profile: those that a sync sends, that the provider has changed, or that it reviews."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.contract.sync import EditStatus
from profilesvc.domain import profiles
from profilesvc.domain.errors import Problem, invalid, invalid_many
from profilesvc.domain.messages import access_of, message_of

_MASK, _ADDRESS = "updateMask", "storefrontAddress"
_AREA = "serviceArea"
_LONGEST_NAME = 100


class Masks(NamedTuple):
    """The fields that consumers see differently, and those whose edits are in review."""

    differing: list[str]
    pending: list[str]

    @classmethod
    def of(cls, updated: JsonObject) -> "Masks":
        """Read the masks of the provider's GoogleUpdatedLocation, which leaves empty ones out."""
        return cls(paths(updated.get("diffMask")), paths(updated.get("pendingMask")))

    @property
    def theirs(self) -> list[str]:
        """Return what differs by the provider's change, and not because consumers do not see the owner's edit yet."""
        return [path for path in self.differing if not covers(self.pending, path)]

    @property
    def changed(self) -> list[str]:
        """Return the fields that the provider has changed, as an update mask names them."""
        named = [profiles.mask_path(path) for path in self.theirs]
        return [path for path in dict.fromkeys(named) if _problem(path) is None]

    def status(self, path: str) -> EditStatus:
        """Return the state of the edit of a leaf."""
        if covers(self.pending, path):
            return "pending"
        return "overridden_by_provider" if covers(self.differing, path) else "live"


NO_EDITS = Masks([], [])


def paths(mask: object) -> list[str]:
    """Return the paths of a mask as the provider writes it."""
    return [path.strip() for path in mask.split(",") if path.strip()] if isinstance(mask, str) else []


def covers(mask: Iterable[str], path: str) -> bool:
    """Return whether a mask names a path, a message around it, or a part of it."""
    return any(f"{named}.".startswith(f"{path}.") or f"{path}.".startswith(f"{named}.") for named in mask)


def checked(mask: str) -> list[str]:
    """Return the paths of an update mask in a body.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid path.
    """
    return _checked("body", mask, _problem)


def masked_body(body: JsonObject, mask: str) -> JsonObject:
    """Return the part of a body that the update mask of a query names, with null for what the body lacks.

    So a sync clears a named field without a value, as the provider does. All fields must have their types, also those
    that the mask leaves out.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid path or field.
    """
    profiles.check_types(profiles.split(body, None)[0])
    result: JsonObject = {}
    for path in _checked("query", mask, _unwritable):
        result = profiles.merge(result, _part(body, path))
    return result


def _part(body: JsonObject, path: str) -> JsonObject:
    name, _, rest = path.partition(".")
    value = body.get(name)
    if not rest or not isinstance(value, dict | None):
        return {name: value}
    return {name: _part(value or {}, rest)}


def _checked(where: str, mask: str, problem_of: Callable[[str], str | None]) -> list[str]:
    named = [path.strip() for path in mask.split(",")]
    problems = []
    for position, path in enumerate(named):
        text = problem_of(path)
        if text is None and covers(named[:position], path):
            text = "is named twice"
        if text is not None:
            problems.append((where, _MASK, f"`{path[:_LONGEST_NAME]}` {text}"))
    if problems:
        raise invalid_many(problems)
    return named


def require_changed(mask: list[str], masks: Masks) -> None:
    """Require that the provider has changed every field of a mask.

    Raises:
        ServiceError: VALIDATION_ERROR that names every other path.
    """
    problems: list[Problem] = []
    for path in mask:
        if covers(masks.pending, path):
            problems.append(("body", _MASK, f"`{path}` is in review: consumers do not see the last edit of it yet"))
        elif not covers(masks.differing, path) and not (path == _ADDRESS and _AREA in mask):
            problems.append(("body", _MASK, f"`{path}` is not a field that the provider has changed"))
    if problems:
        raise invalid_many(problems)


def settled_together(path: str, *locations: JsonObject) -> list[str]:
    """Return the mask that settles a field: its path, for the service area also the address if there is one."""
    has_address = path == _AREA and any(location.get(_ADDRESS) for location in locations)
    return [path, _ADDRESS] if has_address else [path]


def require_address(mask: list[str], masks: Masks, location: JsonObject) -> None:
    """Require that a mask with the service area has the address too, if the location has one.

    The provider makes a hybrid business one without premises if its service area is sent without its address.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    has_address = bool(location.get(_ADDRESS)) or covers(masks.differing, _ADDRESS)
    if _AREA in mask and _ADDRESS not in mask and has_address:
        raise invalid("body", _MASK, f"`{_AREA}` must be sent with `{_ADDRESS}`, which would be lost without it")


def _problem(path: str) -> str | None:
    """Return why a path cannot be in an update mask that is sent to the provider, or None."""
    whole = profiles.mask_path(path)
    return _unwritable(path) or (None if whole == path else f"must be `{whole}`, which is sent whole")


def _unwritable(path: str) -> str | None:
    """Return why a path does not name a field that can be changed, or None."""
    inner, is_list = Location, False
    for name in path.split("."):
        field = None if inner is None or is_list else inner.model_fields.get(name)
        if field is None:
            return "is not a field of a location, such as `title` or `profile.description`"
        if access_of(field) is not None:
            return "cannot be changed"
        inner, is_list = message_of(field.annotation)  # type: ignore[assignment]  # None below a scalar
    return None
