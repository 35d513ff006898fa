"""The form of a profile: its inputs from a Location, and the changed part of a Location from its inputs.

A part of a profile is a field of the Location with its inputs. A part whose value the inputs cannot show in full, such
as hours with seconds, is not editable, so that saving the form never loses anything.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.dashboard import hours
from profilesvc.dashboard.profile_fields import ADDRESS, FIELDS, Inputs, Part
from profilesvc.dashboard.profile_lists import CATEGORY, LISTS, PREFIXES
from profilesvc.domain import profiles
from profilesvc.domain.errors import Problem, ServiceError, invalid_many, problems_in
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
        self.inputs: Inputs = {}
        for part in self.parts.values():
            self.inputs |= part.inputs_of(stored.get(part.name))
        self.shown = {name: _digest(self.parts[name], self.inputs) for name in self.parts}

    def fill(self, sent: Mapping[str, str]) -> None:
        """Replace the inputs by those that were sent. Unticked boxes are not sent; lists may have new items."""
        listed = {name: text for name, text in sent.items() if name.startswith(PREFIXES) and self._has(name)}
        fixed = [name for name in self.inputs if not name.startswith(PREFIXES)]
        self.inputs = {name: sent.get(name, "") for name in fixed} | listed
        self.shown = {name: sent.get(f"shown-{name}", digest) for name, digest in self.shown.items()}

    def _has(self, name: str) -> bool:
        return any(_is_of(part, name) for part in self.parts)

    def readable(self) -> JsonObject:
        """Return the fields that the page only shows: those of the provider, and values that no input can show."""
        hidden = {*self.parts, "name", "metadata"}
        return {name: value for name, value in self.stored.items() if name not in hidden and value}

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
                body[name] = part.value_of(self.inputs, self.stored)
            except ServiceError as error:
                problems += problems_in(error)
        try:
            body = profiles.check(body)
        except ServiceError as error:
            problems += problems_in(error)
        if problems:
            raise invalid_many(problems)
        return body


def _is_editable(part: Part[Any], stored: JsonObject) -> bool:
    """Return whether the inputs of a part show its value in full."""
    annotation, value = Location.model_fields[part.name].annotation, stored.get(part.name)
    try:
        again = part.value_of(part.inputs_of(value), stored)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, ServiceError):
        return False
    if part.name in _OF_MESSAGES and isinstance(value, dict):
        again = {**value, **(again or {})}
    return bool(normal(annotation, again) == normal(annotation, value))


def _digest(part: Part[Any], inputs: Mapping[str, str]) -> str:
    """Return a short digest of the inputs of a part, to see whether a user has changed them."""
    own = {name: _plain(inputs[name]) for name in inputs if _is_of(part.name, name) and inputs[name]}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]


def _plain(text: str) -> str:
    """Return a text without the differences that a browser makes when it sends an unchanged input."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


_FURTHER = {
    "additionalPhones": "phoneNumbers",
    "openingDate": "openInfo",
    **dict.fromkeys(ADDRESS, "storefrontAddress"),
}


def input_of(path: str) -> str:
    """Return the id of the input for a path of the Location, or for an input of its own name."""
    top, _, rest = path.partition(".")
    if top == "regularHours":
        return f"regularHours-{hours.DAYS[0]}"
    nested = rest.partition(".")[0]
    return nested if nested in _FURTHER else top


def part_of(name: str) -> str:
    """Return the part that an input is of."""
    if name.startswith(CATEGORY):
        return "categories"
    return _FURTHER.get(name, name.partition("-")[0])


def _is_of(part: str, name: str) -> bool:
    return part == part_of(name)
