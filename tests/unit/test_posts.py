"""D-74, D-75: what may be created of a post, and what of it is sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.posts import UPDATABLE, check_create, check_patch

Document = dict[str, Any]
SCHEDULE = {
    "startDate": {"year": 2026, "month": 5, "day": 1},
    "startTime": {"hours": 9},
    "endDate": {"year": 2026, "month": 5, "day": 1},
    "endTime": {"hours": 17, "minutes": 30},
}
EVENT = {"title": "Open day", "schedule": SCHEDULE}
LINK = {"actionType": "LEARN_MORE", "url": "https://bakery.example/"}


def problems(call: Any, *documents: Document) -> dict[str, str]:
    """The refused fields and why."""
    with pytest.raises(ServiceError) as refusal:
        call(*documents)
    assert refusal.value.kind.code == "VALIDATION_ERROR"
    return {error["field"]: error["problem"] for error in refusal.value.details["errors"]}


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"summary": "Hello"}, {"summary": "Hello", "topicType": "STANDARD"}),
        ({"summary": "Hello", "topicType": None}, {"summary": "Hello", "topicType": "STANDARD"}),
        (
            {"summary": "x" * 1500, "callToAction": LINK},
            {"summary": "x" * 1500, "callToAction": LINK, "topicType": "STANDARD"},
        ),
        ({"topicType": "EVENT"}, {"topicType": "EVENT"}),
        ({"topicType": "EVENT", "event": EVENT}, {"topicType": "EVENT", "event": EVENT}),
        ({"topicType": "OFFER", "summary": "20 %"}, {"topicType": "OFFER", "summary": "20 %"}),
        (
            {"topicType": "OFFER", "event": EVENT, "offer": {"couponCode": "A", "redeemOnlineUrl": "http://a.example"}},
            {"topicType": "OFFER", "event": EVENT, "offer": {"couponCode": "A", "redeemOnlineUrl": "http://a.example"}},
        ),
        ({"topicType": "ALERT"}, {"topicType": "ALERT", "alertType": "COVID_19"}),
        (
            {"topicType": "ALERT", "alertType": "ALERT_TYPE_UNSPECIFIED"},
            {"topicType": "ALERT", "alertType": "COVID_19"},
        ),
        (
            {"summary": "x", "callToAction": {"actionType": "CALL", "url": None}},
            {"summary": "x", "callToAction": {"actionType": "CALL"}, "topicType": "STANDARD"},
        ),
        (
            {"summary": "x", "media": [{"sourceUrl": "https://a.example/p.jpg", "googleUrl": "x"}]},
            {
                "summary": "x",
                "media": [{"mediaFormat": "PHOTO", "sourceUrl": "https://a.example/p.jpg"}],
                "topicType": "STANDARD",
            },
        ),
        (
            {
                "summary": "x",
                "languageCode": "de",
                "scheduledTime": "2026-05-01T09:00:00+02:00",
                "event": None,
                "media": None,
            },
            {
                "summary": "x",
                "languageCode": "de",
                "scheduledTime": "2026-05-01T09:00:00+02:00",
                "topicType": "STANDARD",
            },
        ),
    ],
)
def test_a_create_sends_the_fields(body: Document, sent: Document) -> None:
    assert check_create(body) == sent


def test_read_only_fields_are_ignored_whatever_their_value() -> None:
    odd = {
        "name": 5,
        "state": "GONE",
        "createTime": [],
        "updateTime": {},
        "searchUrl": True,
        "recurringInstanceTime": "x",
    }
    assert check_create({"summary": "x", **odd}) == {"summary": "x", "topicType": "STANDARD"}
    assert check_patch({"summary": "x"}, {"summary": "y", **odd}) == ({"summary": "y"}, ["summary"])


@pytest.mark.parametrize("action", ["BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP"])
def test_every_action_but_call_needs_a_url(action: str) -> None:
    post = {"summary": "x", "callToAction": {"actionType": action, "url": "https://a.example/"}}
    assert check_create(post)["callToAction"] == post["callToAction"]
    without = {"summary": "x", "callToAction": {"actionType": action}}
    assert problems(check_create, without) == {"callToAction.url": f"is required for {action}"}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"summary"}),
        ({"summary": ""}, {"summary"}),
        ({"summary": " \n"}, {"summary"}),
        ({"summary": None}, {"summary"}),
        ({"summary": 5}, {"summary"}),
        ({"summary": "x" * 1501}, {"summary"}),
        ({"summary": "x" * 1501, "topicType": "EVENT"}, {"summary"}),
        ({"summary": "NUL\x00"}, {"summary"}),
        ({"summary": "x", "topicType": "LOCAL_POST_TOPIC_TYPE_UNSPECIFIED"}, {"topicType"}),
        ({"topicType": "PRODUCT"}, {"topicType"}),
        ({"topicType": ["EVENT"], "summary": 1}, {"topicType", "summary"}),
        ({"summary": "x", "sumary": "y", "isVerified": True}, {"sumary", "isVerified"}),
        ({"summary": "x", "callToAction": {**LINK, "text": "go"}}, {"callToAction.text"}),
        ({"summary": "x", "callToAction": {}}, {"callToAction.actionType"}),
        ({"summary": "x", "callToAction": "BOOK"}, {"callToAction"}),
        ({"summary": "x", "callToAction": {**LINK, "actionType": "GET_OFFER"}}, {"callToAction.actionType"}),
        (
            {"summary": "x", "callToAction": {**LINK, "actionType": "ACTION_TYPE_UNSPECIFIED"}},
            {"callToAction.actionType"},
        ),
        ({"summary": "x", "callToAction": {**LINK, "actionType": "book"}}, {"callToAction.actionType"}),
        ({"summary": "x", "event": EVENT}, {"event"}),
        ({"topicType": "ALERT", "event": EVENT}, {"event"}),
        ({"topicType": "EVENT", "offer": {}}, {"offer"}),
        ({"summary": "x", "offer": {"couponCode": "A"}}, {"offer"}),
        ({"topicType": "OFFER", "offer": {"redeemOnlineUrl": "ftp://a.example"}}, {"offer.redeemOnlineUrl"}),
        ({"topicType": "EVENT", "event": {}}, {"event.title", "event.schedule"}),
        ({"topicType": "EVENT", "event": {**EVENT, "title": " "}}, {"event.title"}),
        ({"topicType": "EVENT", "event": {**EVENT, "title": "x" * 59}}, {"event.title"}),
        (
            {"topicType": "EVENT", "event": {"title": "x", "schedule": {"startTime": {}}}},
            {"event.schedule.startDate", "event.schedule.endDate", "event.schedule.endTime"},
        ),
        ({"topicType": "EVENT", "event": {**EVENT, "recurrenceInfo": {}}}, {"event.recurrenceInfo"}),
        (
            {"topicType": "EVENT", "event": {**EVENT, "recurrenceInfo": {"dailyPattern": {}, "weeklyPattern": {}}}},
            {"event.recurrenceInfo"},
        ),
        ({"summary": "x", "scheduledTime": "tomorrow"}, {"scheduledTime"}),
        (
            {"summary": "x", "media": [{"sourceUrl": "https://a.example/v.mp4", "mediaFormat": "VIDEO"}]},
            {"media.0.mediaFormat"},
        ),
        (
            {"summary": "x", "media": [{}, {"sourceUrl": "file:///etc/passwd"}]},
            {"media.0.sourceUrl", "media.1.sourceUrl"},
        ),
        ({"summary": "x", "media": [{"dataRef": {"resourceName": "x"}}]}, {"media.0.sourceUrl", "media.0.dataRef"}),
        (
            {"summary": "x", "media": [{"sourceUrl": "https://a.example/p.jpg", "locationAssociation": {}}]},
            {"media.0.locationAssociation"},
        ),
        (
            {
                "topicType": "EVENT",
                "event": {"title": "", "schedule": {**SCHEDULE, "endDate": {"year": 2026}, "startDate": None}},
                "offer": {},
                "x": 1,
            },
            {"event.title", "event.schedule.startDate", "event.schedule.endDate", "offer", "x"},
        ),
    ],
)
def test_create_names_every_invalid_field(body: Document, fields: set[str]) -> None:
    assert set(problems(check_create, body)) == fields


# What each kind of post accepts of the fields that not every kind does (7.3 and 7.4 of the provider's format).
BUTTON = {"STANDARD", "EVENT", "ALERT"}
KINDS: list[tuple[str, Any, set[str]]] = [
    ("event", EVENT, {"EVENT", "OFFER"}),
    ("offer", {"couponCode": "A"}, {"OFFER"}),
    ("offer", {}, {"OFFER"}),
    ("callToAction", LINK, BUTTON),
    ("callToAction", {"actionType": "CALL"}, BUTTON),
    ("alertType", "COVID_19", {"ALERT"}),
    ("media", [{"sourceUrl": "https://a.example/p.jpg"}], {"STANDARD", "EVENT", "OFFER"}),
    ("summary", "Hello", {"STANDARD", "EVENT", "OFFER", "ALERT"}),
    ("languageCode", "de", {"STANDARD", "EVENT", "OFFER", "ALERT"}),
    ("scheduledTime", "2026-05-01T09:00:00Z", {"STANDARD", "EVENT", "OFFER", "ALERT"}),
]


@pytest.mark.parametrize("topic", ["STANDARD", "EVENT", "OFFER", "ALERT"])
@pytest.mark.parametrize(("field", "value", "kinds"), KINDS)
def test_a_field_is_sent_or_refused_but_never_dropped(topic: str, field: str, value: Any, kinds: set[str]) -> None:
    body = {"summary": "x", "topicType": topic, field: value}
    if topic in kinds:
        assert check_create(body)[field] == ([{"mediaFormat": "PHOTO", **value[0]}] if field == "media" else value)
        if field != "media":
            assert check_patch({"summary": "x", "topicType": topic}, {field: value})[1][0] == field
        return
    assert list(problems(check_create, body)) == [field]
    assert problems(check_create, body)[field].endswith("posts only")
    if field != "media":
        assert list(problems(check_patch, {"summary": "x", "topicType": topic}, {field: value})) == [field]


def test_a_call_has_no_url() -> None:
    action = {"actionType": "CALL", "url": "tel:+15125550132"}
    expected = {"callToAction.url": "is not for CALL, which uses the phone number of the profile"}
    assert problems(check_create, {"summary": "x", "callToAction": action}) == expected
    assert problems(check_patch, {"summary": "x", "topicType": "STANDARD"}, {"callToAction": action}) == expected
    stored = {"summary": "x", "topicType": "STANDARD", "callToAction": action}
    assert check_patch(stored, {"summary": "y"}) == ({"summary": "y"}, ["summary"])
    offer = {"summary": "x", "topicType": "OFFER", "callToAction": LINK}
    assert check_patch(offer, {"summary": "y"}) == ({"summary": "y"}, ["summary"])


@pytest.mark.parametrize("unusable", ["nonsense", "GET_OFFER", "ACTION_TYPE_UNSPECIFIED"])
def test_problems_name_the_values_that_may_be_sent_and_no_others(unusable: str) -> None:
    body = {
        "summary": "x",
        "callToAction": {"actionType": unusable, "url": "https://a.example/"},
        "alertType": unusable,
        "media": [{"mediaFormat": unusable, "sourceUrl": "https://a.example/p.jpg"}],
    }
    assert problems(check_create, body) == {
        "callToAction.actionType": "must be one of BOOK, ORDER, SHOP, LEARN_MORE, SIGN_UP, CALL",
        "alertType": "must be one of COVID_19",
        "media.0.mediaFormat": "must be one of PHOTO",
    }
    for topic in (unusable, "LOCAL_POST_TOPIC_TYPE_UNSPECIFIED"):
        assert problems(check_create, {"topicType": topic}) == {
            "topicType": "must be one of STANDARD, EVENT, OFFER, ALERT"
        }


@pytest.mark.parametrize(
    "url",
    [
        *("", "bakery.example", "//a.example", "ftp://a.example", "javascript:alert(1)", "http://", "https:///x"),
        *("https://user@a.example/", "https://user:pass@a.example/", "https://a.example@evil.example"),
        *(
            "https://a.example/\nx",
            "https://a .example",
            "https://a.example\\@evil.example",
            "https://a.example:99999/",
        ),
        *("https://[::1", "http://a.example/" + "x" * 2048),
    ],
)
def test_bad_urls_are_rejected(url: str) -> None:
    assert set(problems(check_create, {"summary": "x", "callToAction": {**LINK, "url": url}})) == {"callToAction.url"}
    assert set(problems(check_create, {"topicType": "OFFER", "offer": {"redeemOnlineUrl": url}})) == {
        "offer.redeemOnlineUrl"
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"endDate": {"year": 2026, "month": 4, "day": 30}}, "event.schedule"),
        ({"endTime": {"hours": 8, "minutes": 59}}, "event.schedule"),
        ({"startDate": {"year": 2026, "month": 2, "day": 30}}, "event.schedule.startDate"),
        ({"endDate": {"year": 2026, "month": 5}}, "event.schedule.endDate"),
        ({"endDate": {"year": 2026, "month": 13, "day": 1}}, "event.schedule.endDate.month"),
        ({"endTime": {"hours": 25}}, "event.schedule.endTime.hours"),
        ({"endTime": None}, "event.schedule.endTime"),
        ({"endTime": "17:30"}, "event.schedule.endTime"),
    ],
)
def test_schedule_must_be_real_and_forward(change: Document, field: str) -> None:
    event = {**EVENT, "schedule": {**SCHEDULE, **change}}
    assert set(problems(check_create, {"topicType": "EVENT", "event": event})) == {field}


def test_an_event_may_end_as_it_starts_and_at_midnight() -> None:
    for end in ({"hours": 9}, {"hours": 24}):
        event = {**EVENT, "schedule": {**SCHEDULE, "endTime": end}}
        assert check_create({"topicType": "EVENT", "event": event})["event"] == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)
MEMBERS = st.sampled_from([*UPDATABLE, "media", "state", "x"])


@given(st.dictionaries(MEMBERS, JSON | st.sampled_from([EVENT, LINK, "OFFER", "EVENT", "ALERT", [LINK]]), max_size=5))
def test_no_body_ends_in_anything_but_a_post_or_a_rejection(body: Document) -> None:
    for call in (lambda: check_create(body), lambda: check_patch({"summary": "old"}, body)):
        try:
            call()
        except ServiceError as refusal:
            assert refusal.details["errors"]  # noqa: PT017


def test_a_length_is_in_characters() -> None:
    told = problems(check_create, {"summary": "é" * 1501, "topicType": "EVENT", "event": {**EVENT, "title": "x" * 59}})
    assert told == {"summary": "must have at most 1500 characters", "event.title": "must have at most 58 characters"}
