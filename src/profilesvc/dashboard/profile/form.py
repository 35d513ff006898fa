"""The form of a profile: its inputs from a Location, and the changed part of a Location from its inputs.

A part of a profile is a field of the Location with its inputs. A part whose value the inputs cannot show in full, such
as hours with seconds, is not editable, so that saving the form never loses anything.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.dashboard.edits import Edit, digest
from profilesvc.dashboard.profile.fields import ADDRESS, FIELDS, Inputs, Part
from profilesvc.dashboard.profile.lists import CATEGORY, HOURS, LISTS, PREFIXES, added
from profilesvc.dashboard.words import hours, values
from profilesvc.domain import profiles
from profilesvc.domain.errors import Problem, ServiceError, invalid_many, problems_in
from profilesvc.domain.hours import DAYS
from profilesvc.domain.messages import normal

_ORDER = (
    "title",
    "phoneNumbers",
    "websiteUri",
    "profile",
    "regularHours",
    "specialHours",
    "moreHours",
    "storefrontAddress",
    "serviceArea",
    "categories",
    "serviceItems",
    "openInfo",
    "storeCode",
    "labels",
    "adWordsLocationExtensions",
)
CONFIRMED = "long_hours"  # the input
_BOTH = FIELDS | LISTS
PARTS = tuple(_BOTH[name] for name in _ORDER)
# A sync merges their fields into those of the provider.
_OF_MESSAGES = ("profile", "openInfo", "serviceArea", "adWordsLocationExtensions")


class ProfileForm:
    """The form of one profile. `inputs` are those of the page that was sent, or of the stored profile."""

    def __init__(self, stored: JsonObject, syncable: tuple[str, ...] | None) -> None:
        self.stored = stored
        allowed = [part for part in PARTS if syncable is None or part.name in syncable]
        self.parts = {part.name: part for part in allowed if _is_editable(part, stored)}
        self.others = [part.name for part in allowed if part.name not in self.parts]
        self.edit = Edit({name: part.inputs_of(stored.get(name)) for name, part in self.parts.items()})
        self.inputs = self._inputs()
        self.is_sure = self.must_confirm = False

    def _inputs(self) -> Inputs:
        return {name: text for inputs in self.edit.inputs.values() for name, text in inputs.items()}

    def fill(self, values: Mapping[str, str]) -> None:
        """Fill in the inputs that were sent. Unticked boxes are not sent; lists may have new items."""
        own: dict[str, Inputs] = {name: {} for name in self.parts}
        listed = {name: text for name, text in values.items() if name.startswith(PREFIXES) and part_of(name) in own}
        fixed = {name: values.get(name, text) for name, text in self.inputs.items() if not name.startswith(PREFIXES)}
        for name, text in {**fixed, **listed}.items():
            own[part_of(name)][name] = text
        self.is_sure = bool(values.get(CONFIRMED))
        self.edit.fill({**values, **self._with_new_items(values, own)}, own)
        self.inputs = self._inputs()

    def _with_new_items(self, values: Mapping[str, str], own: dict[str, Inputs]) -> dict[str, str]:
        """Add the items that somebody else has added meanwhile to the lists that the user has changed.

        Return the digests of the lists that differ from the page only by such items, because nothing in them conflicts.
        """
        digests: dict[str, str] = {}
        for name, current in self.edit.current.items():
            new, opened = added(current, values), self.edit.opened(values, name)
            if new and digest(own[name]) != opened:
                own[name] |= new
                if digest({one: text for one, text in current.items() if one not in new}) == opened:
                    digests[f"shown-{name}"] = digest(current)
        return digests

    def readable(self) -> JsonObject:
        """Return the fields that the page only shows: those of the provider, and values that no input can show."""
        hidden = {*self.parts, "name", "metadata"}
        return {name: value for name, value in self.stored.items() if name not in hidden and value}

    def changed(self, today: date) -> JsonObject:
        """Return the fields that the user has changed on the page, as a sync sends them.

        Raises:
            ServiceError: VALIDATION_ERROR with every problem; CONFLICT for what somebody else has changed too.
        """
        self.edit.require_no_conflict(lambda name: ", ".join(values.lines(self.stored.get(name), name)))
        body: JsonObject = {}
        problems: list[Problem] = []
        for name in self.edit.changed():
            try:
                body[name] = self.parts[name].value_of(self.inputs, self.stored)
            except ServiceError as error:
                problems += problems_in(error)
        try:
            body = profiles.check(body, today)
        except ServiceError as error:
            problems += problems_in(error)
        if not problems and not self.is_sure:
            problems = self._long_hours(body)
            self.must_confirm = bool(problems)
        if problems:
            raise invalid_many(problems)
        return body

    def _long_hours(self, body: JsonObject) -> list[Problem]:
        """Return a problem for each period of new hours that is so long that its times may be swapped."""
        known = {(name, start) for name, start, _ in _long_periods(self.stored)}
        asked = "is open for %s hours. Correct the times, or confirm them at the end of the form"
        return [
            ("body", name, asked % length) for name, start, length in _long_periods(body) if (name, start) not in known
        ]


def _long_periods(document: JsonObject) -> list[tuple[str, str, str]]:
    """Return the input of each long period, its times, and how long it is. Values of a wrong type have none."""
    lines: list[tuple[str, str, str]] = []
    for name in ("regularHours", "specialHours", "moreHours"):
        try:
            lines += [
                (where, f"{one.get('startDate')} {hours.range_of(one)}", length)
                for where, one in _periods(name, document.get(name))
                if (length := hours.long_hours(one))
            ]
        except (AttributeError, KeyError, TypeError):
            continue
    return lines


def _periods(name: str, value: Any) -> list[tuple[str, JsonObject]]:
    """Return the periods of a field of the Location, each with its input."""
    if name == "moreHours":
        kinds = [(f"{HOURS}{one['hoursTypeId']}", one["periods"]) for one in value or []]
        return [(f"{prefix}-{one['openDay']}", one) for prefix, periods in kinds for one in periods]
    if name == "specialHours":
        return [(name, one) for one in (value or {}).get("specialHourPeriods") or [] if not one.get("closed")]
    return [(f"{name}-{one['openDay']}", one) for one in (value or {}).get("periods") or []]


def _is_editable(part: Part[Any], stored: JsonObject) -> bool:
    """Return whether the inputs of a part show its value in full."""
    annotation, value = Location.model_fields[part.name].annotation, stored.get(part.name)
    try:
        again = part.value_of(part.inputs_of(value), stored)
    except ServiceError as error:  # hours that overlap are shown in full, and have to be corrected
        return all(problem == hours.OVERLAP for _, _, problem in problems_in(error))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return False
    if part.name in _OF_MESSAGES and isinstance(value, dict):
        again = {**value, **(again or {})}
    return bool(normal(annotation, again) == normal(annotation, value))


_FURTHER = {
    "additionalPhones": "phoneNumbers",
    "openingDate": "openInfo",
    **dict.fromkeys(ADDRESS, "storefrontAddress"),
}


def input_of(path: str) -> str:
    """Return the id of the input for a path of the Location, or for an input of its own name."""
    top, _, rest = path.partition(".")
    if top == "regularHours":
        return f"regularHours-{DAYS[0]}"
    nested = rest.partition(".")[0]
    return nested if nested in _FURTHER else top


def part_of(name: str) -> str:
    if name.startswith(CATEGORY):
        return "categories"
    return _FURTHER.get(name, name.partition("-")[0])
