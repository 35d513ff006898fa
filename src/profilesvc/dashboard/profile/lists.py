"""The fields of a profile with any number of items: categories, kinds of hours, services, and areas that are served.

The page names the items that it shows (`seen`), so that one that somebody else has added meanwhile is not removed.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.profile.fields import Inputs, Part, week_inputs, week_of
from profilesvc.dashboard.words import values
from profilesvc.domain.errors import Problem, invalid_many

CATEGORY, HOURS = "category-", "moreHours-"
SERVICE, AREA = "serviceItems-", "serviceArea-"
PREFIXES = (CATEGORY, HOURS, SERVICE, AREA)
_SEEN = "seen-"
_NEW = re.compile(r"new[0-9]{1,6}")  # of a page, so that a row of any other name is ignored
_CURRENCY = re.compile(r"[A-Z]{3}")
_AMOUNT = "must be an amount such as 12.50"


def _below(inputs: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in inputs.items() if name.startswith(prefix)}


def _is_kept(inputs: Mapping[str, str], prefix: str, ident: str) -> bool:
    """Return whether an item is ticked, or was not on the page."""
    return bool(inputs.get(f"{prefix}{ident}") or not inputs.get(f"{prefix}{_SEEN}{ident}"))


def _boxes(prefix: str, idents: list[str]) -> Inputs:
    return {name: "on" for ident in idents for name in (f"{prefix}{ident}", f"{prefix}{_SEEN}{ident}")}


def added(inputs: Mapping[str, str], values: Mapping[str, str]) -> Inputs:
    """Return the inputs of the items that were not on the page that was sent."""
    seen = [name for name in inputs if name.startswith(tuple(f"{prefix}{_SEEN}" for prefix in PREFIXES))]
    items = [name.replace(_SEEN, "", 1) for name in seen if name not in values]
    new = {*(name for name in seen if name not in values), *items}
    return {
        name: text for name, text in inputs.items() if name in new or name.startswith(tuple(f"{one}-" for one in items))
    }


def known_categories(value: object) -> dict[str, JsonObject]:
    """Return the categories of a profile by name, the main one first. The provider's profile can have any shape."""
    value = value if isinstance(value, dict) else {}
    others = value.get("additionalCategories")
    every = [value.get("primaryCategory"), *(others if isinstance(others, list) else [])]
    named = [one for one in every if isinstance(one, dict) and isinstance(one.get("name"), str)]
    return {one["name"]: one for one in named if one["name"]}


def categories_of(inputs: Mapping[str, str], stored: JsonObject) -> list[str]:
    """Return the categories of the page: those of the profile, and those that were ticked after a search."""
    ticked = [name for name, text in _below(inputs, CATEGORY).items() if text and not name.startswith(_SEEN)]
    return list(dict.fromkeys([*known_categories(stored.get("categories")), *ticked]))


def _categories(value: JsonObject | None) -> Inputs:
    """Return the main category, and a ticked box for each other one."""
    first, *others = [*known_categories(value)] or [""]
    return {"categories": first, **_boxes(CATEGORY, others)}


def _to_categories(inputs: Mapping[str, str], stored: JsonObject) -> JsonObject | None:
    """Return the categories: a new main one is one of the others, which the old main one joins."""
    names = categories_of(inputs, stored)
    primary = inputs["categories"] if inputs["categories"] in names else next(iter(names), None)
    first = next(iter(known_categories(stored.get("categories"))), None)
    remaining = [name for name in names if name != primary and (name == first or _is_kept(inputs, CATEGORY, name))]
    others = [{"name": name} for name in remaining]
    return {"primaryCategory": {"name": primary}, "additionalCategories": others or None} if primary else None


def hours_types(inputs: Mapping[str, str]) -> list[str]:
    """Return the kinds of hours that have inputs, in order."""
    return list(dict.fromkeys(name.rpartition("-")[0] for name in _below(inputs, HOURS)))


def _more_hours(value: list[JsonObject] | None) -> Inputs:
    result: Inputs = {}
    for one in value or []:
        result |= week_inputs(f"{HOURS}{one['hoursTypeId']}", one["periods"])
    return result


def _to_more_hours(inputs: Mapping[str, str], _: JsonObject) -> list[JsonObject] | None:
    result: list[JsonObject] = []
    problems: list[Problem] = []
    for kind in hours_types(inputs):
        periods, wrong = week_of(f"{HOURS}{kind}", inputs)
        problems += wrong
        if periods:
            result.append({"hoursTypeId": kind, "periods": periods})
    if problems:
        raise invalid_many(problems)
    return result or None


def items_of(stored: JsonObject) -> dict[str, JsonObject]:
    """Return the services of a profile by a short digest, which finds the same item again."""
    by_ident: dict[str, JsonObject] = {}
    count: Counter[str] = Counter()
    for item in stored.get("serviceItems") or []:
        ident = hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()[:12]
        count[ident] += 1
        by_ident[ident if count[ident] == 1 else f"{ident}x{count[ident]}"] = item
    return by_ident


def new_rows(inputs: Mapping[str, str], prefix: str) -> list[str]:
    """Return the rows for new items that were filled in, and one more."""
    filled = {name.partition("-")[0] for name, text in _below(inputs, prefix).items() if text}
    rows = sorted((row for row in filled if _NEW.fullmatch(row)), key=lambda row: int(row[3:]))
    return [*rows, f"new{int(rows[-1][3:]) + 1 if rows else 0}"]


