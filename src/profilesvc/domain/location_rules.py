"""The rules of the provider's documentation for the values of a profile (D-124).

The service applies them before a push, and the strict emulator to each update, so that both reject the same values.
`messages.parse` checks formats and types before, and `domain/hours.py` has the rules of hours and dates. Values that
are stored or returned by the provider are shown whatever they are.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from babel import Locale

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider import limits
from profilesvc.contract.visible import has_visible_text
from profilesvc.domain.errors import Problem
from profilesvc.domain.problems import counted
from profilesvc.domain.provider_values import has_link, is_phone, is_region, is_web_address

WEB_ADDRESS = "must be an http or https address without user info"
PHONE = "must be a phone number, such as +1 415 555 0132"
_CHAIN = re.compile(r"chains/[^/\s]+")
_AHEAD = timedelta(days=365 * limits.OPENING_DATE_YEARS + 2)  # a leap day, and a day for time zones


class Fault(NamedTuple):
    """An invalid value: the problem for the caller, and the provider's reason with its metadata."""

    problem: str
    reason: str = ""  # without one, the provider's error has a description only
    metadata: Mapping[str, str] = {}


class Violation(NamedTuple):
    """A fault and where it is: names of fields and positions in arrays, with dots between them."""

    path: str
    fault: Fault


class _Facts(NamedTuple):
    """The facts that a rule needs in addition to the value: the region of the address, if it is known, and the day."""

    region: str | None
    today: date


REQUIRED = Fault("is required")


def _at_most(number: int) -> Fault:
    return Fault(f"must have at most {counted(number, 'character')}", "STRING_TOO_LONG", {"max_length": f"{number}"})


def _title(title: str, _: _Facts) -> Fault | None:
    if not has_visible_text(title):
        return REQUIRED
    return _at_most(limits.TITLE) if len(title) > limits.TITLE else None


def _description(text: str, _: _Facts) -> Fault | None:
    if has_link(text):
        return Fault("must not contain a link", "PROFILE_DESCRIPTION_CONTAINS_URL")
    return _at_most(limits.DESCRIPTION) if len(text) > limits.DESCRIPTION else None


def _store_code(code: str, _: _Facts) -> Fault | None:
    if code != code.strip():
        return Fault("must not start or end with a space", "INVALID_CHARACTERS", {"invalid_characters": " "})
    if bracket := next((char for char in "<>" if char in code), ""):
        return Fault("must not contain angle brackets", "INVALID_CHARACTERS", {"invalid_characters": bracket})
    if has_link(code):
        return Fault("must not contain a link", "INVALID_CHARACTERS")
    return _at_most(limits.STORE_CODE) if len(code) > limits.STORE_CODE else None


def _phone(text: str, facts: _Facts) -> Fault | None:
    return None if is_phone(text, facts.region) else Fault(PHONE, "INVALID_PHONE_NUMBER")


def _web_address(url: str, _: _Facts) -> Fault | None:
    return None if is_web_address(url) or not url else Fault(WEB_ADDRESS, "INVALID_URL")


def _region(code: str, _: _Facts) -> Fault | None:
    is_valid = is_region(code) or not code
    return None if is_valid else Fault("must be the code of a country, such as JP for Japan", "INVALID_ADDRESS")


def _degrees(most: float) -> "Check":
    def check(number: float, _: _Facts) -> Fault | None:
        return None if -most <= number <= most else Fault(f"must be from {-most:g} to {most:g}", "INVALID_LATLNG")

    return check


def _opening_date(day: JsonObject, facts: _Facts) -> Fault | None:
    """Check how far ahead a date is. Whether it is a date is a rule of `domain/hours.py`."""
    try:
        opened = date(day.get("year") or 1, day.get("month") or 1, day.get("day") or 1)
    except ValueError:
        return None
    too_far = Fault("must not be more than one year ahead", "OPENING_DATE_TOO_FAR_IN_THE_FUTURE")
    return too_far if opened > facts.today + _AHEAD else None


def _service(item: JsonObject, _: _Facts) -> Fault | None:
    kinds = [name for name in ("structuredServiceItem", "freeFormServiceItem") if item.get(name) is not None]
    if len(kinds) == 1:
        return None
    return Fault("must have either structuredServiceItem or freeFormServiceItem", "INVALID_SERVICE_ITEM")


def _service_description(text: str, _: _Facts) -> Fault | None:
    return _at_most(limits.SERVICE_DESCRIPTION) if len(text) > limits.SERVICE_DESCRIPTION else None


def _currency(code: str, _: _Facts) -> Fault | None:
    is_known = not code or code in Locale.parse("en").currencies
    return None if is_known else Fault("must be a currency of ISO 4217, such as USD", "PRICE_CURRENCY_INVALID")


def _price(price: JsonObject, _: _Facts) -> Fault | None:
    units, nanos = int(price.get("units") or 0), price.get("nanos") or 0
    if abs(nanos) > limits.NANOS:
        return Fault(f"must have nanos from {-limits.NANOS} to {limits.NANOS}")
    return Fault("must have units and nanos of the same sign") if units * nanos < 0 else None


