"""The provider's rules beyond the format. Most apply only in strict mode."""

import re
from urllib.parse import urlsplit

from profilesvc.contract.json import JsonObject
from profilesvc.domain import location_rules, posts
from profilesvc.domain.hours import faults
from profilesvc.domain.time import day_of
from profilesvc.emulator.errors import (
    INVALID,
    INVALID_VALUE,
    MISSING_VALUE,
    PHOTO_FETCH_FAILED,
    UNSUPPORTED,
    ApiError,
    bad_request,
    business,
    error_info,
    post_error,
    snake,
)
from profilesvc.emulator.masks import Path
from profilesvc.emulator.state import now

_POSITION = re.compile(r"\.(\d+)")
_SCHEDULE = {"startDate", "startTime", "endDate", "endTime"}
CUSTOMERS_ONLY, HYBRID = "CUSTOMER_LOCATION_ONLY", "CUSTOMER_AND_BUSINESS_LOCATION"


def host_of(url: str) -> str:
    """Return the host of a URL, or an empty string."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def check_blocked(blocked: dict[str, str], mask: list[Path]) -> None:
    """Reject an edit of a field that the provider has closed (THROTTLED) or changed itself (STALE_DATA)."""
    for path in mask:
        if path[0] in blocked:
            raise business(blocked[path[0]], field_mask=snake(path[0]))


def check_service_area(before: JsonObject, mask: list[Path], *, strict: bool) -> None:
    """Reject half of a service area, as the provider did for integrators."""
    named = {path[1] for path in mask if path[0] == "serviceArea" and len(path) > 1}
    if not strict or not named or ("serviceArea",) in mask:
        return
    if "businessType" in named and "places" not in named:
        raise bad_request("service_area.places", "Field is required")
    if "serviceArea" not in before:
        raise bad_request("service_area", "Field is required")


def settled(after: JsonObject, mask: list[Path]) -> JsonObject:
    """Apply the changes that the provider makes to an update silently.

    A hybrid business whose address is not in the mask loses its storefront. One without a storefront has no address.
    """
    named, area = {path[0] for path in mask}, after.get("serviceArea", {})
    typed = ("serviceArea",) in mask or ("serviceArea", "businessType") in mask
    if typed and "storefrontAddress" not in named and area.get("businessType") == HYBRID:
        return {**after, "serviceArea": {**area, "businessType": CUSTOMERS_ONLY}}
    if area.get("businessType") == CUSTOMERS_ONLY and "storefrontAddress" in named:
        return {key: value for key, value in after.items() if key not in ("storefrontAddress", "latlng")}
    return after


def check_location(before: JsonObject, after: JsonObject, mask: list[Path], *, strict: bool) -> None:
    """Reject an update whose result violates a rule. Only the masked fields are checked against the documentation."""
    if not after.get("title"):
        raise bad_request("title", "Field is required")
    address = after.get("storefrontAddress")
    if address is not None and not address.get("regionCode"):
        raise bad_request("storefront_address.region_code", "Field is required")
    if strict:
        _check_documented(after, mask)
        _check_location_strictly(before, after)


def _check_documented(after: JsonObject, mask: list[Path]) -> None:
    """Apply the rules of the documentation, which the service applies too, to the fields that an update changes."""
    faults = [*location_rules.violations(after, day_of(now())), *location_rules.incomplete(after)]
    for path, fault in faults:
        names = tuple(name for name in path.split(".") if not name.isdecimal())
        if not any(names[: len(masked)] == masked for masked in mask):
            continue
        field = ".".join(snake(name) for name in names)
        if fault is location_rules.REQUIRED:
            raise bad_request(field, "Field is required")
        if not fault.reason:
            raise bad_request(field, f"Value {fault.problem}")
        raise business(fault.reason, field_mask=field, **fault.metadata)


def _check_location_strictly(before: JsonObject, after: JsonObject) -> None:
    old_region = before.get("storefrontAddress", {}).get("regionCode")
    has_storefront = after.get("serviceArea", {}).get("businessType") != CUSTOMERS_ONLY
    if old_region and has_storefront and "storefrontAddress" not in after:
        raise business("ADDRESS_REMOVAL_NOT_ALLOWED", field_mask="storefront_address")
    region = after.get("storefrontAddress", {}).get("regionCode", old_region)
    if old_region and region.upper() != old_region.upper():
        raise business("ADDRESS_EDIT_CHANGES_COUNTRY", field_mask="storefront_address.region_code")
    if after.get("latlng") != before.get("latlng"):
        raise business("LAT_LNG_UPDATES_NOT_PERMITTED", field_mask="latlng")
    if "specialHours" in after and "regularHours" not in after:
        raise business("SPECIAL_HOURS_SET_WITHOUT_REGULAR_HOURS", field_mask="special_hours")
    # Hours that are stored already do not block the edit of another field.
    for fault in faults({name: value for name, value in after.items() if before.get(name) != value}):
        names = [snake(part) for part in fault.field.split(".") if not part.isdecimal()]
        raise business(fault.reason, field_mask=".".join(names))


def check_accepts_posts(location: JsonObject) -> None:
    """Reject a new post of a location that accepts none. The provider leaves the flag out of most profiles."""
    if location.get("metadata", {}).get("canOperateLocalPost") is False:
        raise ApiError(400, INVALID, error_info("LOCATION_DISABLED_FOR_LOCAL_POST_API", "mybusiness.googleapis.com"))


def check_post(post: JsonObject, *, strict: bool) -> None:
    """Reject a post that violates a rule. Lenient mode accepts ALERT, and EVENT and OFFER without event and offer."""
    if "topicType" not in post:
        raise post_error(MISSING_VALUE, "topic_type", "Topic type is required for post creation.")
    for index, item in enumerate(post.get("media", [])):
        if item.get("mediaFormat") == "VIDEO":
            raise ApiError(500, "Internal error encountered.")
        if host_of(item.get("sourceUrl", "")).endswith(".invalid"):  # simulates a photo that cannot be fetched
            raise post_error(PHOTO_FETCH_FAILED, f"media[{index}].source_url", "Photo could not be fetched.")
    if not strict:
        return
    topic = post["topicType"]
    if topic == "ALERT":
        raise post_error(UNSUPPORTED, "topic_type", "Operation is not supported for this account.")
    if topic in ("EVENT", "OFFER"):
        _check_event(post.get("event", {}))
    for index, item in enumerate(post.get("media", [])):
        if "mediaFormat" not in item:
            raise post_error(MISSING_VALUE, f"media[{index}].media_format", "Field is required.")
    for path, problem in posts.violations(post):
        raise post_error(_code(problem), _POSITION.sub(r"[\1]", snake(path)), f"Value {problem}.")


def _code(problem: str) -> int:
    if problem.startswith("is required"):
        return MISSING_VALUE
    return UNSUPPORTED if problem.startswith(("is for", "is not for")) else INVALID_VALUE


def _check_event(event: JsonObject) -> None:
    if not event:
        raise post_error(MISSING_VALUE, "event", "Event is required for this topic type.")
    if not event.get("title"):
        raise post_error(MISSING_VALUE, "event.title", "Event title is required.")
    if missing := sorted(_SCHEDULE - set(event.get("schedule", {}))):
        raise post_error(MISSING_VALUE, "event.schedule", f"Event schedule lacks {missing[0]}.")