def _items(value: list[JsonObject] | None) -> Inputs:
    result: Inputs = {}
    for ident, item in items_of({"serviceItems": value}).items():
        free, price = item.get("freeFormServiceItem"), item.get("price") or {}
        label = free["label"] if free else item["structuredServiceItem"]
        result |= _boxes(SERVICE, [ident])
        result |= {
            f"{SERVICE}{ident}-name": label["displayName"] if free else "",
            f"{SERVICE}{ident}-description": label.get("description") or "",
            f"{SERVICE}{ident}-price": values.amount(price) if price else "",
            f"{SERVICE}{ident}-currency": price.get("currencyCode") or "",
        }
    return result


def _to_items(inputs: Mapping[str, str], stored: JsonObject) -> list[JsonObject] | None:
    result: list[JsonObject] = []
    problems: list[Problem] = []
    for ident, item in items_of(stored).items():
        if not inputs.get(f"{SERVICE}{_SEEN}{ident}"):
            result.append(item)
        elif inputs.get(f"{SERVICE}{ident}"):
            result.append(_changed(inputs, ident, item, problems))
    for row in new_rows(inputs, SERVICE)[:-1]:
        result.append(_changed(inputs, row, _new_item(inputs, row, stored, problems), problems))
    if problems:
        raise invalid_many(problems)
    return result or None


def _new_item(inputs: Mapping[str, str], row: str, stored: JsonObject, problems: list[Problem]) -> JsonObject:
    if kind := inputs.get(f"{SERVICE}{row}-kind"):
        return {"structuredServiceItem": {"serviceTypeId": kind}}
    if not inputs.get(f"{SERVICE}{row}-name", "").strip():
        problems.append(("body", f"{SERVICE}{row}-name", "enter a name, or select a service of the provider"))
    category = next(iter(known_categories(stored.get("categories"))), None)
    return {"freeFormServiceItem": {"category": category, "label": {}}}


def _changed(inputs: Mapping[str, str], ident: str, item: JsonObject, problems: list[Problem]) -> JsonObject:
    """Return the item with what the inputs have; everything else in it stays."""
    text = {name: inputs.get(f"{SERVICE}{ident}-{name}", "").strip() for name in ("name", "description")}
    own = {"description": text["description"] or None}
    if free := item.get("freeFormServiceItem"):
        label = {**free["label"], **own, "displayName": text["name"]}
        changed = {**item, "freeFormServiceItem": {**free, "label": label}}
        if not text["name"] and not _NEW.fullmatch(ident):
            problems.append(("body", f"{SERVICE}{ident}-name", "enter a name, or untick the service to remove it"))
    else:
        changed = {**item, "structuredServiceItem": {**item["structuredServiceItem"], **own}}
    return {**changed, "price": _price(inputs, ident, item.get("price"), problems)}


def _price(inputs: Mapping[str, str], ident: str, old: JsonObject | None, problems: list[Problem]) -> JsonObject | None:
    text, currency = (inputs.get(f"{SERVICE}{ident}-{name}", "").strip() for name in ("price", "currency"))
    if not text:
        return None
    try:
        amount = Decimal(text.replace(",", "."))
        if not (amount.is_finite() and 0 <= amount < 10**15):
            raise InvalidOperation
    except InvalidOperation:
        problems.append(("body", f"{SERVICE}{ident}-price", _AMOUNT))
        return None
    if not _CURRENCY.fullmatch(currency.upper()):
        problems.append(("body", f"{SERVICE}{ident}-currency", "must be three letters such as EUR"))
    units = int(amount)
    nanos = int((amount - units) * values.NANOS)
    return {**(old or {}), "currencyCode": currency.upper(), "units": str(units), "nanos": nanos or None}


def _area(value: JsonObject | None) -> Inputs:
    value = value or {}
    places = [one["placeId"] for one in (value.get("places") or {}).get("placeInfos") or []]
    return {"serviceArea": value.get("businessType") or "", **_boxes(AREA, places)}


def places_of(stored: JsonObject) -> list[JsonObject]:
    """Return the areas that a profile names."""
    return ((stored.get("serviceArea") or {}).get("places") or {}).get("placeInfos") or []


def _to_area(inputs: Mapping[str, str], stored: JsonObject) -> JsonObject | None:
    """Return the areas; without a type, the business serves no area, and nothing of it stays."""
    if not inputs["serviceArea"]:
        return None
    result = [one for one in places_of(stored) if _is_kept(inputs, AREA, one["placeId"])]
    problems: list[Problem] = []
    for row in new_rows(inputs, AREA)[:-1]:
        texts = {part: inputs.get(f"{AREA}{row}-{part}", "").strip() for part in ("name", "place")}
        problems += [("body", f"{AREA}{row}-{part}", "is required") for part, text in texts.items() if not text]
        result.append({"placeName": texts["name"], "placeId": texts["place"]})
    if problems:
        raise invalid_many(problems)
    return {"businessType": inputs["serviceArea"], "places": {"placeInfos": result} if result else None}


LISTS: dict[str, Part[Any]] = {
    part.name: part
    for part in (
        Part("categories", _categories, _to_categories),
        Part("moreHours", _more_hours, _to_more_hours),
        Part("serviceItems", _items, _to_items),
        Part("serviceArea", _area, _to_area),
    )
}
