"""The rules of the provider's documentation for a profile, as cases: the table that every user of the rules runs.

`domain/location_rules.py`, the strict emulator, the preview and the push, and the profile form must agree on each.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    """A part of a profile, and the field with a problem and the provider's reason for it.

    Without a field, it is valid. The reason is empty where the provider only describes the problem.
    """

    body: dict[str, Any]
    field: str = ""
    reason: str = ""


def _of(field: str, reason: str, wrap: Any, *values: Any) -> list[Case]:
    return [Case(wrap(value), field, reason) for value in values]


def _text(text: str) -> dict[str, Any]:
    return {"profile": {"description": text}}


def _phone(text: str) -> dict[str, Any]:
    return {"phoneNumbers": {"primaryPhone": text}}


def _others(*phones: str) -> dict[str, Any]:
    return {"phoneNumbers": {"primaryPhone": "+81 45-555-0111", "additionalPhones": list(phones)}}


def _site(url: str) -> dict[str, Any]:
    return {"websiteUri": url}


def _code(code: str) -> dict[str, Any]:
    return {"storeCode": code}


def _region(code: str) -> dict[str, Any]:
    return {"storefrontAddress": {"addressLines": ["1 Pier"], "locality": "Yokohama", "regionCode": code}}


def _places(*places: dict[str, Any]) -> dict[str, Any]:
    return {"serviceArea": {"businessType": "CUSTOMER_AND_BUSINESS_LOCATION", "places": {"placeInfos": list(places)}}}


def _service(**item: Any) -> dict[str, Any]:
    return {"serviceItems": [item]}


def _priced(**price: Any) -> dict[str, Any]:
    return _service(structuredServiceItem=_LISTED, price=price)


def _opened(year: int, month: int, day: int) -> dict[str, Any]:
    return {"openInfo": {"openingDate": {"year": year, "month": month, "day": day}}}


_LISTED = {"serviceTypeId": "job_type_id:x"}
_PLACE = {"placeId": "ChIJ-1", "placeName": "Kawasaki"}
_PHONE, _URL, _LINK = "INVALID_PHONE_NUMBER", "INVALID_URL", "PROFILE_DESCRIPTION_CONTAINS_URL"
_LONG, _CHARS, _MANY = "STRING_TOO_LONG", "INVALID_CHARACTERS", "TOO_MANY_ENTRIES"
_CURRENCY = "PRICE_CURRENCY_INVALID"

# The part of the profile of the pier, whose country is JP. The clock is in January or March 2026.
VALID: list[Case] = [
    Case({"title": "Harbour Coffee 横浜"}),
    Case({"title": "x" * 100}),
    *_of(
        "", "", _text, "x" * 750, "é" * 750, "Open at 9.Come in!", "We (still) serve tea: it's 3/4 off\nBye", "Ww. Cafe"
    ),
    *_of(
        "",
        "",
        _phone,
        "+81 45-555-0170",
        "045-555-0170",
        "(045) 555 0170",
        "\uff10\uff14\uff15-555-0170",
        "+1 415 555 0132",
    ),
    *_of(
        "", "", _phone, "+49 (0)30 123456", "045-555-0170 ext. 12", "1-800-FLOWERS", "+44 20 7946 0999", "0800/123456"
    ),
    *_of("", "", _phone, "+1-555-987-6543", "+33 1 23 45 67 89", "110", "+81455550170"),
    Case(_others("+81 45-555-0110", "045-555-0112")),
    Case(_others()),
    *_of("", "", _site, "https://harbour.example", "http://harbour.example/a?b=c#d", "HTTPS://HARBOUR.EXAMPLE:8443/"),
    *_of("", "", _site, "https://hafen-café.example/über", "http://192.0.2.1/", "https://x.example/a@b"),
    *_of("", "", _code, "HC-PIER", "x" * 59, "Pier 7 (main)", "横浜"),
    *_of("", "", _region, "JP", "jp"),
    Case({"labels": [f"{number}" for number in range(10)]}),
    Case({"labels": ["x" * 255]}),
    Case(_places(_PLACE)),
    Case(_places(*({**_PLACE, "placeId": f"ChIJ-{number}"} for number in range(20)))),
    Case(_service(structuredServiceItem={**_LISTED, "description": "x" * 300})),
    Case(_service(freeFormServiceItem={"category": "categories/gcid:cafe", "label": {"displayName": "Tasting"}})),
    Case(_priced(currencyCode="JPY", units="500")),
    Case(_priced(currencyCode="USD", units="-1", nanos=-750_000_000)),
    Case(_priced(currencyCode="EUR", nanos=999_999_999)),
    Case({"openInfo": {"openingDate": {"year": 2019, "month": 5}}}),
    Case(_opened(2026, 12, 24)),
    Case({"relationshipData": {"parentChain": "chains/123"}}),
    Case({"adWordsLocationExtensions": {"adPhone": "+81 45-555-0112"}}),
    Case({"storefrontAddress": {"regionCode": "JP", "addressLines": ["a"] * 5, "revision": 0}}),
]

INVALID: list[Case] = [
    *_of("title", "", lambda text: {"title": text}, None, "", " ", "\n", "\u200b"),
    *_of("title", _LONG, lambda text: {"title": text}, "x" * 101, "é" * 300),
    *_of(
        "profile.description", _LINK, _text, "Order at https://harbour.example", "see WWW.harbour.example", "http://a"
    ),
    *_of("profile.description", _LINK, _text, "a (ftp://b.example)", "x\nwww.x.example\ny", "tel://1"),
    *_of("profile.description", _LONG, _text, "x" * 751, "x" * 800),
    *_of("phoneNumbers.primaryPhone", _PHONE, _phone, "call me", "+", "1", "12", "n/a", "-", "tel:+81455550170"),
    *_of(
        "phoneNumbers.primaryPhone", _PHONE, _phone, "+81 1", "+999 123456", "5" * 40, "*123#", "045-555-0170 or 0171"
    ),
    *_of("phoneNumbers.primaryPhone", _PHONE, _phone, "045-555-0170 / x0171", "045-555-0170 x1 /x2"),
    *_of(
        "phoneNumbers.primaryPhone", _PHONE, _phone, "info@harbour.example", "https://harbour.example", "+81 45 (ask)"
    ),
    Case(_others("call me"), "phoneNumbers.additionalPhones.0", _PHONE),
    Case(_others("+81 45-555-0110", "x"), "phoneNumbers.additionalPhones.1", _PHONE),
    Case(_others(*["+81 45-555-0110"] * 3), "phoneNumbers.additionalPhones", _MANY),
    Case({"adWordsLocationExtensions": {"adPhone": "none"}}, "adWordsLocationExtensions.adPhone", _PHONE),
    *_of(
        "websiteUri",
        _URL,
        _site,
        "javascript:alert(1)",
        "harbour.example",
        "ftp://harbour.example",
        "//harbour.example",
    ),
    *_of(
        "websiteUri", _URL, _site, "https://", "https:///x", "https://a b.example", "https://u:p@harbour.example", "x"
    ),
    *_of("websiteUri", _URL, _site, "data:text/html,x", "mailto:a@b.example", "https://a.example:99999", "http://a\\b"),
    *_of("storeCode", _CHARS, _code, "a<b", "a>b", " a", "a ", "https://harbour.example", "www.harbour.example"),
    *_of("storeCode", _LONG, _code, "x" * 60),
    *_of(
        "storefrontAddress.regionCode",
        "INVALID_ADDRESS",
        _region,
        "Japan",
        "JPN",
        "ZZ",
        "J",
        "001",
        "EU",
        "日本",
        "U S",
    ),
    Case({"storefrontAddress": {"regionCode": "JP", "revision": 1}}, "storefrontAddress.revision"),
    Case(
        {"storefrontAddress": {"regionCode": "JP", "addressLines": ["a"] * 6}}, "storefrontAddress.addressLines", _MANY
    ),
    *(
        Case({"latlng": {"latitude": 1.5, "longitude": 1.5, **one}}, f"latlng.{next(iter(one))}", "INVALID_LATLNG")
        for one in ({"latitude": 200}, {"latitude": -90.1}, {"longitude": 181}, {"longitude": -1e9})
    ),
    Case({"labels": [f"{number}" for number in range(11)]}, "labels", _MANY),
    Case({"labels": ["x" * 256]}, "labels.0"),
    Case({"labels": [""]}, "labels.0"),
    Case(_places({"placeId": "ChIJ-1"}), "serviceArea.places.placeInfos.0.placeName"),
    Case(_places({"placeName": "Kawasaki"}), "serviceArea.places.placeInfos.0.placeId"),
    Case(_places(*[_PLACE] * 21), "serviceArea.places.placeInfos", _MANY),
    Case(
        _service(structuredServiceItem={**_LISTED, "description": "x" * 301}),
        "serviceItems.0.structuredServiceItem.description",
        _LONG,
    ),
    Case(_service(price={"currencyCode": "JPY", "units": "1"}), "serviceItems.0", "INVALID_SERVICE_ITEM"),
    Case(
        _service(
            structuredServiceItem=_LISTED,
            freeFormServiceItem={"category": "categories/gcid:cafe", "label": {"displayName": "x"}},
        ),
        "serviceItems.0",
        "INVALID_SERVICE_ITEM",
    ),
    Case(_service(structuredServiceItem={"description": "x"}), "serviceItems.0.structuredServiceItem.serviceTypeId"),
    Case(
        _service(freeFormServiceItem={"category": "c", "label": {"description": "x"}}),
        "serviceItems.0.freeFormServiceItem.label.displayName",
    ),
    Case(_service(freeFormServiceItem={"category": "c"}), "serviceItems.0.freeFormServiceItem.label"),
    Case(_priced(currencyCode="Yen", units="500"), "serviceItems.0.price.currencyCode", _CURRENCY),
    Case(_priced(currencyCode="usd", units="5"), "serviceItems.0.price.currencyCode", _CURRENCY),
    Case(_priced(currencyCode="USD", units="1", nanos=-1), "serviceItems.0.price"),
    Case(_priced(currencyCode="USD", nanos=1_000_000_000), "serviceItems.0.price"),
    Case(_opened(2028, 1, 1), "openInfo.openingDate", "OPENING_DATE_TOO_FAR_IN_THE_FUTURE"),
    Case({"relationshipData": {"parentChain": "Starbucks"}}, "relationshipData.parentChain"),
    Case(
        {"relationshipData": {"childrenLocations": [{"placeId": "x"}]}},
        "relationshipData.childrenLocations.0.relationType",
    ),
    Case({"categories": {"additionalCategories": [{}]}}, "categories.additionalCategories.0.name"),
    Case(
        {"categories": {"additionalCategories": [{"name": f"categories/gcid:{n}"} for n in range(10)]}},
        "categories.additionalCategories",
        _MANY,
    ),
]
