"""The parameters `filter` and `orderBy` of the list of locations."""

import math
import re
from collections.abc import Callable

from profilesvc.contract.json import JsonObject
from profilesvc.domain import profiles
from profilesvc.emulator.errors import ApiError, bad_request
from profilesvc.emulator.wire import camel

Test = Callable[[JsonObject], bool]
_TOKEN = re.compile(
    r"\s*(?:(?P<word>AND\b|OR\b|[()])"
    r"|distance\(\s*latlng\s*,\s*geopoint\(\s*(?P<lat>-?[\d.]+)\s*,\s*(?P<lng>-?[\d.]+)\s*\)\s*\)\s*<\s*(?P<far>[\d.]+)"
    r'|(?P<field>[A-Za-z_.]+)\s*(?P<operator>[=:])\s*"(?P<value>[^"]*)")\s*'
)
_FIELDS = {
    "title",
    "categories",
    "phoneNumbers.primaryPhone",
    "storefrontAddress.regionCode",
    "storefrontAddress.administrativeArea",
    "storefrontAddress.locality",
    "storefrontAddress.postalCode",
    "metadata.placeId",
    "openInfo.status",
    "labels",
    "storeCode",
}
_EARTH_METRES = 6_371_000


def _invalid() -> ApiError:
    return bad_request("filter", "Invalid filter provided")


def location_filter(text: str) -> Test:
    """Return the test of a filter.

    Raises:
        ApiError: 400 for an unknown filter.
    """
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _invalid()
        tokens.append(match)
        at = match.end()
    try:
        test, _ = _conjunction(tokens)
    except RecursionError:
        raise _invalid() from None
    if tokens:
        raise _invalid()
    return test


def _conjunction(tokens: list[re.Match[str]]) -> tuple[Test, set[str]]:
    """Parse restrictions joined by AND, which has lower precedence than OR. Remove the parsed tokens from the list."""
    parts = [_disjunction(tokens)]
    while _accept(tokens, "AND"):
        parts.append(_disjunction(tokens))
    return lambda place: all(test(place) for test, _ in parts), set().union(*(fields for _, fields in parts))


def _disjunction(tokens: list[re.Match[str]]) -> tuple[Test, set[str]]:
    """Parse restrictions joined by OR, which is allowed only between restrictions of one field."""
    parts = [_atom(tokens)]
    while _accept(tokens, "OR"):
        parts.append(_atom(tokens))
    fields = set().union(*(fields for _, fields in parts))
    if len(parts) > 1 and len(fields) > 1:
        raise _invalid()
    return lambda place: any(test(place) for test, _ in parts), fields


def _accept(tokens: list[re.Match[str]], word: str) -> bool:
    return bool(tokens and tokens[0]["word"] == word and tokens.pop(0))


def _atom(tokens: list[re.Match[str]]) -> tuple[Test, set[str]]:
    if _accept(tokens, "("):
        inner = _conjunction(tokens)
        if not _accept(tokens, ")"):
            raise _invalid()
        return inner
    if not tokens or tokens[0]["word"]:
        raise _invalid()
    token = tokens.pop(0)
    if token["far"]:
        return _near(token), {"latlng"}
    field = ".".join(camel(part) for part in token["field"].split("."))
    if field not in _FIELDS:
        raise _invalid()
    return _restriction(field, token["operator"], token["value"]), {field}


def _restriction(field: str, operator: str, value: str) -> Test:
    if field == "labels":
        return lambda place: value in place.get("labels", [])
    if field == "title" and operator == ":":
        return lambda place: value.lower() in place.get("title", "").lower()
    if field == "phoneNumbers.primaryPhone":
        return lambda place: any(_digits(value) == _digits(text) for text in _strings(place, field))
    return lambda place: any(_words(value) <= _words(text) for text in _strings(place, field))


def _strings(place: JsonObject, field: str) -> list[str]:
    if field == "categories":
        named = place.get("categories", {})
        every = [named.get("primaryCategory", {}), *named.get("additionalCategories", [])]
        return [category.get("name", "").rpartition("gcid:")[2] for category in every]
    value = profiles.at(place, field)
    return [value] if isinstance(value, str) else []


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _near(token: re.Match[str]) -> Test:
    """Return the test whether a location is within a distance in metres."""
    try:
        lat, lng = float(token["lat"]), float(token["lng"])
        far = float(token["far"])
    except ValueError:
        raise _invalid() from None

    def test(place: JsonObject) -> bool:
        if "latlng" not in place:
            return False
        place_lat, place_lng = place["latlng"].get("latitude", 0), place["latlng"].get("longitude", 0)
        d_lat, d_lng = math.radians(place_lat - lat), math.radians(place_lng - lng)
        across = math.cos(math.radians(lat)) * math.cos(math.radians(place_lat)) * math.sin(d_lng / 2) ** 2
        return 2 * _EARTH_METRES * math.asin(math.sqrt(min(1, math.sin(d_lat / 2) ** 2 + across))) < far

    return test


def location_order(text: str) -> Callable[[JsonObject], list[object]]:
    """Return the sort key of an orderBy. It ends with the name, so that keys are unique."""
    columns = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        field, _, direction = part.partition(" ")
        if camel(field) not in ("title", "storeCode") or direction.strip() not in ("", "asc", "desc"):
            raise bad_request("order_by", "Invalid order by provided")
        columns.append((camel(field), direction.strip() == "desc"))
    return lambda place: [*(_sortable(place.get(name, ""), descending) for name, descending in columns), place["name"]]


def _sortable(text: str, descending: bool) -> list[int]:
    """Return the code points, negated for descending order, in which a longer string precedes its own prefix."""
    return [*(-ord(char) for char in text), 1] if descending else [ord(char) for char in text]
