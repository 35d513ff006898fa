"""A profile's values as a person reads them: hours as a week, addresses as lines, categories by name.

Every value becomes a few short lines, whatever the provider or a plugin sends, so that a table of them stays a table.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

NOTHING = "(nothing)"
_TO = "\N{EN DASH}"
_LINES, _WIDTH, _TEXT, _DEPTH = 12, 120, 1000, 3
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_FIELDS = {
    "title": "Name",
    "storeCode": "Store code",
    "languageCode": "Language",
    "websiteUri": "Website",
    "phoneNumbers": "Phone numbers",
    "phoneNumbers.primaryPhone": "Phone",
    "phoneNumbers.additionalPhones": "Further phones",
    "categories.primaryCategory": "Main category",
    "categories.primaryCategory.name": "Main category",
    "categories.primaryCategory.displayName": "Name of the main category",
    "categories.additionalCategories": "Further categories",
    "storefrontAddress": "Address",
    "storefrontAddress.addressLines": "Street",
    "storefrontAddress.administrativeArea": "State or province",
    "storefrontAddress.languageCode": "Language of the address",
    "storefrontAddress.locality": "City",
    "storefrontAddress.sublocality": "District",
    "storefrontAddress.postalCode": "Postal code",
    "storefrontAddress.regionCode": "Country",
    "regularHours.periods": "Opening hours",
    "regularHours": "Opening hours",
    "specialHours.specialHourPeriods": "Special hours",
    "moreHours": "More hours",
    "serviceArea.businessType": "Where customers are served",
    "serviceArea.places.placeInfos": "Areas served",
    "openInfo.status": "Open or closed",
    "openInfo.openingDate.year": "Opened: year",
    "openInfo.openingDate.month": "Opened: month",
    "openInfo.openingDate.day": "Opened: day",
    "adWordsLocationExtensions.adPhone": "Phone in ads",
    "profile.description": "Description",
    "latlng.latitude": "Latitude",
    "latlng.longitude": "Longitude",
    "serviceItems": "Services",
}
_ENUMS = {"openInfo.status", "serviceArea.businessType"}
_ADDRESS = ("organization", "recipients", "addressLines", "sublocality", "locality", "administrativeArea", "postalCode")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def field(path: str) -> str:
    """A leaf path in words: `phoneNumbers.primaryPhone` is `Phone`."""
    if path in _FIELDS:
        return _FIELDS[path]
    words = " ".join(_WORD.findall(path)).lower()
    return _short(words[:1].upper() + words[1:]) if words else _short(path)


def lines(value: Any, path: str = "") -> list[str]:
    """The value as at most a dozen lines of text."""
    if isinstance(value, str) and len(value) > _WIDTH:
        return [value] if len(value) <= _TEXT else [f"{value[:_TEXT]}…", f"({len(value)} characters)"]
    return list(_bounded(_lines(value, path))) or [NOTHING]


def columns(path: str, ours: Any, theirs: Any, *others: Any) -> list[list[str]]:
    """The lines of several values of a leaf; the first two never look the same when they are not.

    Where the short form hides what differs, the plain one is used; where that is cut off before it, a line says so.
    """
    shown = [lines(value, path) for value in (ours, theirs, *others)]
    if ours != theirs and shown[0] == shown[1]:
        shown = [list(_bounded(_any(value))) or [NOTHING] for value in (ours, theirs, *others)]
        if shown[0] == shown[1]:
            shown[1] = [*shown[1], "(differs in a part that is not shown)"]
    return shown


def _bounded(found: Iterable[str]) -> Iterator[str]:
    shown = [_short(line) for line in found]
    yield from shown[:_LINES] if len(shown) > _LINES else shown
    if len(shown) > _LINES:
        yield f"… and {len(shown) - _LINES} more"


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _lines(value: Any, path: str) -> Iterator[str]:
    """Its own form where the structure is known and as expected, otherwise one for any structure."""
    try:
        yield from list(_known(value, path))
    except (AttributeError, KeyError, TypeError, ValueError):
        yield from _any(value)


def _known(value: Any, path: str) -> Iterable[str]:
    last = path.rpartition(".")[2]
    if isinstance(value, str):
        if path in _ENUMS:
            return [_sentence(value)]
        return [_category({"name": value})] if value.startswith("categories/") else _any(value)
    if not isinstance(value, dict | list):
        return _any(value)
    if path == "regularHours.periods" or (last == "regularHours" and isinstance(value, dict)):
        return _week(value["periods"] if isinstance(value, dict) else value)
    if path == "moreHours":
        return [line for one in value for line in (f"{_sentence(one['hoursTypeId'])}:", *_week(one["periods"]))]
    if last in {"specialHours", "specialHourPeriods"}:
        return [_special(one) for one in (value["specialHourPeriods"] if isinstance(value, dict) else value)]
    if last == "storefrontAddress":
        return _address(value)
    if last == "primaryCategory":
        return [_category(value)]
    if last == "additionalCategories":
        return [_category(one) for one in value]
    if last == "serviceItems":
        return [_service(one) for one in value]
    if last == "placeInfos":
        return [str(one["placeName"]) for one in value]
    return _any(value)


def _week(periods: list[dict[str, Any]]) -> list[str]:
    """Days with the same hours share a line; a day without a period is closed."""
    hours: dict[str, list[str]] = {day: [] for day in _DAYS}
    for one in sorted(periods, key=lambda one: _minutes(one.get("openTime"))):
        until = f"{_clock(one.get('openTime'))}{_TO}{_clock(one.get('closeTime'))}"
        later = one.get("closeDay", one["openDay"]) != one["openDay"] and _minutes(one.get("closeTime")) > 0
        hours[one["openDay"]].append(f"{until} ({_day(one['closeDay'])})" if later else _midnight(one, until))
    said = [(_day(day), ", ".join(hours[day]) or "closed") for day in _DAYS]
    week = []
    for text, days in groupby(said, key=lambda pair: pair[1]):
        names = [day for day, _ in days]
        week.append(f"{names[0]}{_TO}{names[-1]} {text}" if len(names) > 1 else f"{names[0]} {text}")
    return week


def _midnight(period: dict[str, Any], text: str) -> str:
    """Closing at 00:00 of the next day is closing at 24:00."""
    return text.replace(f"{_TO}00:00", f"{_TO}24:00") if period.get("closeDay") != period["openDay"] else text


def _special(period: dict[str, Any]) -> str:
    days = [_date(period[side]) for side in ("startDate", "endDate") if period.get(side)]
    said = _TO.join(dict.fromkeys(days))
    if period.get("closed"):
        return f"{said} closed"
    return f"{said} {_clock(period.get('openTime'))}{_TO}{_clock(period.get('closeTime'))}"


def _address(value: Any) -> list[str]:
    found: list[str] = []
    for name in _ADDRESS:
        part = value.get(name) or []
        found += [part] if isinstance(part, str) else [str(line) for line in part]
    rest = {name: part for name, part in value.items() if name not in _ADDRESS}
    return found + list(_any(rest))


def _category(value: Any) -> str:
    """Its own name, or `Coffee shop` for `categories/gcid:coffee_shop`."""
    given: str = value.get("displayName") or ""
    return given or _sentence(value["name"].rpartition("/")[2].removeprefix("gcid:"))


def _service(value: Any) -> str:
    """What it is called, and its price."""
    if free := value.get("freeFormServiceItem"):
        said = str(free["label"]["displayName"])
    else:
        said = _sentence(value["structuredServiceItem"]["serviceTypeId"].rpartition(":")[2])
    price = value.get("price") or {}
    amount = f"{int(price.get('units', 0)) + price.get('nanos', 0) / 1e9:g} {price.get('currencyCode', '')}".strip()
    return f"{said}, {amount}" if price else said


def _sentence(text: str) -> str:
    words = text.replace("_", " ").strip()
    return words[:1].upper() + words[1:].lower()


def _minutes(time: dict[str, int] | None) -> int:
    return (time or {}).get("hours", 0) * 60 + (time or {}).get("minutes", 0)


def _clock(time: dict[str, int] | None) -> str:
    hours, minutes = divmod(_minutes(time), 60)
    return f"{hours:02}:{minutes:02}"


def _date(day: dict[str, int]) -> str:
    return "-".join(f"{day[part]:02}" for part in ("year", "month", "day") if day.get(part))


def _day(name: str) -> str:
    return name[:3].capitalize()


def _any(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Format any value: items as lines, fields as `name: value`; deep nesting is cut off."""
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, bool):
        yield "yes" if value else "no"
    elif not isinstance(value, dict | list):
        yield str(value)
    elif depth == 0:
        yield json.dumps(value, ensure_ascii=False)[: _WIDTH + 1]
    elif isinstance(value, list):
        for item in value[: 2 * _LINES]:
            yield ", ".join(_any(item, depth - 1)) or NOTHING
        yield from ("" for _ in value[2 * _LINES :])  # only counted
    else:
        for name, member in value.items():
            yield f"{field(name)}: {', '.join(_any(member, depth - 1)) or NOTHING}"
