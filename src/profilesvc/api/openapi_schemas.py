"""The schemas of the OpenAPI document: one per body and response, in forms that client generators understand."""

import re
from typing import Any, ClassVar

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from profilesvc.api import openapi_oauth
from profilesvc.api.endpoint import Endpoint
from profilesvc.api.oauth_endpoint import OAuthEndpoint
from profilesvc.contract.envelope import Failure
from profilesvc.contract.provider.format import Message, OpenMessage, access_of

_REF = "#/components/schemas/{model}"


class Schema(GenerateJsonSchema):
    """pydantic's JSON schema in the forms that generators understand.

    A profile does not forbid what is filtered: in `bodies` what the provider alone writes, in a profile also what is
    unknown.
    """

    bodies: ClassVar[set[type[BaseModel]]] = set()

    def model_schema(self, schema: Any) -> Any:
        """Mark as required what a response always has; absent fields of a response are left out and never null."""
        made, cls = super().model_schema(schema), schema["cls"]
        made.pop("title", None)
        if issubclass(cls, OpenMessage):
            made.pop("additionalProperties", None)
        if issubclass(cls, OpenMessage) or cls in self.bodies:
            for name, field in cls.model_fields.items():
                if access_of(field) is not None:
                    made["properties"][name] = {"description": "Ignored."}
        if cls in self.bodies and not made.get("required"):
            made["minProperties"] = 1  # the use case refuses a body that says nothing
        if self.mode == "serialization" and not issubclass(cls, Message):
            _as_sent(made, cls)
        return made

    def default_schema(self, schema: Any) -> Any:
        """Leave out `default: null`, which generated clients read as required."""
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made

    def literal_schema(self, schema: Any) -> Any:
        """Write a single value as an enum, and a boolean as any boolean: generators fail at `const`."""
        made = super().literal_schema(schema)
        value = made.pop("const", None)
        return made if value is None or isinstance(value, bool) else {**made, "enum": [value]}

    def nullable_schema(self, schema: Any) -> Any:
        """Write `type: [string, "null"]` where that is possible."""
        made = super().nullable_schema(schema)
        inner, *_ = made.get("anyOf", [made])
        if not isinstance(inner.get("type"), str) or "enum" in inner:
            return made
        return {**inner, "type": [inner["type"], "null"]}

    def tagged_union_schema(self, schema: Any) -> Any:
        """Leave out `discriminator`: PHP's generator writes the name of the schema into that field."""
        made = super().tagged_union_schema(schema)
        made.pop("discriminator", None)
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: generators name types after them, and pydantic repeats the name of the field."""
        return False


def _as_sent(made: dict[str, Any], cls: type[BaseModel]) -> None:
    """Mark constants as required; a field that may be None by default is left out then, and never null."""
    for key, field in cls.model_fields.items():
        name = field.serialization_alias or key
        made["properties"][name].pop("default", None)  # generated clients would fill it in
        if field.default is None:
            made["properties"][name] = _without_null(made["properties"][name])
        elif not field.is_required() and field.exclude_if is None:
            made.setdefault("required", []).append(name)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else schema


def reference(name: str) -> dict[str, str]:
    """A reference to a schema."""
    return {"$ref": _REF.format(model=name)}


def body_model(endpoint: Endpoint) -> type[BaseModel]:
    """The model that describes a body."""
    model = endpoint.body_schema or endpoint.body
    assert model is not None and issubclass(model, BaseModel), f"{endpoint.path} needs a body schema"  # noqa: PT018
    return model


def success_name(endpoint: Endpoint) -> str:
    """The name of the envelope around an endpoint's data."""
    return f"{_data_name(endpoint)}Success"


def _data_models(endpoint: Endpoint) -> list[type[BaseModel]]:
    return list(getattr(endpoint.data, "__args__", ())) or [endpoint.data]


def _data_name(endpoint: Endpoint) -> str:
    return endpoint.data_name or _data_models(endpoint)[0].__name__


def components(endpoints: list[Endpoint], standards: list[OAuthEndpoint]) -> dict[str, Any]:
    """Every model once, by its class name, and one success envelope per `data`."""
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Failure, "serialization")]
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
            "properties": {"status": {"type": "string", "enum": ["ok"]}, "data": reference(_data_name(endpoint))},
        }
    roots = {name for name in schemas if name.endswith("Success")}
    roots |= {body_model(endpoint).__name__ for endpoint in endpoints if endpoint.body is not None}
    roots |= {model.__name__ for standard in standards for model, _ in openapi_oauth.models(standard)}
    return {name: schemas[name] for name in sorted(_reachable(schemas, {*roots, Failure.__name__}))}


def _merged(alternatives: list[dict[str, Any]]) -> dict[str, Any]:
    """One object for several: generated clients try `anyOf` in order and lose what the first one does not know.

    What only some of them have is optional; the first one describes what they share.
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


def _reachable(schemas: dict[str, Any], roots: set[str]) -> set[str]:
    """The schemas that the roots lead to; the type of a field that is filtered is not among them."""
    found, left = set[str](), roots
    while left:
        found |= left
        text = str([schemas[name] for name in left])
        left = set(re.findall(r"#/components/schemas/([^']+)", text)) - found
    return found
