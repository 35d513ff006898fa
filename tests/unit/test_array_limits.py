"""No request may hold an array without a limit."""

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from profilesvc.contract import common, connection, keys, locations, tokens
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message
from profilesvc.contract.provider.location import Location
from profilesvc.contract.provider.post import LocalPost
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.hours import DAYS
from profilesvc.domain.messages import access_of, message_of
from profilesvc.domain.posts import check_create
from profilesvc.domain.profiles import check

PHOTO = {"sourceUrl": "https://a.example/p.jpg"}
POST = {"summary": "x"}


def periods(count: int) -> list[Any]:
    """Periods of a quarter of an hour, because two must not overlap."""
    moments = [
        (day, {"hours": hours, "minutes": minutes}) for day in DAYS for hours in range(24) for minutes in (0, 15, 30)
    ]
    opens = moments[:count]
    return [
        {"openDay": day, "openTime": at, "closeDay": day, "closeTime": {**at, "minutes": at["minutes"] + 15}}
        for day, at in opens
    ]


def closed(count: int) -> list[Any]:
    first = datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(days=number) for number in range(count)]
    return [{"startDate": {"year": day.year, "month": day.month, "day": day.day}, "closed": True} for day in days]


# The field, an item of it or a function that makes several, and the most of them: the provider's number if published.
IN_POSTS: list[tuple[str, Any, int]] = [
    ("media", PHOTO, 10),
    ("event.recurrenceInfo.weeklyPattern.daysOfWeek", "MONDAY", 7),
]
IN_PROFILES: list[tuple[str, Any, int]] = [
    ("phoneNumbers.additionalPhones", "+1 415 555 0132", 2),
    ("storefrontAddress.addressLines", "Pier 1", 5),
    ("storefrontAddress.recipients", "Alice", 10),
    ("categories.additionalCategories", {"name": "categories/gcid:cafe"}, 9),
    ("serviceArea.places.placeInfos", {"placeId": "p", "placeName": "Yokohama"}, 20),
    ("regularHours.periods", periods, 100),
    ("specialHours.specialHourPeriods", closed, 1_000),
    ("relationshipData.childrenLocations", {"placeId": "p"}, 1_000),
    ("labels", "pier", 10),
    ("moreHours", {"hoursTypeId": "DELIVERY", "periods": []}, 50),
    ("moreHours.0.periods", periods, 100),
    ("serviceItems", {"structuredServiceItem": {"serviceTypeId": "x"}}, 1_000),
]


def arrays(message: type[Message], prefix: str = "") -> Iterator[str]:
    """The paths of all arrays that a caller may write."""
    for name, field in message.model_fields.items():
        inner, is_list = message_of(field.annotation)
        if access_of(field) is not None:
            continue
        path = f"{prefix}{name}"
        if is_list or "list[" in str(field.annotation):
            yield path
        if inner is not None:
            yield from arrays(inner, f"{path}.0." if is_list else f"{path}.")


def body(path: str, value: Any) -> JsonObject:
    """A body with the value at a path."""
    for name in reversed(path.split(".")):
        value = [value] if name == "0" else {name: value}
    found: JsonObject = value
    return found


def problems(checked: Callable[[JsonObject], Any], document: JsonObject) -> dict[str, str]:
    try:
        checked(document)
    except ServiceError as error:
        return {problem["field"]: problem["problem"] for problem in error.details["errors"]}
    return {}


def test_every_array_of_a_post_and_a_profile_is_tried() -> None:
    assert list(arrays(ReviewReply)) == []
    assert {path for path in arrays(LocalPost) if "locationAssociation" not in path} == {path for path, *_ in IN_POSTS}
    assert set(arrays(Location)) == {path for path, *_ in IN_PROFILES}


@pytest.mark.parametrize(("path", "item", "most"), IN_POSTS)
def test_an_array_of_a_post_has_a_limit(path: str, item: Any, most: int) -> None:
    assert path not in problems(check_create, POST | body(path, [item] * most))
    found = problems(check_create, POST | body(path, [item] * (most + 1)))
    assert found[path] == f"must have at most {most} items"


@pytest.mark.parametrize(("path", "item", "most"), IN_PROFILES)
def test_an_array_of_a_profile_has_a_limit(path: str, item: Any, most: int) -> None:
    items = item if callable(item) else lambda count: [item] * count
    assert problems(check, body(path, items(most))) == {}
    assert problems(check, body(path, items(most + 1))) == {path: f"must have at most {most} items"}


def test_too_many_photos_are_one_problem_and_not_one_for_each() -> None:
    assert problems(check_create, {**POST, "media": [{}] * 4_900}) == {"media": "must have at most 10 items"}


def test_every_array_of_another_body_has_a_limit() -> None:
    bodies = [each for module in (common, connection, keys, locations, tokens) for each in vars(module).values()]
    schemas = [TypeAdapter(each).json_schema() for each in bodies if is_body(each)]
    assert len(schemas) >= 7
    found = [array for schema in schemas for array in unlimited(schema)]
    assert found == []


def is_body(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseModel) and issubclass(thing, common.Body)


def unlimited(schema: Any) -> Iterator[Any]:
    if isinstance(schema, list):
        for each in schema:
            yield from unlimited(each)
    if isinstance(schema, dict):
        if schema.get("type") == "array" and "maxItems" not in schema:
            yield schema
        for each in schema.values():
            yield from unlimited(each)
