"""Attributes (Business Information v1): those that a location has, and those that it may have."""

import json

from quart import Blueprint

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.attributes import Attributes
from profilesvc.emulator.errors import ApiError, bad_request, business, snake
from profilesvc.emulator.locations import find_location
from profilesvc.emulator.state import count_edit, emulator
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import EmulatorLocationRow
from profilesvc.emulator.wire import page, read_message, read_query, required

attributes = Blueprint("attributes", __name__)
_VALUE_FIELD = {"BOOL": "values", "ENUM": "values", "URL": "uriValues", "REPEATED_ENUM": "repeatedEnumValue"}


def _available(region: str = "", category_names: set[str] | None = None) -> dict[str, JsonObject]:
    """Return the metadata by attribute id, optionally only of one region and some categories."""
    metadata = {}
    for entry in emulator().world.get("attribute_metadata", []):
        for_region = not region or region in entry.get("regions", [region])
        for_category = category_names is None or category_names & set(entry.get("categories", category_names))
        if for_region and for_category:
            metadata[entry["metadata"]["parent"]] = entry["metadata"]
    return metadata


def _available_for(row: EmulatorLocationRow) -> dict[str, JsonObject]:
    document = json.loads(row.document)
    named = document.get("categories", {})
    every = [named.get("primaryCategory", {}), *named.get("additionalCategories", [])]
    names = {category.get("name", "") for category in every}
    return _available(document.get("storefrontAddress", {}).get("regionCode", ""), names)


def _rendered(row: EmulatorLocationRow) -> JsonObject:
    stored = json.loads(row.attributes)
    return {"name": f"{row.name}/attributes", **({"attributes": stored} if stored else {})}


@attributes.get("/v1/locations/<name:location>/attributes")
@attributes.get("/v1/locations/<name:location>/attributes:getGoogleUpdated")
async def get_attributes(location: str) -> JsonObject:
    """Return the location's attributes. Consumers see the same."""
    read_query()
    async with emulator().store.read() as session:
        return _rendered(await find_location(session, location))


@attributes.patch("/v1/locations/<name:location>/attributes")
async def update_attributes(location: str) -> JsonObject:
    """Set the attributes in the mask: remove those that the body lacks, ignore those outside the mask."""
    mask = [part for part in read_query("attributeMask").get("attributeMask", "").split(",") if part]
    if not mask:
        raise bad_request("attribute_mask", "Field is required")
    body = await read_message(Attributes, "attributes")
    if body.get("name", f"locations/{location}/attributes") != f"locations/{location}/attributes":
        raise bad_request("name", "Must be the name in the path")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        available, values = _available_for(row), {item.get("name"): item for item in body.get("attributes", [])}
        for name in mask:
            _check(name, values.get(name), available)
        await count_edit(row.name)
        stored = {item["name"]: item for item in json.loads(row.attributes) if item["name"] not in mask}
        for name in mask:
            if name in values and not available[name].get("deprecated"):
                stored[name] = {**values[name], "valueType": available[name]["valueType"]}
        row.attributes = dump(sorted(stored.values(), key=lambda attribute: attribute["name"]))
    return _rendered(row)


def _check(name: str, attribute: JsonObject | None, available: dict[str, JsonObject]) -> None:
    """Reject an attribute that is not available for the location, or a value of another type."""
    if name not in available:
        reason = "ATTRIBUTE_NOT_AVAILABLE" if name in _available() else "INVALID_ATTRIBUTE_NAME"
        raise business(reason, attribute_names=name)
    if attribute is None:
        return
    kind = available[name]["valueType"]
    values = attribute.get(_VALUE_FIELD[kind], [])
    if set(attribute) & set(_VALUE_FIELD.values()) != {_VALUE_FIELD[kind]}:
        raise _wrong_type(name)
    if kind in ("BOOL", "ENUM") and len(values) != 1:
        raise business("ATTRIBUTE_CANNOT_BE_REPEATED", attribute_names=name)
    if kind == "BOOL" and not isinstance(values[0], bool):
        raise _wrong_type(name)
    allowed = [attribute["value"] for attribute in available[name].get("valueMetadata", [])]
    if kind == "REPEATED_ENUM":
        values = [*values.get("setValues", []), *values.get("unsetValues", [])]
    if "ENUM" in kind and not (values and all(value in allowed for value in values)):
        raise business("ATTRIBUTE_INVALID_ENUM_VALUE", attribute_names=name)


def _wrong_type(name: str) -> ApiError:
    return business("ATTRIBUTE_TYPE_NOT_COMPATIBLE_FOR_CATEGORY", attribute_names=name)


@attributes.get("/v1/attributes")
async def list_attributes() -> JsonObject:
    """Return the available attributes: of a location, of a category and region, or of a whole region."""
    query = read_query("parent", "categoryName", "regionCode", "languageCode", "showAll", "pageSize", "pageToken")
    if "parent" in query:
        for name in ("languageCode", "regionCode", "categoryName", "showAll"):
            if name in query:
                raise bad_request(snake(name), "Field must not be set when parent is set.")
        async with emulator().store.read() as session:
            available = _available_for(await find_location(session, query["parent"].removeprefix("locations/")))
    elif query.get("showAll") == "true":
        available = _available(required(query, "regionCode", "languageCode"))
    else:
        category = required(query, "categoryName")
        available = _available(required(query, "regionCode"), {category})
    items = sorted(available.values(), key=lambda attribute: attribute["parent"])
    chunk, more = page(items, lambda attribute: [attribute["parent"]], query, (200, 200))
    return {**({"attributeMetadata": chunk} if chunk else {}), **more}