def _revision(number: int, _: _Facts) -> Fault | None:
    return Fault("must be 0") if number else None


def _chain(name: str, _: _Facts) -> Fault | None:
    return None if _CHAIN.fullmatch(name) or not name else Fault("must be the name of a chain, such as chains/123")


Check = Callable[[Any, _Facts], Fault | None]
# A path, with `*` for each item of an array, and the rule of a value there that is not null.
_VALUES: tuple[tuple[str, Check], ...] = (
    ("title", _title),
    ("storeCode", _store_code),
    ("phoneNumbers.primaryPhone", _phone),
    ("phoneNumbers.additionalPhones.*", _phone),
    ("adWordsLocationExtensions.adPhone", _phone),
    ("websiteUri", _web_address),
    ("profile.description", _description),
    ("storefrontAddress.regionCode", _region),
    ("storefrontAddress.revision", _revision),
    ("latlng.latitude", _degrees(limits.LATITUDE)),
    ("latlng.longitude", _degrees(limits.LONGITUDE)),
    ("openInfo.openingDate", _opening_date),
    ("relationshipData.parentChain", _chain),
    ("serviceItems.*", _service),
    ("serviceItems.*.structuredServiceItem.description", _service_description),
    ("serviceItems.*.price", _price),
    ("serviceItems.*.price.currencyCode", _currency),
)
# The most items of an array.
_COUNTS: tuple[tuple[str, int], ...] = (
    ("phoneNumbers.additionalPhones", limits.ADDITIONAL_PHONES),
    ("categories.additionalCategories", limits.ADDITIONAL_CATEGORIES),
    ("storefrontAddress.addressLines", limits.ADDRESS_LINES),
    ("serviceArea.places.placeInfos", limits.PLACES),
    ("labels", limits.LABELS),
)
# The fields that a message must have, where there is one with any field. An update sends these messages whole.
_REQUIRED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("phoneNumbers", ("primaryPhone",)),
    ("categories", ("primaryCategory",)),
    ("categories.primaryCategory", ("name",)),
    ("categories.additionalCategories.*", ("name",)),
    ("storefrontAddress", ("regionCode",)),
    ("serviceArea", ("businessType",)),
    ("serviceArea.places.placeInfos.*", ("placeId", "placeName")),
    ("adWordsLocationExtensions", ("adPhone",)),
    ("relationshipData.parentLocation", ("placeId", "relationType")),
    ("relationshipData.childrenLocations.*", ("placeId", "relationType")),
    ("serviceItems.*.structuredServiceItem", ("serviceTypeId",)),
    ("serviceItems.*.freeFormServiceItem", ("category", "label")),
    ("serviceItems.*.freeFormServiceItem.label", ("displayName",)),
)


def violations(location: JsonObject, today: date, region: str | None = None) -> Iterator[Violation]:
    """Yield what is wrong with the values of a location or a part of one, whose types are valid.

    A part can lack the fields that it does not change, so only the items of arrays must be complete. `region` is that
    of the address, for a part without one.
    """
    address = location.get("storefrontAddress")
    own = address.get("regionCode") if isinstance(address, dict) else None
    facts = _Facts(own or region, today)
    if "title" in location and location["title"] is None:
        yield Violation("title", REQUIRED)
    for pattern, most in _COUNTS:
        for path, items in _matches(location, pattern):
            if len(items) > most:
                problem = f"must have at most {counted(most, 'item')}"
                yield Violation(path, Fault(problem, "TOO_MANY_ENTRIES", {"max_count": f"{most}"}))
    for pattern, check in _VALUES:
        for path, value in _matches(location, pattern):
            if (fault := check(value, facts)) is not None:
                yield Violation(path, fault)
    yield from _missing(location, in_arrays=True)


def incomplete(location: JsonObject) -> Iterator[Violation]:
    """Yield the fields that the messages of an update lack, which sends each of them whole."""
    yield from _missing(location, in_arrays=False)


def problems(location: JsonObject, today: date) -> list[Problem]:
    """Return the problems of the values of a request."""
    return [("body", path, fault.problem) for path, fault in violations(location, today)]


def _missing(location: JsonObject, *, in_arrays: bool) -> Iterator[Violation]:
    for pattern, names in _REQUIRED:
        if ("*" in pattern) is not in_arrays:
            continue
        for path, message in _matches(location, pattern):
            if not in_arrays and not any(value is not None for value in message.values()):
                continue
            yield from (Violation(f"{path}.{name}", REQUIRED) for name in names if message.get(name) in (None, "", {}))


def _matches(value: Any, pattern: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values at a pattern that are not null, each with its path."""
    name, _, rest = pattern.partition(".")
    inner: list[tuple[object, Any]] = []
    if name == "*":
        inner += enumerate(value) if isinstance(value, list) else []
    elif isinstance(value, dict):
        inner.append((name, value.get(name)))
    for key, item in inner:
        if item is None:
            continue
        at = f"{path}.{key}" if path else f"{key}"
        if rest:
            yield from _matches(item, rest, at)
        else:
            yield at, item
