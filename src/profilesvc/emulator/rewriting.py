"""The provider's own spelling of a profile, which the switch `rewrites` turns on. The values mean the same (D-122)."""

import json
import unicodedata
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import phonenumbers

from profilesvc.contract.json import JsonObject
from profilesvc.domain import meaning
from profilesvc.domain.hours import DAYS
from profilesvc.emulator.masks import Path

_MIDNIGHT = {"hours": 24}


def rewritten(location: JsonObject, mask: list[Path]) -> JsonObject:
    """Return a location in which the masked fields are spelled as the provider does.

    Phone numbers are national, URLs in normal form, texts trimmed, in NFC and with CRLF. Lists are sorted, and 24:00 is
    00:00 of the next day.
    """
    region = meaning.region_of(location)
    named = {path[0] for path in mask}
    return {name: _spelled(name, value, region) if name in named else value for name, value in location.items()}


def _spelled(path: str, value: Any, region: str | None) -> Any:
    if isinstance(value, str):
        return _SPELLINGS[path](value, region) if path in _SPELLINGS else value
    if isinstance(value, dict):
        return {name: _spelled(f"{path}.{name}", inner, region) for name, inner in value.items()}
    if isinstance(value, list):
        return _SHAPES.get(path, list)([_spelled(f"{path}.*", item, region) for item in value])
    return value


def _phone(value: str, region: str | None) -> str:
    try:
        number = phonenumbers.parse(value, region and region.upper())
    except phonenumbers.NumberParseException:
        return value
    is_national = phonenumbers.region_code_for_country_code(number.country_code or 0) == (region or "").upper()
    form = phonenumbers.PhoneNumberFormat
    return phonenumbers.format_number(number, form.NATIONAL if is_national else form.INTERNATIONAL)


def _url(value: str, _region: str | None) -> object:
    return meaning.form("websiteUri", value) or ""


def _text(value: str, _region: str | None) -> str:
    lines = value.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", lines).strip().replace("\n", "\r\n")


def _upper(value: str, _region: str | None) -> str:
    return value.strip().upper()


def _in_order(items: list[Any]) -> list[Any]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def _week(periods: list[JsonObject]) -> list[JsonObject]:
    """Return TimePeriods by day and time, with 00:00 of the next day for 24:00, except for the end of a whole week."""
    result = []
    for period in periods:
        if period.get("closeTime") == _MIDNIGHT and period.get("closeDay") in DAYS:
            following = DAYS[(DAYS.index(period["closeDay"]) + 1) % len(DAYS)]
            is_whole_week = period.get("openDay") == following and not any((period.get("openTime") or {}).values())
            period = period if is_whole_week else {**period, "closeDay": following, "closeTime": {}}
        result.append(period)
    return sorted(result, key=_opens)


def _opens(period: JsonObject) -> tuple[int, int, int]:
    day, time = period.get("openDay"), period.get("openTime") or {}
    return DAYS.index(day) if day in DAYS else len(DAYS), time.get("hours") or 0, time.get("minutes") or 0


def _dates(periods: list[JsonObject]) -> list[JsonObject]:
    """Return SpecialHourPeriods in reverse order, with 00:00 of the next date for 24:00."""
    result = []
    for period in reversed(periods):
        if period.get("closeTime") == _MIDNIGHT and not period.get("closed"):
            end = _following(period.get("endDate") or period.get("startDate") or {})
            period = {**period, "endDate": end, "closeTime": {}} if end else period
        result.append(period)
    return result


def _following(day: JsonObject) -> JsonObject | None:
    try:
        following = date(day["year"], day["month"], day["day"]) + timedelta(days=1)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    return {"year": following.year, "month": following.month, "day": following.day}


_SPELLINGS: dict[str, Callable[[str, str | None], object]] = {
    "phoneNumbers.primaryPhone": _phone,
    "phoneNumbers.additionalPhones.*": _phone,
    "adWordsLocationExtensions.adPhone": _phone,
    "websiteUri": _url,
    "title": _text,
    "labels.*": _text,
    "profile.description": _text,
    "storefrontAddress.addressLines.*": _text,
    "storefrontAddress.locality": _text,
    "storefrontAddress.regionCode": _upper,
}
_SHAPES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "labels": _in_order,
    "moreHours": _in_order,
    "serviceItems": _in_order,
    "categories.additionalCategories": _in_order,
    "phoneNumbers.additionalPhones": _in_order,
    "serviceArea.places.placeInfos": _in_order,
    "regularHours.periods": _week,
    "moreHours.*.periods": _week,
    "specialHours.specialHourPeriods": _dates,
}
