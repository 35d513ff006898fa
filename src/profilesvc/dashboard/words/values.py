"""A profile's values as a few short lines: hours as a week, addresses as lines, categories by name."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import groupby

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.words.hours import TO, clock, minutes_of
from profilesvc.domain.hours import DAYS
from profilesvc.language import formats
from profilesvc.language.texts import N_, Words, _, gettext

NOTHING = N_("(nothing)")
NANOS = 1_000_000_000  # of a unit of a price
_LINES, _WIDTH = 12, 120
_TEXT, _DEPTH = 1000, 3
_FIELDS = Words(
    {
        "title": N_("Name"),
        "storeCode": N_("Store code"),
        "languageCode": N_("Language"),
        "websiteUri": N_("Website"),
        "phoneNumbers": N_("Phone numbers"),
        "phoneNumbers.primaryPhone": N_("Phone"),
        "phoneNumbers.additionalPhones": N_("Further phones"),
        "categories.primaryCategory": N_("Main category"),
        "categories.primaryCategory.name": N_("Main category"),
        "categories.primaryCategory.displayName": N_("Name of the main category"),
        "categories.additionalCategories": N_("Further categories"),
        "storefrontAddress": N_("Address"),
        "storefrontAddress.addressLines": N_("Street"),
        "storefrontAddress.administrativeArea": N_("State or province"),
        "storefrontAddress.languageCode": N_("Language of the address"),
        "storefrontAddress.locality": N_("City"),
        "storefrontAddress.sublocality": N_("District"),
        "storefrontAddress.postalCode": N_("Postal code"),
        "storefrontAddress.regionCode": N_("Country"),
        "regularHours.periods": N_("Opening hours"),
        "regularHours": N_("Opening hours"),
        "specialHours.specialHourPeriods": N_("Special hours"),
        "moreHours": N_("More hours"),
        "serviceArea.businessType": N_("Where customers are served"),
        "serviceArea.places.placeInfos": N_("Areas served"),
        "openInfo.status": N_("Open or closed"),
        "openInfo.openingDate": N_("Opened"),
        "openInfo.openingDate.year": N_("Opened: year"),
        "openInfo.openingDate.month": N_("Opened: month"),
        "openInfo.openingDate.day": N_("Opened: day"),
        "adWordsLocationExtensions.adPhone": N_("Phone in ads"),
        "profile": N_("Description"),
        "profile.description": N_("Description"),
        "openInfo": N_("Open or closed"),
        "categories": N_("Categories"),
        "specialHours": N_("Special hours"),
        "latlng.latitude": N_("Latitude"),
        "latlng.longitude": N_("Longitude"),
        "serviceItems": N_("Services"),
        "serviceArea": N_("Where customers are served"),
        "openingDate": N_("Opened"),
        "labels": N_("Labels"),
        "adWordsLocationExtensions": N_("Phone in ads"),
        "latlng": N_("Place on the map"),
        "relationshipData": N_("Related businesses"),
    }
)
OPEN_STATES = Words(
    OPEN=N_("Open"), CLOSED_TEMPORARILY=N_("Closed temporarily"), CLOSED_PERMANENTLY=N_("Closed permanently")
)
_ENUMS = {"openInfo.status", "serviceArea.businessType"}
_ADDRESS = ("organization", "recipients", "addressLines", "sublocality", "locality", "administrativeArea", "postalCode")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def field(path: str) -> str:
    """Return the label of a leaf path: `Phone` for `phoneNumbers.primaryPhone`."""
    if path in _FIELDS:
        return _FIELDS[path]
    words = " ".join(_WORD.findall(path)).lower()
    return _short(words[:1].upper() + words[1:]) if words else _short(path)


def anchor(path: str) -> str:
    """Return the id of the input on the page where the field of a leaf path is edited."""
    return path.partition(".")[0]


def lines(value: object, path: str = "") -> list[str]:
    """Return the value as at most a dozen lines of text."""
    if isinstance(value, str) and len(value) > _WIDTH:
        return (
            [value] if len(value) <= _TEXT else [f"{value[:_TEXT]}…", _("(%(number)s characters)", number=len(value))]
        )
    return list(_bounded(_lines(value, path))) or [gettext(NOTHING)]


def columns(path: str, ours: object, theirs: object, *others: object) -> list[list[str]]:
    """Return the lines of several values of a leaf. If the first two differ, their lines differ too.

    If their short forms are the same, use the plain forms. If those are cut off before the difference, add a line.
    """
    texts = [lines(value, path) for value in (ours, theirs, *others)]
    if ours != theirs and texts[0] == texts[1]:
        texts = [list(_bounded(_any(value))) or [gettext(NOTHING)] for value in (ours, theirs, *others)]
        if texts[0] == texts[1]:
            texts[1] = [*texts[1], _("(differs in a part that is not shown)")]
    return texts


def _bounded(texts: Iterable[str]) -> Iterator[str]:
    lines = [_short(line) for line in texts]
    yield from lines[:_LINES] if len(lines) > _LINES else lines
    if len(lines) > _LINES:
        yield _("… and %(number)s more", number=len(lines) - _LINES)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _lines(value: object, path: str) -> Iterator[str]:
    """Format a value by its field if its structure is as expected, else like any structure."""
    try:
        yield from list(_by_field(value, path))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        yield from _any(value)


def _by_field(value: object, path: str) -> Iterable[str]:
    last = path.rpartition(".")[2]
    if isinstance(value, str):
        if path in _ENUMS:
            return [OPEN_STATES.get(value) or sentence(value)]
        return [category({"name": value})] if value.startswith("categories/") else _any(value)
    if not isinstance(value, dict | list):
        return _any(value)
    if path == "regularHours.periods" or (last == "regularHours" and isinstance(value, dict)):
        return _week(value["periods"] if isinstance(value, dict) else value)
    if path == "moreHours":
        return [line for one in value for line in (f"{sentence(one['hoursTypeId'])}:", *_week(one["periods"]))]
    if last in {"specialHours", "specialHourPeriods"}:
        return [_special(one) for one in (value["specialHourPeriods"] if isinstance(value, dict) else value)]
    if last == "storefrontAddress" and isinstance(value, dict):
        return _address(value)
    if last == "primaryCategory" and isinstance(value, dict):
        return [category(value)]
    if last == "additionalCategories":
        return [category(one) for one in value]
    if last == "serviceItems":
        return [service(one) for one in value]
    if last == "placeInfos":
        return [str(one["placeName"]) for one in value]
    return _any(value)


def _week(periods: list[JsonObject]) -> list[str]:
    """Group days with the same hours into one line. A day without a period is closed."""
    hours: dict[str, list[str]] = {day: [] for day in DAYS}
    for one in sorted(periods, key=lambda one: minutes_of(one.get("openTime"))):
        until = f"{clock(one.get('openTime'))}{TO}{clock(one.get('closeTime'))}"
        later = one.get("closeDay", one["openDay"]) != one["openDay"] and minutes_of(one.get("closeTime")) > 0
        hours[one["openDay"]].append(f"{until} ({_day(one['closeDay'])})" if later else _midnight(one, until))
    texts = [(_day(day), ", ".join(hours[day]) or _("closed")) for day in DAYS]
    week = []
    for text, days in groupby(texts, key=lambda pair: pair[1]):
        names = [pair[0] for pair in days]
        week.append(f"{names[0]}{TO}{names[-1]} {text}" if len(names) > 1 else f"{names[0]} {text}")
    return week


def _midnight(period: JsonObject, text: str) -> str:
    """Write 00:00 of the next day as 24:00."""
    return text.replace(f"{TO}00:00", f"{TO}24:00") if period.get("closeDay") != period["openDay"] else text


def _special(period: JsonObject) -> str:
    days = [_date(period[side]) for side in ("startDate", "endDate") if period.get(side)]
    dates = TO.join(dict.fromkeys(days))
    if period.get("closed"):
        return f"{dates} {_('closed')}"
    return f"{dates} {clock(period.get('openTime'))}{TO}{clock(period.get('closeTime'))}"


def _address(value: JsonObject) -> list[str]:
    address: list[str] = []
    for name in _ADDRESS:
        part = value.get(name) or []
        address += [part] if isinstance(part, str) else [str(line) for line in part]
    rest = {name: part for name, part in value.items() if name not in _ADDRESS}
    return address + list(_any(rest))


def category(value: JsonObject) -> str:
    """Return the display name, or `Coffee shop` for `categories/gcid:coffee_shop`."""
    name: str = value.get("displayName") or ""
    return name or sentence(value["name"].rpartition("/")[2].removeprefix("gcid:"))


def service(value: JsonObject) -> str:
    if free := value.get("freeFormServiceItem"):
        name = str(free["label"]["displayName"])
    else:
        name = sentence(value["structuredServiceItem"]["serviceTypeId"].rpartition(":")[2])
    price = value.get("price") or {}
    return f"{name}, {amount(price)} {price.get('currencyCode') or ''}".strip() if price else name


def amount(price: JsonObject) -> str:
    """Return the exact number of a price, such as `12.5`. Its fields may be null, as a sync may send them."""
    number = int(price.get("units") or 0) + Decimal(int(price.get("nanos") or 0)) / NANOS
    return f"{number.normalize():f}"


def sentence(text: str) -> str:
    """Return `Happy hour` for `HAPPY_HOUR`."""
    words = text.replace("_", " ").strip()
    return words[:1].upper() + words[1:].lower()


def _date(day: dict[str, int]) -> str:
    return "-".join(f"{day[part]:02}" for part in ("year", "month", "day") if day.get(part))


def _day(name: str) -> str:
    return formats.weekday(name, short=True)


def _any(value: object, depth: int = _DEPTH) -> Iterator[str]:
    """Format any value: items as lines, fields as `name: value`; deep nesting is cut off."""
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, bool):
        yield _("yes") if value else _("no")
    elif not isinstance(value, dict | list):
        yield str(value)
    elif depth == 0:
        yield from _scalars(value)
    elif isinstance(value, list):
        for item in value[: 2 * _LINES]:
            yield ", ".join(_any(item, depth - 1)) or gettext(NOTHING)
        yield from ("" for _ in value[2 * _LINES :])  # counted by `_bounded`
    else:
        for name, item in value.items():
            yield f"{field(name)}: {', '.join(_any(item, depth - 1)) or gettext(NOTHING)}"


def _scalars(value: object) -> Iterator[str]:
    """Return the values at any depth, without the names of their fields, one after the other."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _scalars(item)
    elif value not in (None, ""):
        yield str(value)
