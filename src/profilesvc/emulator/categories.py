"""Categories (Business Information v1) that a profile can have."""

from quart import Blueprint, request

from profilesvc.contract.json import JsonObject
from profilesvc.emulator.errors import bad_request
from profilesvc.emulator.state import emulator
from profilesvc.emulator.wire import page, read_query, required

categories = Blueprint("categories", __name__)
_FULL_ONLY = {"serviceTypes", "moreHoursTypes"}


def _check_view(query: dict[str, str]) -> None:
    if query["view"] not in ("BASIC", "FULL"):
        raise bad_request("view", "Must be BASIC or FULL")


def _rendered(entry: JsonObject, query: dict[str, str]) -> JsonObject:
    """Return the category in the requested language if there is a translation. BASIC omits the types."""
    language = query["languageCode"].partition("-")[0]
    category = entry["category"]
    category = {**category, "displayName": entry.get("names", {}).get(language, category["displayName"])}
    return {key: value for key, value in category.items() if query["view"] == "FULL" or key not in _FULL_ONLY}


@categories.get("/v1/categories")
async def list_categories() -> JsonObject:
    """Return all categories, or those whose name starts with the filter `displayName=…`."""
    query = read_query("regionCode", "languageCode", "view", "filter", "pageSize", "pageToken")
    required(query, "regionCode", "languageCode", "view")
    _check_view(query)
    field, _, prefix = query.get("filter", "displayName=").partition("=")
    if field.strip() not in ("displayName", "display_name"):
        raise bad_request("filter", "Invalid filter provided")
    prefix = prefix.strip().strip('"').lower()
    matching = [_rendered(entry, query) for entry in emulator().world.get("categories", [])]
    matching = [category for category in matching if category["displayName"].lower().startswith(prefix)]
    matching.sort(key=lambda category: category["name"])
    chunk, more = page(matching, lambda category: [category["name"]], query, (100, 100))
    return {**({"categories": chunk} if chunk else {}), **more}


@categories.get("/v1/categories:batchGet")
async def batch_get_categories() -> JsonObject:
    """Return the named categories without unknown ones (our choice: the provider's response is not documented)."""
    query = read_query("names", "regionCode", "languageCode", "view")
    required(query, "names", "languageCode", "view")
    _check_view(query)
    names = set(request.args.getlist("names"))
    every = emulator().world.get("categories", [])
    matching = [_rendered(entry, query) for entry in every if entry["category"]["name"] in names]
    return {"categories": matching} if matching else {}
