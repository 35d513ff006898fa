"""D-78: what may be changed of a post, and what of it is sent."""

from typing import Any

import pytest

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.posts import check_patch

Document = dict[str, Any]
DAY = {"year": 2026, "month": 5, "day": 1}
SCHEDULE = {"startDate": DAY, "startTime": {"hours": 9}, "endDate": DAY, "endTime": {"hours": 17}}
EVENT = {"title": "Open day", "schedule": SCHEDULE}
LINK = {"actionType": "LEARN_MORE", "url": "https://bakery.example/"}
STANDARD = {"name": "n", "state": "LIVE", "summary": "old", "topicType": "STANDARD", "callToAction": LINK}
OFFER = {"topicType": "OFFER", "event": EVENT, "offer": {"couponCode": "A"}, "media": [{"googleUrl": "x"}]}


@pytest.mark.parametrize(
    ("existing", "body", "sent", "mask"),
    [
        (STANDARD, {"summary": "new"}, {"summary": "new"}, ["summary"]),
        (STANDARD, {"callToAction": None}, {}, ["callToAction"]),
        (
            STANDARD,
            {"languageCode": "en", "summary": "new"},
            {"languageCode": "en", "summary": "new"},
            ["languageCode", "summary"],
        ),
        (
            STANDARD,
            {"callToAction": {"actionType": "CALL"}},
            {"callToAction": {"actionType": "CALL"}},
            ["callToAction"],
        ),
        (
            STANDARD,
            {"topicType": "EVENT", "event": EVENT},
            {"topicType": "EVENT", "event": EVENT},
            ["topicType", "event"],
        ),
        (STANDARD, {"topicType": "ALERT"}, {"topicType": "ALERT", "alertType": "COVID_19"}, ["topicType", "alertType"]),
        (
            STANDARD,
            {"topicType": "ALERT", "alertType": None},
            {"topicType": "ALERT", "alertType": "COVID_19"},
            ["topicType", "alertType"],
        ),
        (OFFER, {"offer": None, "event": None}, {}, ["offer", "event"]),
        (OFFER, {"topicType": "EVENT", "offer": None}, {"topicType": "EVENT"}, ["topicType", "offer"]),
        ({"summary": "no topic"}, {"summary": "new"}, {"summary": "new"}, ["summary"]),
    ],
)
def test_patch_sends_the_present_fields(existing: Document, body: Document, sent: Document, mask: list[str]) -> None:
    assert check_patch(existing, body) == (sent, mask)


@pytest.mark.parametrize(
    ("existing", "body", "fields"),
    [
        (STANDARD, {}, {""}),
        (STANDARD, {"name": "x", "state": "LIVE"}, {""}),
        (STANDARD, {"media": []}, {"media"}),
        (STANDARD, {"media": None, "summary": 5}, {"media", "summary"}),
        (STANDARD, {"summary": None}, {"summary"}),
        (STANDARD, {"summary": " "}, {"summary"}),
        (STANDARD, {"topicType": None}, {"topicType"}),
        (STANDARD, {"unknown": 1}, {"unknown"}),
        (STANDARD, {"event": EVENT}, {"event"}),
        (STANDARD, {"callToAction": {"url": "https://a.example"}}, {"callToAction.actionType"}),
        (STANDARD, {"callToAction": {"actionType": "CALL", "url": "x"}}, {"callToAction.url"}),
        (STANDARD, {"topicType": "OFFER"}, {"callToAction"}),
        (OFFER, {"callToAction": LINK}, {"callToAction"}),
        (OFFER, {"topicType": "EVENT"}, {"offer"}),
        (OFFER, {"topicType": "STANDARD", "event": None}, {"summary", "offer"}),
        ({"topicType": "EVENT"}, {"topicType": "STANDARD"}, {"summary"}),
    ],
)
def test_patch_names_every_invalid_field(existing: Document, body: Document, fields: set[str]) -> None:
    with pytest.raises(ServiceError) as refusal:
        check_patch(existing, body)
    assert {error["field"] for error in refusal.value.details["errors"]} == fields
