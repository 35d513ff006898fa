"""Texts without anything to see, in every field that must not be empty."""

from collections.abc import Callable
from typing import Any

import pytest

from profilesvc.contract.provider.location import Location
from profilesvc.contract.provider_connections import ProviderConnectionImport
from profilesvc.contract.visible import has_visible_text
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import clean_name
from profilesvc.domain.messages import parse
from profilesvc.domain.posts import check_create
from profilesvc.domain.reviews import check_reply
from profilesvc.services import users

INVISIBLE = {
    "empty": "",
    "space": " \t\r\n",
    "no-break space": "\u00a0\u2007\u202f",
    "ideographic space": "\u3000",
    "zero width space": "\u200b\u200b",
    "joiners": "\u200c\u200d\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "directions": "\u200e\u200f\u202a\u202e\u2066\u2069\u061c",
    "line separators": "\u2028\u2029\u0085",
    "grapheme joiner": "\u034f",
    "Hangul fillers": "\u115f\u1160\u3164\uffa0",
    "Khmer vowels": "\u17b4\u17b5",
    "Mongolian": "\u180b\u180e\u180f",
    "variation selectors": "\ufe0f\U000e0100",
    "tags": "\U000e0001\U000e0041",
    "Braille blank": "\u2800",
    "invisible operators": "\u2061\u2064\u206a",
    "interlinear": "\ufff9\ufffb",
    "mixed": " \u200b\u3164\ufe0f ",
}
VISIBLE = ["a", ".", "\u200ba", "é", "e\u0301", "日", "🙂", "👩\u200d💻", "❤\ufe0f", "\u0627", "\u200f.", "0", "|"]


def _post(text: str) -> None:
    check_create({"summary": text})


def _event(text: str) -> None:
    day, time = {"year": 2026, "month": 1, "day": 2}, {"hours": 9}
    schedule = {"startDate": day, "startTime": time, "endDate": {**day, "day": 3}, "endTime": time}
    check_create({"topicType": "EVENT", "event": {"title": text, "schedule": schedule}})


def _label(text: str) -> None:
    if parse(Location, {"labels": [text]})[1]:
        raise ValueError


FIELDS: dict[str, Callable[[str], Any]] = {
    "post": _post,
    "event": _event,
    "reply": lambda text: check_reply({"comment": text}),
    "key or template": clean_name,
    "user": users.clean_name,
    "label": _label,
    "business": lambda text: ProviderConnectionImport(title_contains="", business_name=text),
}


@pytest.mark.parametrize("text", INVISIBLE.values(), ids=INVISIBLE)
@pytest.mark.parametrize("accept", FIELDS.values(), ids=FIELDS)
def test_an_invisible_text_is_rejected(accept: Callable[[str], Any], text: str) -> None:
    assert not has_visible_text(text)
    with pytest.raises((ServiceError, ValueError)):
        accept(text)


@pytest.mark.parametrize("text", VISIBLE)
@pytest.mark.parametrize("field", ["post", "event", "reply", "key or template", "label", "business"])
def test_a_visible_text_is_accepted(field: str, text: str) -> None:
    FIELDS[field](text)
