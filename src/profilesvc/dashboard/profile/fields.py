"""The fields of a profile with a fixed number of inputs: texts, phones, the address, the week, dates and states."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.words import hours
from profilesvc.domain.errors import Problem, invalid_many
from profilesvc.domain.hours import DAYS, faults

Inputs = dict[str, str]
Value = TypeVar("Value")
ADDRESS = ("sublocality", "locality", "administrativeArea", "postalCode", "regionCode")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
OPENED = "must be a month such as 2019-05, or a day such as 2019-05-20"


@dataclass(frozen=True, slots=True)
class Part(Generic[Value]):
    """A field of the Location: how its value becomes inputs, and back, with the stored document. None: it is empty.

    `value_of` raises ServiceError for problems.
    """

    name: str
    inputs_of: Callable[[Value | None], Inputs]
    value_of: Callable[[Mapping[str, str], JsonObject], Value | None]


def week_of(prefix: str, inputs: Mapping[str, str]) -> tuple[list[JsonObject], list[Problem]]:
    """Return the periods of the inputs `<prefix>-<day>`, and the problems of the others."""
    periods: list[JsonObject] = []
    problems: list[Problem] = []
    for day in DAYS:
        try:
            periods += hours.periods_of(day, inputs.get(f"{prefix}-{day}", ""))
        except ValueError as error:
            problems.append(("body", f"{prefix}-{day}", str(error)))
    for one in faults({"regularHours": {"periods": periods}}):
        day = periods[int(one.field.split(".")[2])]["openDay"]
        problems.append(("body", f"{prefix}-{day}", hours.OVERLAP))  # all other rules hold for what a text can say
    return periods, problems


def week_inputs(prefix: str, periods: list[JsonObject]) -> Inputs:
    """Return an input for each day, with the hours as a person writes them."""
    return {f"{prefix}-{day}": hours.day_hours(periods, day) for day in DAYS}


def lines(text: str) -> list[str]:
    """Return the lines of a text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _text(name: str) -> Part[str]:
    return Part(name, lambda value: {name: value or ""}, lambda inputs, _: inputs[name].strip() or None)


def _joined(value: list[str] | None) -> str:
    return "\n".join(value or [])


def _phones(value: JsonObject | None) -> Inputs:
    value = value or {}
    return {"phoneNumbers": value.get("primaryPhone") or "", "additionalPhones": _joined(value.get("additionalPhones"))}


def _to_phones(inputs: Mapping[str, str], _: JsonObject) -> JsonObject | None:
    primary, others = inputs["phoneNumbers"].strip() or None, lines(inputs["additionalPhones"]) or None
    return {"primaryPhone": primary, "additionalPhones": others} if primary or others else None


def _address(value: JsonObject | None) -> Inputs:
    value = value or {}
    return {
        "storefrontAddress": _joined(value.get("addressLines")),
        **{name: value.get(name) or "" for name in ADDRESS},
    }


def _to_address(inputs: Mapping[str, str], stored: JsonObject) -> JsonObject | None:
    own: JsonObject = {name: inputs[name].strip() or None for name in ADDRESS}
    own |= {"addressLines": lines(inputs["storefrontAddress"]) or None}
    return {**(stored.get("storefrontAddress") or {}), **own} if any(own.values()) else None


def _to_week(inputs: Mapping[str, str], _: JsonObject) -> JsonObject | None:
    periods, problems = week_of("regularHours", inputs)
    if problems:
        raise invalid_many(problems)
    return {"periods": periods} if periods else None


def _to_dates(inputs: Mapping[str, str], _: JsonObject) -> JsonObject | None:
    try:
        periods = hours.dates_of(inputs["specialHours"])
    except ValueError as error:
        raise invalid_many([("body", "specialHours", str(error))]) from None
    if faults({"specialHours": {"specialHourPeriods": periods}}):  # all other rules hold for what a text can say
        raise invalid_many([("body", "specialHours", hours.OVERLAP)])
    return {"specialHourPeriods": periods} if periods else None


def _opening(value: JsonObject | None) -> Inputs:
    value = value or {}
    day = value.get("openingDate") or {}
    parts = [f"{day['year']:04}"] if day else []
    parts += [f"{day[name]:02}" for name in ("month", "day") if day.get(name)]
    return {"openInfo": value.get("status") or "", "openingDate": "-".join(parts)}


def _to_opening(inputs: Mapping[str, str], _: JsonObject) -> JsonObject | None:
    text, day = inputs["openingDate"].strip(), None
    if text:
        match = _DATE.fullmatch(text)
        if match is None:
            raise invalid_many([("body", "openingDate", OPENED)])
        numbers = [int(part) if part else None for part in match.groups()]
        day = dict(zip(("year", "month", "day"), numbers, strict=True))
    return {"status": inputs["openInfo"] or None, "openingDate": day}


FIELDS: dict[str, Part[Any]] = {
    part.name: part
    for part in (
        _text("title"),
        Part("phoneNumbers", _phones, _to_phones),
        _text("websiteUri"),
        Part(
            "profile",
            lambda value: {"profile": (value or {}).get("description") or ""},
            lambda inputs, _: {"description": "\n".join(inputs["profile"].strip().splitlines()) or None},
        ),
        Part("regularHours", lambda value: week_inputs("regularHours", (value or {}).get("periods") or []), _to_week),
        Part(
            "specialHours",
            lambda value: {"specialHours": hours.special_hours((value or {}).get("specialHourPeriods") or [])},
            _to_dates,
        ),
        Part("storefrontAddress", _address, _to_address),
        Part("openInfo", _opening, _to_opening),
        _text("storeCode"),
        Part("labels", lambda value: {"labels": _joined(value)}, lambda inputs, _: lines(inputs["labels"]) or None),
        Part(
            "adWordsLocationExtensions",
            lambda value: {"adWordsLocationExtensions": (value or {}).get("adPhone") or ""},
            lambda inputs, _: {"adPhone": inputs["adWordsLocationExtensions"].strip() or None},
        ),
    )
}
