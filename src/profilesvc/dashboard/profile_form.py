"""The form of a profile: its inputs from a Location, and the changed part of a Location from its inputs.

A part of a profile is a field of the Location with its inputs. A part whose value the inputs cannot show in full, such
as hours with seconds, is not editable, so that saving the form never loses anything.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.dashboard import hours
from profilesvc.domain import profiles
from profilesvc.domain.errors import Problem, ServiceError, invalid_many
from profilesvc.domain.messages import normal

Inputs = dict[str, str]
_ADDRESS = ("sublocality", "locality", "administrativeArea", "postalCode", "regionCode")
_CATEGORY = "category-"


@dataclass(frozen=True, slots=True)
class Part:
    """A field of the Location: how its value becomes inputs, and back. `value_of` raises ServiceError for problems."""

    name: str
    inputs_of: Callable[[Any], Inputs]
    value_of: Callable[[Mapping[str, str], Any], Any]


def _text(name: str) -> Part:
    return Part(name, lambda value: {name: value or ""}, lambda inputs, _: inputs[name].strip() or None)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _joined(value: list[str] | None) -> str:
    return "\n".join(value or [])


def _phones(value: Any) -> Inputs:
    value = value or {}
    return {"phoneNumbers": value.get("primaryPhone") or "", "additionalPhones": _joined(value.get("additionalPhones"))}


def _to_phones(inputs: Mapping[str, str], _: Any) -> Any:
    primary, others = inputs["phoneNumbers"].strip() or None, _lines(inputs["additionalPhones"]) or None
    return {"primaryPhone": primary, "additionalPhones": others} if primary or others else None


def _address(value: Any) -> Inputs:
    value = value or {}
    return {
        "storefrontAddress": _joined(value.get("addressLines")),
        **{name: value.get(name) or "" for name in _ADDRESS},
    }


def _to_address(inputs: Mapping[str, str], old: Any) -> Any:
    own: JsonObject = {name: inputs[name].strip() or None for name in _ADDRESS}
    own |= {"addressLines": _lines(inputs["storefrontAddress"]) or None}
    return {**(old or {}), **own} if any(own.values()) else None


def _week(value: Any) -> Inputs:
    periods = (value or {}).get("periods") or []
    return {f"regularHours-{day}": hours.of_day(periods, day) for day in hours.DAYS}


def _to_week(inputs: Mapping[str, str], _: Any) -> Any:
    periods: list[JsonObject] = []
    problems: list[Problem] = []
    for day in hours.DAYS:
        try:
            periods += hours.periods_of(day, inputs[f"regularHours-{day}"])
        except ValueError as error:
            problems.append(("body", f"regularHours-{day}", str(error)))
    if problems:
        raise invalid_many(problems)
    return {"periods": periods} if periods else None


def _to_dates(inputs: Mapping[str, str], _: Any) -> Any:
    try:
        periods = hours.dates_of(inputs["specialHours"])
    except ValueError as error:
        raise invalid_many([("body", "specialHours", str(error))]) from None
    return {"specialHourPeriods": periods} if periods else None


def _categories(value: Any) -> Inputs:
    """Return the main category, and a ticked box for each other one."""
    value = value or {}
    others = {f"{_CATEGORY}{one['name']}": "on" for one in value.get("additionalCategories") or []}
    return {"categories": (value.get("primaryCategory") or {}).get("name") or "", **others}


def _to_categories(inputs: Mapping[str, str], old: Any) -> Any:
    """Return the categories: a new main one is one of the others, which the old main one joins."""
    known = known_categories(old)
    primary = inputs["categories"] if inputs["categories"] in known else next(iter(known), None)
    first = next(iter(known), None)
    kept = [name for name in known if name != primary and (name == first or inputs.get(f"{_CATEGORY}{name}"))]
    others = [{"name": name} for name in kept]
    return {"primaryCategory": {"name": primary}, "additionalCategories": others or None} if primary else None


def known_categories(value: Any) -> dict[str, JsonObject]:
    """Return the categories of a profile by name, the main one first."""
    value = value or {}
    every = [value.get("primaryCategory"), *(value.get("additionalCategories") or [])]
    return {one["name"]: one for one in every if one and one.get("name")}


PARTS = (
    _text("title"),
    Part("phoneNumbers", _phones, _to_phones),
    _text("websiteUri"),
    Part(
        "profile",
        lambda value: {"profile": (value or {}).get("description") or ""},
        lambda inputs, _: {"description": "\n".join(inputs["profile"].strip().splitlines()) or None},
    ),
    Part("regularHours", _week, _to_week),
    Part(
        "specialHours",
        lambda value: {"specialHours": hours.of_dates((value or {}).get("specialHourPeriods") or [])},
        _to_dates,
    ),
    Part("storefrontAddress", _address, _to_address),
    Part("categories", _categories, _to_categories),
    Part(
        "openInfo",
        lambda value: {"openInfo": (value or {}).get("status") or ""},
        lambda inputs, _: {"status": inputs["openInfo"] or None},
    ),
    _text("storeCode"),
    Part(
        "labels",
        lambda value: {"labels": _joined(value)},
        lambda inputs, _: _lines(inputs["labels"]) or None,
    ),
)
_OF_MESSAGES = ("profile", "openInfo")  # a sync merges their fields into the provider's


class ProfileForm:
    """The form of one profile. `inputs` are those of the page that was sent, or of the stored profile."""

    def __init__(self, stored: JsonObject, syncable: tuple[str, ...] | None) -> None:
        self.stored = stored
        allowed = [part for part in PARTS if syncable is None or part.name in syncable]
        self.parts = {part.name: part for part in allowed if _is_editable(part, stored.get(part.name))}
        self.others = [part.name for part in allowed if part.name not in self.parts]
        self.inputs: Inputs = {}
        for part in self.parts.values():
            self.inputs |= part.inputs_of(stored.get(part.name))
        self.shown = {name: _digest(self.parts[name], self.inputs) for name in self.parts}

    def fill(self, sent: Mapping[str, str]) -> None:
        """Replace the inputs by those that were sent. A box that is not ticked is not sent."""
        boxes = {f"{_CATEGORY}{name}" for name in known_categories(self.stored.get("categories"))}
        self.inputs = {name: sent.get(name, "") for name in (*self.inputs, *boxes)}
        self.shown = {name: sent.get(f"shown-{name}", digest) for name, digest in self.shown.items()}

    def changed(self) -> JsonObject:
        """Return the fields that the user has changed on the page, as a sync sends them.

        Raises:
            ServiceError: VALIDATION_ERROR with every problem.
        """
        body: JsonObject = {}
        problems: list[Problem] = []
        for name, part in self.parts.items():
            if _digest(part, self.inputs) == self.shown[name]:
                continue
            try:
                body[name] = part.value_of(self.inputs, self.stored.get(name))
            except ServiceError as error:
                problems += _problems(error)
        try:
            body = profiles.check(body)
        except ServiceError as error:
            problems += _problems(error)
        if problems:
            raise invalid_many(problems)
        return body


def _problems(error: ServiceError) -> list[Problem]:
    return [(one["in"], one["field"], one["problem"]) for one in error.details["errors"]]


def _is_editable(part: Part, value: object) -> bool:
    """Return whether the inputs of a part show its value in full."""
    annotation = Location.model_fields[part.name].annotation
    try:
        again = part.value_of(part.inputs_of(value), value)
    except (AttributeError, KeyError, TypeError, ValueError, ServiceError):
        return False
    if part.name in _OF_MESSAGES and isinstance(value, dict):
        again = {**value, **again}
    return bool(normal(annotation, again) == normal(annotation, value))


def _digest(part: Part, inputs: Mapping[str, str]) -> str:
    """Return a short digest of the inputs of a part, to see whether a user has changed them."""
    own = {name: _plain(inputs[name]) for name in inputs if _is_of(part.name, name) and inputs[name]}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]


def _plain(text: str) -> str:
    """Return a text without the differences that a browser makes when it sends an unchanged input."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


_FURTHER = {
    "additionalPhones": "phoneNumbers",
    **dict.fromkeys(_ADDRESS, "storefrontAddress"),
}


def input_of(path: str) -> str:
    """Return the id of the input for a path of the Location, or for an input of its own name."""
    top, _, rest = path.partition(".")
    if top == "regularHours":
        return f"regularHours-{hours.DAYS[0]}"
    nested = rest.partition(".")[0]
    return nested if nested in _FURTHER else top


def _is_of(part: str, name: str) -> bool:
    if name.startswith(_CATEGORY):
        return part == "categories"
    return part == _FURTHER.get(name, name.partition("-")[0])
