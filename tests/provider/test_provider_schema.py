"""Our models are the provider's: names, types, enums and read-only marks equal its machine-readable schemas."""

import json
import pkgutil
from types import ModuleType
from typing import Any

import pytest

from profilesvc.contract.provider import attributes, location, notification, post, review, verification
from profilesvc.contract.provider.format import OUTPUT_ONLY, Message
from profilesvc.domain.messages import access_of
from profilesvc.fixtures import fixture_path

FACTS = json.loads(fixture_path("provider_v4.json").read_text("utf-8"))
INFORMATION, VERIFICATIONS = "mybusinessbusinessinformation", "mybusinessverifications"
NOTIFICATIONS = "mybusinessnotifications"
FORMATS = {"google-datetime": "time", "date-time": "time", "int64": "int64"}


def shipped(api: str) -> dict[str, Any]:
    """The schemas inside google-api-python-client."""
    document = pkgutil.get_data("googleapiclient.discovery_cache", f"documents/{api}.v1.json")
    assert document is not None
    schemas: dict[str, Any] = json.loads(document)["schemas"]
    return schemas


def messages(module: ModuleType) -> dict[str, type[Message]]:
    return {
        name: made
        for name, made in vars(module).items()
        if isinstance(made, type) and issubclass(made, Message) and made.__module__ == module.__name__
    }


def kind_of(schema: dict[str, Any]) -> Any:
    """A field's type in one vocabulary, from a discovery document or from JSON Schema."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return kind_of(next(one for one in schema["anyOf"] if one.get("type") != "null"))
    if "allOf" in schema:
        return kind_of(schema["allOf"][0])
    if schema.get("type") == "array":
        return [kind_of(schema["items"])]
    if "enum" in schema:
        return set(schema["enum"])
    if "64-bit" in schema.get("description", ""):
        return "int64"
    return FORMATS.get(schema.get("format", ""), schema.get("type", "any"))


def ours(model: type[Message]) -> dict[str, Any]:
    properties = model.model_json_schema(ref_template="{model}").get("properties", {})
    return {name: kind_of(schema) for name, schema in properties.items()}


def theirs(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = {}
    for name, member in schema.get("properties", {}).items():
        plain = {key: value for key, value in member.items() if key != "description"}
        kinds[name] = kind_of(plain)
    return kinds


def read_only(model: type[Message]) -> set[str]:
    return {name for name, member in model.model_fields.items() if access_of(member) is OUTPUT_ONLY}


V1 = [
    (api, name, model)
    for api, module in (
        (INFORMATION, location),
        (INFORMATION, attributes),
        (VERIFICATIONS, verification),
        (NOTIFICATIONS, notification),
    )
    for name, model in messages(module).items()
]


@pytest.mark.parametrize(("api", "name", "model"), V1, ids=[name for _, name, _ in V1])
def test_v1_message_equals_the_shipped_schema(api: str, name: str, model: type[Message]) -> None:
    schema = shipped(api)[name]
    assert ours(model) == {key: {"any": "any"}.get(str(kind), kind) for key, kind in theirs(schema).items()}
    marked = {key for key, member in schema.get("properties", {}).items() if member.get("readOnly")}
    assert read_only(model) - {"name"} == marked  # the name is an identifier, which callers do not write


V4 = messages(post) | messages(review)


def test_v4_messages_are_those_of_the_facts() -> None:
    lists = {"ListReviewsResponse", "LocationReview", "BatchGetReviewsResponse"}  # the emulator builds them from rows
    assert set(V4) == set(FACTS["messages"]) - lists


@pytest.mark.parametrize("name", V4)
def test_v4_message_equals_the_facts(name: str) -> None:
    def fact(text: str) -> Any:
        word = text.removesuffix(" out")
        if word.startswith("["):
            return [fact(word[1:-1])]
        return set(FACTS["enums"][word]) if word in FACTS["enums"] else word

    members = FACTS["messages"][name]
    assert ours(V4[name]) == {key: fact(text) for key, text in members.items()}
    assert read_only(V4[name]) == {key for key, text in members.items() if text.endswith(" out")}


def test_every_message_that_the_location_and_the_attributes_need_is_there() -> None:
    """Followed from the shipped schemas, so that a new nested message is noticed too."""
    schemas, known = shipped(INFORMATION), messages(location) | messages(attributes)
    waiting, seen = ["Location", "Attributes", "Category"], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        refs = json.dumps(schemas[name]).split('"$ref": "')[1:]
        waiting += {ref.split('"')[0] for ref in refs} - seen
    assert seen == set(known)
