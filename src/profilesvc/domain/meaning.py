"""The meaning of values of a profile, so that two spellings of the same value are equal (D-122).

The provider writes values in its own way: a phone number in its national format, a URL with a slash, a list in another
order. Comparison, drift and the plan of a sync use the forms of this module. What is stored and sent stays as written.
A value that cannot be read in its field's way is compared as JSON, so nothing here raises an error.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, unquote

from profilesvc.contract.common import whole_number
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.domain.hosts import canonical_host
from profilesvc.domain.hours import special_minutes, weekly_minutes
from profilesvc.domain.messages import annotation_at, normal

_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_NEAR = 1.000001e-6  # degrees, a tenth of a metre; the last digits are for binary fractions
_URL = re.compile(
    r"(https?)://(?:([^/?#]*)@)?(\[[^]/?#]*]|[^:/?#@]*)(?::([0-9]*))?(/[^?#]*)?([?#].*)?\Z", re.I | re.DOTALL
)
_USUAL_PORT = {"http": "80", "https": "443"}
_RESERVED = "!#$%&'()*+,/:;=?@[]"
_ESCAPE = re.compile("%([0-9A-F]{2})", re.IGNORECASE)


def _text(value: str, _region: str | None = None) -> str | None:
    """Return a text in NFC with LF and without outer white space; case counts."""
    return unicodedata.normalize("NFC", value.replace("\r\n", "\n").replace("\r", "\n")).strip() or None


def _code(value: str, _region: str | None) -> str | None:
    """Return a code of a region or language in lower case."""
    return value.strip().lower() or None


def _phone(value: str, region: str | None) -> str | None:
    """Return a phone number in E.164 with its extension, or the text if it is no number.

    A national number is read as one of `region`.
    """
    import phonenumbers  # lazy because it is slow

    from profilesvc.domain.provider_values import has_second_extension

    if has_second_extension(value):
        return _text(value)
    try:
        number = phonenumbers.parse(value, region and region.upper())
    except phonenumbers.NumberParseException:
        return _text(value)
    e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return f"{e164};ext={number.extension}" if number.extension else e164


def _url(value: str, _region: str | None) -> str | None:
    """Return a URL after the normalisation of RFC 3986 §6.2.2 and §6.2.3, with the host in A-labels."""
    match = _URL.match(value.strip())
    if match is None:
        return _text(value)
    scheme, user, host, port, path, rest = match.groups()
    scheme = scheme.lower()
    site = (f"{_escaped(user)}@" if user else "") + canonical_host(unquote(host, errors="strict"))
    if port and (number := str(int(port))) != _USUAL_PORT[scheme]:
        site += f":{number}"
    return f"{scheme}://{site}{_without_dots(_escaped(path or ''))}{_escaped(rest or '')}"


def _escaped(part: str) -> str:
    """Return a part of a URL with only the escapes that it needs, in upper case (RFC 3986 §6.2.2)."""
    return _ESCAPE.sub(lambda match: quote(bytes.fromhex(match[1]), safe=""), quote(part, _RESERVED))


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986 §5.2.4). An empty path is `/`."""
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    return "/" + "/".join([*segments, ""] if path.endswith(("/.", "/..")) else segments)


def _week(periods: object, _region: str | None) -> object:
    return weekly_minutes(_whole(periods)) or None


def _dates(periods: object, _region: str | None) -> object:
    return special_minutes(_whole(periods)) or None


def _whole(value: object) -> object:
    """Return a value with 10 for 10.0 at any depth, because stored values are as the caller wrote them."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else whole_number(value)


_ADDRESS_TEXTS = ("addressLines.*", "administrativeArea", "locality", "organization", "postalCode", "recipients.*")
_SERVICE = "serviceItems.*.freeFormServiceItem.label"
# The fields with a form of their own, by dotted path with `*` for the items of an array. All others are equal as JSON.
_FORMS: dict[str, Callable[..., object]] = {
    "phoneNumbers.primaryPhone": _phone,
    "phoneNumbers.additionalPhones.*": _phone,
    "adWordsLocationExtensions.adPhone": _phone,
    "websiteUri": _url,
    "regularHours.periods": _week,
    "moreHours.*.periods": _week,
    "specialHours.specialHourPeriods": _dates,
    "title": _text,
    "storeCode": _text,
    "labels.*": _text,
    "profile.description": _text,
    **{f"storefrontAddress.{name}": _text for name in (*_ADDRESS_TEXTS, "sortingCode", "sublocality")},
    "serviceArea.places.placeInfos.*.placeName": _text,
    "serviceItems.*.structuredServiceItem.description": _text,
    f"{_SERVICE}.displayName": _text,
    f"{_SERVICE}.description": _text,
    f"{_SERVICE}.languageCode": _code,
    "languageCode": _code,
    "storefrontAddress.languageCode": _code,
    "storefrontAddress.regionCode": _code,
    "serviceArea.regionCode": _code,
}
# The arrays whose order and repetitions mean nothing.
_SETS = (
    "labels",
    "moreHours",
    "serviceItems",
    "phoneNumbers.additionalPhones",
    "categories.additionalCategories",
    "serviceArea.places.placeInfos",
    "relationshipData.childrenLocations",
)
_DEGREES = ("latlng.latitude", "latlng.longitude")


def same(field: str, value: object, other: object, regions: tuple[str | None, str | None] = (None, None)) -> bool:
    """Return whether two values of the field at a dotted path mean the same. An absent one equals its default.

    `regions` are those of the two addresses, in which national phone numbers are read.
    """
    if value == other:
        return True
    mine, theirs = regions
    return _equal(field, form(field, value, mine or theirs), form(field, other, theirs or mine))


def form(field: str, value: object, region: str | None = None) -> object:
    """Return a value of a field in the form in which it is compared, without the defaults that the provider omits."""
    plain = normal(annotation_at(Location, field), value)
    try:
        return _formed(field, plain, region)
    except _UNREADABLE:
        return plain


def region_of(*locations: JsonObject) -> str | None:
    """Return the region of the first location that has one, in its address or as a business without premises."""
    for location in locations:
        for name in ("storefrontAddress", "serviceArea"):
            message = location.get(name)
            region = message.get("regionCode") if isinstance(message, dict) else None
            if region and isinstance(region, str):
                return region
    return None


def _formed(path: str, value: object, region: str | None) -> object:
    if value is None:
        return None
    if (own := _FORMS.get(path)) is not None:
        try:
            return own(value, region)
        except _UNREADABLE:
            return value
    if isinstance(value, dict):
        fields = {name: _formed(f"{path}.{name}", inner, region) for name, inner in value.items()}
        return {name: inner for name, inner in fields.items() if inner is not None} or None
    if not isinstance(value, list):
        return value
    items = [_formed(f"{path}.*", item, region) for item in value]
    if f"{path}.*" in _FORMS:  # a blank text means nothing
        items = [item for item in items if item is not None]
    if path in _SETS:
        return sorted({json.dumps(item, sort_keys=True) for item in items}) or None
    return items or None


def _equal(path: str, value: object, other: object) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return all(_equal(f"{path}.{name}", value.get(name), other.get(name)) for name in value.keys() | other.keys())
    if path in _DEGREES:
        value, other = value or 0, other or 0
        if isinstance(value, int | float) and isinstance(other, int | float):
            return abs(value - other) <= _NEAR
    return value == other
