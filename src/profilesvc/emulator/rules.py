"""The provider's rules beyond the format. Most apply only in strict mode."""

import re
from urllib.parse import urlsplit

from profilesvc.contract.json import JsonObject
from profilesvc.domain.hours import faults
from profilesvc.emulator.errors import (
    MISSING_VALUE,
    PHOTO_FETCH_FAILED,
    UNSUPPORTED,
    ApiError,
    bad_request,
    business,
    post_error,
    snake,
)
from profilesvc.emulator.masks import Path

_URL = re.compile(r"https?://|www\.", re.IGNORECASE)
_SCHEDULE = {"startDate", "startTime", "endDate", "endTime"}
_MAX_DESCRIPTION, _MAX_PLACES = 750, 20
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


def check_location(before: JsonObject, after: JsonObject, *, strict: bool) -> None:
    """Reject an update whose result violates a rule."""
    if not after.get("title"):
        raise bad_request("title", "Field is required")
    address = after.get("storefrontAddress")
    if address is not None and not address.get("regionCode"):
        raise bad_request("storefront_address.region_code", "Field is required")
    if strict:
        _check_location_strictly(before, after)


def _check_location_strictly(before: JsonObject, after: JsonObject) -> None:
    old_region = before.get("storefrontAddress", {}).get("regionCode")
    has_storefront = after.get("serviceArea", {}).get("businessType") != CUSTOMERS_ONLY
    if old_region and has_storefront and "storefrontAddress" not in after:
        raise business("ADDRESS_REMOVAL_NOT_ALLOWED", field_mask="storefront_address")
    if old_region and after.get("storefrontAddress", {}).get("regionCode", old_region) != old_region:
        raise business("ADDRESS_EDIT_CHANGES_COUNTRY", field_mask="storefront_address.region_code")
    if after.get("latlng") != before.get("latlng"):
        raise business("LAT_LNG_UPDATES_NOT_PERMITTED", field_mask="latlng")
    description = after.get("profile", {}).get("description", "")
    if _URL.search(description):
        raise business("PROFILE_DESCRIPTION_CONTAINS_URL", field_mask="profile.description")
    if len(description) > _MAX_DESCRIPTION:
        raise business("STRING_TOO_LONG", field_mask="profile.description", max_length=str(_MAX_DESCRIPTION))
    if "specialHours" in after and "regularHours" not in after:
        raise business("SPECIAL_HOURS_SET_WITHOUT_REGULAR_HOURS", field_mask="special_hours")
    _check_hours(before, after)
    if len(after.get("serviceArea", {}).get("places", {}).get("placeInfos", [])) > _MAX_PLACES:
        raise business("TOO_MANY_ENTRIES", field_mask="service_area.places", max_count=str(_MAX_PLACES))


def _check_hours(before: JsonObject, after: JsonObject) -> None:
    """Check the hours that change. Those that are stored already do not block the edit of another field."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    for fault in faults(changed):
        names = [snake(part) for part in fault.field.split(".") if not part.isdecimal()]
        raise business(fault.reason, field_mask=".".join(names))


def check_post(post: JsonObject, *, strict: bool) -> None:
    """Reject a post that violates a rule. Lenient mode accepts ALERT, and EVENT and OFFER without event and offer."""
    if "topicType" not in post:
        raise post_error(MISSING_VALUE, "topic_type", "Topic type is required for post creation.")
    for index, item in enumerate(post.get("media", [])):
        _check_media(item, f"media[{index}]", strict=strict)
    if not strict:
        return
    topic = post["topicType"]
    if topic == "ALERT":
        raise post_error(UNSUPPORTED, "topic_type", "Operation is not supported for this account.")
    if topic == "STANDARD" and not post.get("summary"):
        raise post_error(MISSING_VALUE, "summary", "Summary is required.")
    if topic in ("EVENT", "OFFER"):
        _check_event(post.get("event", {}))
    _check_extras(post, topic)


def _check_media(item: JsonObject, field: str, *, strict: bool) -> None:
    """Check photos by their URL. A host under .invalid simulates a photo that cannot be fetched."""
    if item.get("mediaFormat") == "VIDEO":
        raise ApiError(500, "Internal error encountered.")
    if host_of(item.get("sourceUrl", "")).endswith(".invalid"):
        raise post_error(PHOTO_FETCH_FAILED, f"{field}.source_url", "Photo could not be fetched.")
    for name in ("mediaFormat", "sourceUrl"):
        if strict and name not in item:
            raise post_error(MISSING_VALUE, f"{field}.{snake(name)}", "Field is required.")
    if strict and "locationAssociation" in item:
        raise post_error(UNSUPPORTED, f"{field}.location_association", "Must not be set for post media.")


def _check_event(event: JsonObject) -> None:
    if not event:
        raise post_error(MISSING_VALUE, "event", "Event is required for this topic type.")
    if not event.get("title"):
        raise post_error(MISSING_VALUE, "event.title", "Event title is required.")
    if missing := sorted(_SCHEDULE - set(event.get("schedule", {}))):
        raise post_error(MISSING_VALUE, "event.schedule", f"Event schedule lacks {missing[0]}.")


def _check_extras(post: JsonObject, topic: str) -> None:
    if topic == "STANDARD" and "event" in post:
        raise post_error(UNSUPPORTED, "event", "Event must not be set for this topic type.")
    if topic != "OFFER" and "offer" in post:
        raise post_error(UNSUPPORTED, "offer", "Offer must not be set for this topic type.")
    action = post.get("callToAction")
    if action is None:
        return
    if topic == "OFFER":
        raise post_error(UNSUPPORTED, "call_to_action", "Call to action must not be set for an offer.")
    is_call = action.get("actionType") == "CALL"
    if is_call and "url" in action:
        raise post_error(UNSUPPORTED, "call_to_action.url", "URL must not be set for CALL.")
    if not is_call and "url" not in action:
        raise post_error(MISSING_VALUE, "call_to_action.url", "URL is required for this action.")
