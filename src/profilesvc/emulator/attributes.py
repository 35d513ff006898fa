"""Attributes (Business Information v1): those of a location, and what a location may have."""

import json

from quart import Blueprint

from profilesvc.contract.provider.attributes import Attributes
from profilesvc.emulator.errors import ApiError, bad_request, business, snake
from profilesvc.emulator.locations import find_location
from profilesvc.emulator.state import count_edit, emulator
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import EmulatorLocationRow
from profilesvc.emulator.wire import Document, page, read_message, read_query

attributes = Blueprint("attributes", __name__)
_VALUE_MEMBER = {"BOOL": "values", "ENUM": "values", "URL": "uriValues", "REPEATED_ENUM": "repeatedEnumValue"}


def _known(region: str = "", category_names: set[str] | None = None) -> dict[str, Document]:
    """The metadata by attribute id; of one region and for some categories where those are given."""
    found = {}
    for entry in emulator().world.get("attribute_metadata", []):
        for_region = not region or region in entry.get("regions", [region])
        for_category = category_names is None or category_names & set(entry.get("categories", category_names))
        if for_region and for_category:
            found[entry["metadata"]["parent"]] = entry["metadata"]
    return found


def _known_for(row: EmulatorLocationRow) -> dict[str, Document]:
    document = json.loads(row.document)
    named = document.get("categories", {})
    every = [named.get("primaryCategory", {}), *named.get("additionalCategories", [])]
    names = {category.get("name", "") for category in every}
    return _known(document.get("storefrontAddress", {}).get("regionCode", ""), names)


def _rendered(row: EmulatorLocationRow) -> Document:
    stored = json.loads(row.attributes)
    return {"name": f"{row.name}/attributes", **({"attributes": stored} if stored else {})}


@attributes.get("/v1/locations/<name:location>/attributes")
@attributes.get("/v1/locations/<name:location>/attributes:getGoogleUpdated")
async def get_attributes(location: str) -> Document:
    """What the location has; consumers see the same."""
    read_query()
    async with emulator().store.read() as session:
        return _rendered(await find_location(session, location))


@attributes.patch("/v1/locations/<name:location>/attributes")
async def update_attributes(location: str) -> Document:
    """Set the attributes in the mask; those that the body lacks are removed, those outside the mask are ignored."""
    mask = [part for part in read_query("attributeMask").get("attributeMask", "").split(",") if part]
    if not mask:
        raise bad_request("attribute_mask", "Field is required")
    body = await read_message(Attributes, "attributes")
    if body.get("name", f"locations/{location}/attributes") != f"locations/{location}/attributes":
        raise bad_request("name", "Must be the name in the path")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        known, sent = _known_for(row), {one.get("name"): one for one in body.get("attributes", [])}
        for name in mask:
            _check(name, sent.get(name), known)
        await count_edit(row.name)
        kept = {one["name"]: one for one in json.loads(row.attributes) if one["name"] not in mask}
        for name in mask:
            if name in sent and not known[name].get("deprecated"):
                kept[name] = {**sent[name], "valueType": known[name]["valueType"]}
        row.attributes = dump(sorted(kept.values(), key=lambda one: one["name"]))
        session.add(row)
    return _rendered(row)


def _check(name: str, attribute: Document | None, known: dict[str, Document]) -> None:
    """Refuse an attribute that the location may not have, and a value that is not of its type."""
    if name not in known:
        reason = "ATTRIBUTE_NOT_AVAILABLE" if name in _known() else "INVALID_ATTRIBUTE_NAME"
        raise business(reason, attribute_names=name)
    if attribute is None:
        return
    kind = known[name]["valueType"]
    values = attribute.get(_VALUE_MEMBER[kind], [])
    if set(attribute) & set(_VALUE_MEMBER.values()) != {_VALUE_MEMBER[kind]}:
        raise _wrong_type(name)
    if kind in ("BOOL", "ENUM") and len(values) != 1:
        raise business("ATTRIBUTE_CANNOT_BE_REPEATED", attribute_names=name)
    if kind == "BOOL" and not isinstance(values[0], bool):
        raise _wrong_type(name)
    allowed = [one["value"] for one in known[name].get("valueMetadata", [])]
    if kind == "REPEATED_ENUM":
        values = [*values.get("setValues", []), *values.get("unsetValues", [])]
    if "ENUM" in kind and not (values and all(value in allowed for value in values)):
        raise business("ATTRIBUTE_INVALID_ENUM_VALUE", attribute_names=name)


def _wrong_type(name: str) -> ApiError:
    return business("ATTRIBUTE_TYPE_NOT_COMPATIBLE_FOR_CATEGORY", attribute_names=name)


@attributes.get("/v1/attributes")
async def list_attributes() -> Document:
    """What a location may have: by the location, by category and region, or all of a region."""
    query = read_query("parent", "categoryName", "regionCode", "languageCode", "showAll", "pageSize", "pageToken")
    if "parent" in query:
        known = await _of_parent(query)
    elif query.get("showAll") == "true":
        known = _known(_required(query, "regionCode", "languageCode"))
    else:
        category = _required(query, "categoryName")
        known = _known(_required(query, "regionCode"), {category})
    items = sorted(known.values(), key=lambda one: one["parent"])
    chunk, more = page(items, lambda one: [one["parent"]], query, (200, 200))
    return {**({"attributeMetadata": chunk} if chunk else {}), **more}


async def _of_parent(query: dict[str, str]) -> dict[str, Document]:
    for member in ("languageCode", "regionCode", "categoryName", "showAll"):
        if member in query:
            raise bad_request(snake(member), "Field must not be set when parent is set.")
    async with emulator().store.read() as session:
        return _known_for(await find_location(session, query["parent"].removeprefix("locations/")))


def _required(query: dict[str, str], *members: str) -> str:
    """Return the first field; all must be present."""
    for member in members:
        if not query.get(member):
            raise bad_request(snake(member), "Field is required")
    return query[members[0]]
