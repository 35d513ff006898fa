"""The schemas of the OpenAPI document: one per body and response, in forms that client generators understand."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from profilesvc.api.endpoint import Endpoint
from profilesvc.api.oauth_endpoint import OAuthEndpoint
from profilesvc.api.openapi import oauth as openapi_oauth
from profilesvc.contract.envelope import Failure
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message, OpenMessage
from profilesvc.domain.messages import access_of

_REF = "#/components/schemas/{model}"


@lru_cache(1)
def field_texts() -> dict[str, dict[str, str]]:
    """Return the descriptions of fields that have none in their model, by model and field."""
    return tomllib.loads(Path(__file__).with_name("field_texts.toml").read_text("utf-8"))


class Schema(GenerateJsonSchema):
    """pydantic's JSON schema in the forms that generators understand.

    A schema does not forbid fields that the service filters out: in `bodies` those that only the provider sets, in a
    profile also unknown ones.
    """

    bodies: ClassVar[set[type[BaseModel]]] = set()

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Mark the fields that a response always has as required. An absent field is left out and never null."""
        result, cls = super().model_schema(schema), schema["cls"]
        result.pop("title", None)
        if issubclass(cls, OpenMessage):
            result.pop("additionalProperties", None)
        if issubclass(cls, OpenMessage) or cls in self.bodies:
            for name, field in cls.model_fields.items():
                if access_of(field) is not None:
                    result["properties"][name] = {"description": "Set by the provider. Ignored in requests."}
        if cls in self.bodies and not result.get("required"):
            result["minProperties"] = 1  # the service rejects an empty body
        if self.mode == "serialization" and not issubclass(cls, Message):
            _as_sent(result, cls)
        for name, field in result.get("properties", {}).items():
            text = _field_text(cls, name)
            if text is not None and "description" not in field:
                result["properties"][name] = {**field, "description": text}
        return result

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out `default: null`, which generated clients read as required."""
        result = super().default_schema(schema)
        if result.get("default", ...) is None:
            del result["default"]
        return result

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Write a single value as an enum, and a boolean as any boolean: generators do not support `const`."""
        result = super().literal_schema(schema)
        value = result.pop("const", None)
        return result if value is None or isinstance(value, bool) else {**result, "enum": [value]}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Write `type: [string, "null"]` if possible."""
        result = super().nullable_schema(schema)
        inner, *_ = result.get("anyOf", [result])
        if not isinstance(inner.get("type"), str) or "enum" in inner:
            return result
        return {**inner, "type": [inner["type"], "null"]}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Leave out `discriminator`: PHP's generator sets that field to the name of the schema."""
        result = super().tagged_union_schema(schema)
        result.pop("discriminator", None)
        return result

    def field_title_should_be_set(self, schema: object) -> bool:
        """Leave out titles, because generators name types after them, and pydantic only repeats field names."""
        return False


def _field_text(cls: type[BaseModel], name: str) -> str | None:
    texts = field_texts()
    sections = [*(each.__name__ for each in cls.__mro__), "any"]
    return next((texts[section][name] for section in sections if name in texts.get(section, {})), None)


def _as_sent(result: JsonObject, cls: type[BaseModel]) -> None:
    """Mark constants as required. A field that is None by default is left out then, and never null."""
    for key, field in cls.model_fields.items():
        name = field.serialization_alias or key
        result["properties"][name].pop("default", None)  # generated clients would insert it
        if field.default is None:
            result["properties"][name] = _without_null(result["properties"][name])
        elif not field.is_required() and field.exclude_if is None:
            result.setdefault("required", []).append(name)


def _without_null(schema: JsonObject) -> JsonObject:
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else schema


def reference(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


def body_model(endpoint: Endpoint) -> type[BaseModel]:
    model = endpoint.body_schema or endpoint.body
    assert model is not None and issubclass(model, BaseModel), f"{endpoint.path} needs a body schema"  # noqa: PT018
    return model


def success_name(endpoint: Endpoint) -> str:
    """Return the name of the envelope of an endpoint's data."""
    return f"{_data_name(endpoint)}Success"


def _data_models(endpoint: Endpoint) -> list[type[BaseModel]]:
    return list(getattr(endpoint.data, "__args__", ())) or [endpoint.data]


def _data_name(endpoint: Endpoint) -> str:
    return endpoint.data_name or _data_models(endpoint)[0].__name__


def components(endpoints: list[Endpoint], standards: list[OAuthEndpoint], events: list[type[BaseModel]]) -> JsonObject:
    """Return every model once, by its class name, and one success envelope per `data`. `events` are of webhooks."""
    others: list[type[BaseModel]] = [Failure, *events]
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "serialization") for model in others]
    for endpoint in endpoints:
        inputs += [(model, "serialization") for model in _data_models(endpoint)]
        if endpoint.body is not None:
            inputs.append((body_model(endpoint), "validation"))
    for standard in standards:
        inputs += openapi_oauth.models(standard)
    bodies = {endpoint.body_schema for endpoint in endpoints if endpoint.body_schema}
    generator = type("_RequestSchema", (Schema,), {"bodies": bodies})
    refs, definitions = models_json_schema(inputs, by_alias=True, ref_template=_REF, schema_generator=generator)
    schemas = dict(definitions["$defs"])
    for (model, _), ref in refs.items():
        assert ref == reference(model.__name__), f"two models are called {model.__name__}"
    for endpoint in endpoints:
        alternatives = [schemas[model.__name__] for model in _data_models(endpoint)]
        schemas[_data_name(endpoint)] = _merged(alternatives)
        schemas[success_name(endpoint)] = {
            "type": "object",
            "required": ["status", "data"],
            "properties": {
                "status": {"type": "string", "enum": ["ok"], "description": "Always `ok`."},
                "data": {**reference(_data_name(endpoint)), "description": "The result."},
            },
        }
    roots = {name for name in schemas if name.endswith("Success")}
    roots |= {body_model(endpoint).__name__ for endpoint in endpoints if endpoint.body is not None}
    roots |= {model.__name__ for standard in standards for model, _ in openapi_oauth.models(standard)}
    roots |= {model.__name__ for model in others}
    return {name: schemas[name] for name in sorted(_reachable(schemas, roots))}


def _merged(alternatives: list[JsonObject]) -> JsonObject:
    """Merge several objects into one, because generated clients try `anyOf` in order and lose the fields of the others.

    Fields that only some of them have are optional. The first object describes the shared ones.
    """
    if len(alternatives) == 1:
        return alternatives[0]
    properties = {name: each for one in reversed(alternatives) for name, each in one["properties"].items()}
    order = dict.fromkeys(name for one in alternatives for name in one["properties"])
    return {
        **alternatives[0],
        "description": " Or: ".join(one["description"] for one in alternatives),
        "properties": {name: properties[name] for name in order},
        "required": [name for name in order if all(name in one["required"] for one in alternatives)],
    }


def _reachable(schemas: JsonObject, roots: set[str]) -> set[str]:
    """Return the schemas that the roots refer to. The type of a field that is filtered out is not among them."""
    reached, pending = set[str](), roots
    while pending:
        reached |= pending
        text = str([schemas[name] for name in pending])
        pending = set(re.findall(r"#/components/schemas/([^']+)", text)) - reached
    return reached
