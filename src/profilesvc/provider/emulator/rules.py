"""The provider's rules beyond shapes; most hold in strict mode only (format §5.2, §7.3)."""

import re

from profilesvc.provider.emulator.errors import (
    MISSING_VALUE,
    UNSUPPORTED,
    ApiError,
    bad_request,
    business,
    post_refused,
)
from profilesvc.provider.emulator.wire import Document

_URL = re.compile(r"https?://|www\.", re.IGNORECASE)
_SCHEDULE = {"startDate", "startTime", "endDate", "endTime"}
_MAX_DESCRIPTION, _MAX_PLACES = 750, 20


def check_location(before: Document, after: Document, *, strict: bool) -> None:
    """Refuse an update whose result breaks a rule."""
    if not after.get("title"):
        raise bad_request("title", "Field is required")
    address = after.get("storefrontAddress")
    if address is not None and not address.get("regionCode"):
        raise bad_request("storefront_address.region_code", "Field is required")
    if strict:
        _check_location_strictly(before, after)


def _check_location_strictly(before: Document, after: Document) -> None:
    old_region = before.get("storefrontAddress", {}).get("regionCode")
    if old_region and "storefrontAddress" not in after:
        raise business("ADDRESS_REMOVAL_NOT_ALLOWED", field_mask="storefront_address")
    if old_region and after["storefrontAddress"]["regionCode"] != old_region:
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
    if len(after.get("serviceArea", {}).get("places", {}).get("placeInfos", [])) > _MAX_PLACES:
        raise business("TOO_MANY_ENTRIES", field_mask="service_area.places", max_count=str(_MAX_PLACES))


def check_post(post: Document, *, strict: bool) -> None:
    """Refuse a post that breaks a rule; lenient mode takes EVENT and OFFER without event and offer, and ALERT."""
    if "topicType" not in post:
        raise post_refused(MISSING_VALUE, "topic_type", "Topic type is required for post creation.")
    if any(item.get("mediaFormat") == "VIDEO" for item in post.get("media", [])):
        raise ApiError(500, "Internal error encountered.")
    if not strict:
        return
    topic = post["topicType"]
    if topic == "ALERT":
        raise post_refused(UNSUPPORTED, "topic_type", "Operation is not supported for this account.")
    if topic == "STANDARD" and not post.get("summary"):
        raise post_refused(MISSING_VALUE, "summary", "Summary is required.")
    if topic in ("EVENT", "OFFER"):
        _check_event(post.get("event", {}))
    _check_extras(post, topic)


def _check_event(event: Document) -> None:
    if not event:
        raise post_refused(MISSING_VALUE, "event", "Event is required for this topic type.")
    if not event.get("title"):
        raise post_refused(MISSING_VALUE, "event.title", "Event title is required.")
    if missing := sorted(_SCHEDULE - set(event.get("schedule", {}))):
        raise post_refused(MISSING_VALUE, "event.schedule", f"Event schedule lacks {missing[0]}.")


def _check_extras(post: Document, topic: str) -> None:
    if topic == "STANDARD" and "event" in post:
        raise post_refused(UNSUPPORTED, "event", "Event must not be set for this topic type.")
    if topic != "OFFER" and "offer" in post:
        raise post_refused(UNSUPPORTED, "offer", "Offer must not be set for this topic type.")
    action = post.get("callToAction")
    if action is None:
        return
    if topic == "OFFER":
        raise post_refused(UNSUPPORTED, "call_to_action", "Call to action must not be set for an offer.")
    is_call = action.get("actionType") == "CALL"
    if is_call and "url" in action:
        raise post_refused(UNSUPPORTED, "call_to_action.url", "URL must not be set for CALL.")
    if not is_call and "url" not in action:
        raise post_refused(MISSING_VALUE, "call_to_action.url", "URL is required for this action.")
