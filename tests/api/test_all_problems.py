"""One response names every problem of a body, wherever in the service each of them is found."""

from itertools import combinations
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from support.api import Site, assert_error, fields

PHOTO = {"sourceUrl": "https://a.example/p.jpg"}
DAY, TIME = {"year": 2026, "month": 1, "day": 1}, {"hours": 9}
SCHEDULE = {"startDate": DAY, "startTime": TIME, "endDate": DAY, "endTime": TIME}
Route = tuple[str, str, dict[str, Any], dict[str, dict[str, Any]]]
# Method, path, a body without a problem, and by the field that is at fault what makes it wrong.
ROUTES: dict[str, Route] = {
    "a new key": (
        "POST",
        "/api/v1/developer/credentials",
        {"name": "Site", "business_id": 10, "assigned_location_id": "111"},
        {
            "name": {"name": ""},
            "business_id": {"business_id": "10"},
            "assigned_location_id": {"assigned_location_id": "x y"},
            "primary_domain": {"primary_domain": "10.0.0.1"},
            "allowed_domains.1": {"allowed_domains": ["ok.example", "*.example.com"]},
            "permissions.0": {"permissions": ["business.delete"]},
            "expires_at": {"expires_at": "2020-01-01T00:00:00Z"},
        },
    ),
    "a changed key": (
        "PATCH",
        "/api/v1/developer/credentials/svcid_1_1_x",
        {},
        {
            "name": {"name": 5},
            "primary_domain": {"primary_domain": "10.0.0.1"},
            "allowed_domains.1": {"allowed_domains": ["ok.example", "*.example.com"]},
        },
    ),
    "a heartbeat": (
        "POST",
        "/api/v1/api-keys/heartbeat",
        {},
        {
            "plugin_version": {"plugin_version": "x" * 65},
            "wp_version": {"wp_version": 6},
            "php_version": {"php_version": "8\0"},
            "detected_plugins.1": {"detected_plugins": ["seo", 5]},
        },
    ),
    "credentials": (
        "POST",
        "/api/v1/auth/validate-service-credentials",
        {"client_id": "x", "client_secret": "y"},
        {"client_id": {"client_id": 1}, "client_secret": {"client_secret": None}, "site_domain": {"site_domain": []}},
    ),
    "a grant": (
        "POST",
        "/api/v1/auth/token",
        {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"},
        {
            "client_id": {"client_id": 1},
            "client_secret": {"client_secret": None},
            "permissions": {"permissions": "business.read"},
        },
    ),
    "a post": (
        "POST",
        "/api/v1/posts?locationId=111",
        {"topicType": "OFFER", "summary": "x"},
        {
            "summary": {"summary": "x" * 1_501},
            "callToAction": {"callToAction": {"actionType": "BOOK", "url": "ftp://a.example"}},
            "event.title": {"event": {"title": 5, "schedule": SCHEDULE}},
            "offer.redeemOnlineUrl": {"offer": {"redeemOnlineUrl": "javascript:x"}},
            "media.1.sourceUrl": {"media": [PHOTO, {"sourceUrl": "x"}]},
            "languageCode": {"languageCode": 5},
            "scheduledTime": {"scheduledTime": "tomorrow"},
            "sumary": {"sumary": "x"},
        },
    ),
    "fields of one event": (
        "POST",
        "/api/v1/posts?locationId=111",
        {"topicType": "EVENT", "event": {"title": "x", "schedule": SCHEDULE}},
        {
            "event.title": {"event": {"title": " "}},
            "event.schedule.startDate.year": {"event": {"schedule": {"startDate": {"year": "2026"}}}},
            "event.schedule.endTime": {"event": {"schedule": {"endTime": None}}},
            "event.schedule.startTime.hours": {"event": {"schedule": {"startTime": {"hours": 25}}}},
            "event.recurrenceInfo": {"event": {"recurrenceInfo": {}}},
            "event.x": {"event": {"x": 1}},
        },
    ),
    "a change of a post": (
        "PATCH",
        "/api/v1/posts/11101?locationId=111",
        {"summary": "x"},
        {
            "media": {"media": [PHOTO]},
            "languageCode": {"languageCode": 5},
            "callToAction.url": {"callToAction": {"actionType": "BOOK"}},
            "topicType": {"topicType": None},
            "sumary": {"sumary": "x"},
        },
    ),
    "a sync": (
        "POST",
        "/api/v1/sync/111",
        {"title": "x"},
        {
            "title": {"title": 5},
            "phoneNumbers.primaryPhone": {"phoneNumbers": {"primaryPhone": 5}},
            "phoneNumbers.additionalPhones": {"phoneNumbers": {"additionalPhones": ["1", "2", "3"]}},
            "storefrontAddress.addressLines.0": {"storefrontAddress": {"addressLines": [1]}},
            "storefrontAddress.locality": {"storefrontAddress": {"locality": 1}},
            "regularHours.periods.0.closeTime": {
                "regularHours": {"periods": [{"openDay": "MONDAY", "openTime": {}, "closeDay": "MONDAY"}]}
            },
            "openInfo.openingDate.month": {"openInfo": {"openingDate": {"month": 13}}},
        },
    ),
    "a reply": (
        "PUT",
        "/api/v1/reviews/111001/reply?locationId=111",
        {"comment": "x"},
        {"comment": {"comment": " "}, "x": {"x": 1}},
    ),
    "the sync switch": (
        "PATCH",
        "/api/v1/external-business/locations/111/sync",
        {"syncEnabled": True},
        {"syncEnabled": {"syncEnabled": "true"}, "x": {"x": 1}},
    ),
}


def merged(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{name: merged(base.get(name), value) for name, value in change.items()}}
    return change


@ON_ONE_DATABASE
@pytest.mark.parametrize("what", ROUTES)
async def test_every_problem_of_a_body_is_named(what: str, alice: httpx.AsyncClient, plugin: Site) -> None:
    method, path, good, wrong = ROUTES[what]
    client = plugin.http if path.endswith("heartbeat") else alice
    for chosen in [*combinations(wrong, 1), *combinations(wrong, 2), tuple(wrong)]:
        body = good
        for field in chosen:
            body = merged(body, wrong[field])
        found = fields(assert_error(await client.request(method, path, json=body), 400, "VALIDATION_ERROR"))
        assert sorted(found) == sorted(chosen)
