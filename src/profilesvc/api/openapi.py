"""The OpenAPI 3.1 document, written from the declarations.

quart-schema walks the routes and fills the frame; what one operation says is built here, because its own builder
leaves out `required`, inlines models and cannot name several failures per status.
"""

import re
from typing import Any, ClassVar

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from quart_schema.openapi import OpenAPIProvider
from werkzeug.routing import Rule

from profilesvc.api import openapi_standard
from profilesvc.api.endpoint import PREFIX, Endpoint
from profilesvc.api.openapi_headers import (
    CONDITION,
    LIMIT_HEADERS,
    NOT_MODIFIED,
    REPLAYED_HEADER,
    RETRY_AFTER,
    TAG_HEADER,
    limit_headers,
)
from profilesvc.api.standard import Standard
from profilesvc.contract.common import LOCATION_PATTERN, POST_PATTERN, REVIEW_PATTERN
from profilesvc.contract.envelope import Failure
from profilesvc.contract.errors import INTERNAL_ERROR, RATE_LIMITED, SERVICE_UNAVAILABLE, ErrorKind
from profilesvc.contract.provider_format import OpenMessage, access_of

_VARIABLE = re.compile(r"<(?:[^:>]*:)?([^>]+)>")
_REF = "#/components/schemas/{model}"
_TEXT = {"type": "string"}
_PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "locationId": {
        "description": "The id, or the resource name `locations/<id>`, plain or percent-encoded (D-20).",
        "schema": {**_TEXT, "pattern": LOCATION_PATTERN, "examples": ["111"]},
    },
    "postId": {
        "description": "The id, or the resource name `locations/<id>/localPosts/<id>` of a post of that location.",
        "schema": {**_TEXT, "pattern": POST_PATTERN, "examples": ["11101"]},
    },
    "reviewId": {
        "description": "The id, or the resource name `locations/<id>/reviews/<id>` of a review of that location.",
        "schema": {**_TEXT, "pattern": REVIEW_PATTERN, "examples": ["11191"]},
    },
    "client_id": {"description": "The key's client id.", "schema": _TEXT},
}
# What an answer leads to: where its members are parameters of other operations.
_KEY_LINK = {"client_id": "$response.body#/data/client_id"}
_POST_LINK = {"postId": "$response.body#/data/name", "locationId": "$request.query.locationId"}
_LINKS: dict[str, dict[str, dict[str, str]]] = {
    "create_key": {"get_connection_status": _KEY_LINK, "roll_key": _KEY_LINK, "revoke_key": _KEY_LINK},
    "create_post": {"change_post": _POST_LINK, "delete_post": _POST_LINK},
}
_IDEMPOTENCY_HEADER = {
    "name": "X-Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Repeats with the same value and body get the first answer (D-40). `Idempotency-Key` works too.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"},
}


class _Schema(GenerateJsonSchema):
    """pydantic's JSON schema without `default: null`, which generated clients read as required.

    Nor does it forbid what is filtered: in `bodies` what the provider alone writes, in a profile also the unknown.
    """

    bodies: ClassVar[set[type[BaseModel]]] = set()

    def model_schema(self, schema: Any) -> Any:
        made, cls = super().model_schema(schema), schema["cls"]
        if issubclass(cls, OpenMessage):
            made.pop("additionalProperties", None)
        if issubclass(cls, OpenMessage) or cls in self.bodies:
            for name, field in cls.model_fields.items():
                if access_of(field) is not None:
                    made["properties"][name] = {"description": "Ignored."}
        return made

    def default_schema(self, schema: Any) -> Any:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


class Document(OpenAPIProvider):
    """quart-schema's provider with our operations."""

    def schema(self) -> dict[str, Any]:
        """The whole document, in a stable order."""
        document = super().schema()
        declared = [self._declared(rule) for rule in self.generate_rules()]
        endpoints = [found for found in declared if isinstance(found, Endpoint)]
        standards = [found for found in declared if isinstance(found, Standard)]
        document["components"]["schemas"] = _components(endpoints, standards)
        document["components"]["headers"] = LIMIT_HEADERS
        document["paths"] = {path: dict(document["paths"][path]) for path in sorted(document["paths"])}
        document["info"] = {name: value for name, value in document["info"].items() if value is not None}
        return document

    def generate_rules(self) -> Any:
        """The API's own routes, and those that speak a standard."""
        return [rule for rule in self._app.url_map.iter_rules() if self._declared(rule) is not None]

    def _declared(self, rule: Rule) -> Endpoint | Standard | None:
        view = self._app.view_functions[rule.endpoint]
        return getattr(view, "endpoint", None) or getattr(view, "standard", None)

    def build_paths(self, rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
        """One path with one operation."""
        declared = self._declared(rule)
        assert declared is not None, "generate_rules gives declared routes only"
        noun = rule.endpoint.rsplit(".", 1)[0]
        if isinstance(declared, Standard):
            return {declared.path: {declared.method.lower(): openapi_standard.operation(declared, noun)}}, {}
        path = _VARIABLE.sub(r"{\1}", PREFIX + declared.path)
        return {path: {declared.method.lower(): _operation(declared, noun, path)}}, {}


def _operation(endpoint: Endpoint, noun: str, path: str) -> dict[str, Any]:
    summary, _, description = (endpoint.handler.__doc__ or "").strip().partition("\n")
    operation: dict[str, Any] = {"operationId": endpoint.handler.__name__, "tags": [noun], "summary": summary}
    if description.strip():
        operation["description"] = " ".join(description.split())
    operation["security"] = _security(endpoint)
    operation["parameters"] = _parameters(endpoint, path)
    if endpoint.body is not None:
        content = {"application/json": {"schema": _ref(_body_model(endpoint))}}
        operation["requestBody"] = {"required": True, "content": content}
    operation["responses"] = _responses(endpoint)
    return operation


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    schemes: list[dict[str, list[str]]] = []
    if endpoint.access.user:
        schemes.append({"userToken": []})
    if endpoint.access.service:
        permission = endpoint.access.permission
        schemes.append({"serviceToken": [] if permission is None else [str(permission)]})
    return schemes


def _parameters(endpoint: Endpoint, path: str) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            **_PATH_PARAMETERS[name],
        }
        for name in re.findall(r"{(\w+)}", path)
    ]
    if endpoint.query is not None:
        schema = endpoint.query.model_json_schema(schema_generator=_Schema)
        for name, member in schema["properties"].items():
            parameter = {"name": name, "in": "query", "required": name in schema.get("required", [])}
            if "description" in member:
                parameter["description"] = member.pop("description")
            member.pop("title", None)
            parameters.append({**parameter, "schema": member})
    if "idempotency" in endpoint.wants:
        parameters.append(_IDEMPOTENCY_HEADER)
    if endpoint.is_tagged:
        parameters.append(CONDITION)
    return parameters


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    success: dict[str, Any] = {
        "description": "Success",
        "content": {"application/json": {"schema": _ref_to(_success_name(endpoint))}},
    }
    success["headers"] = limit_headers()
    if "idempotency" in endpoint.wants:
        success["headers"] |= REPLAYED_HEADER
    if endpoint.handler.__name__ in _LINKS:
        links = _LINKS[endpoint.handler.__name__].items()
        success["links"] = {name: {"operationId": name, "parameters": parameters} for name, parameters in links}
    responses = {str(endpoint.status): success}
    if endpoint.is_tagged:
        success["headers"] |= TAG_HEADER
        responses["304"] = {**NOT_MODIFIED, "headers": {**TAG_HEADER, **limit_headers()}}
    by_status: dict[int, list[ErrorKind]] = {}
    for kind in [*endpoint.all_errors, INTERNAL_ERROR, SERVICE_UNAVAILABLE]:
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        examples = {kind.code: {"summary": kind.message, "value": _example(kind)} for kind in kinds}
        responses[str(status)] = {
            "description": " ".join(kind.message for kind in kinds),
            "content": {"application/json": {"schema": _ref_to("Failure"), "examples": examples}},
        }
        if RATE_LIMITED in kinds:
            responses[str(status)]["headers"] = {**limit_headers(), "Retry-After": RETRY_AFTER}
    return responses


def _example(kind: ErrorKind) -> dict[str, Any]:
    return {"status": "error", "error": {"code": kind.code, "message": kind.message}}


def _body_model(endpoint: Endpoint) -> type[BaseModel]:
    model = endpoint.body_schema or endpoint.body
    assert model is not None and issubclass(model, BaseModel), f"{endpoint.path} needs a body schema"  # noqa: PT018
    return model


def _ref_to(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return _ref_to(model.__name__)


def _data_models(endpoint: Endpoint) -> list[type[BaseModel]]:
    return list(getattr(endpoint.data, "__args__", ())) or [endpoint.data]


def _success_name(endpoint: Endpoint) -> str:
    return f"{_data_models(endpoint)[0].__name__}Success"


def _components(endpoints: list[Endpoint], standards: list[Standard]) -> dict[str, Any]:
    """Every model once, by its class name, and one success envelope per `data`."""
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Failure, "serialization")]
    for endpoint in endpoints:
        inputs += [(model, "serialization") for model in _data_models(endpoint)]
        if endpoint.body is not None:
            inputs.append((_body_model(endpoint), "validation"))
    for standard in standards:
        inputs += openapi_standard.models(standard)
    bodies = {endpoint.body_schema for endpoint in endpoints if endpoint.body_schema}
    generator = type("_RequestSchema", (_Schema,), {"bodies": bodies})
    refs, definitions = models_json_schema(inputs, by_alias=True, ref_template=_REF, schema_generator=generator)
    schemas = dict(definitions["$defs"])
    for (model, _), ref in refs.items():
        assert ref["$ref"] == _REF.format(model=model.__name__), f"two models are called {model.__name__}"
    for endpoint in endpoints:
        options = [_ref(model) for model in _data_models(endpoint)]
        schemas[_success_name(endpoint)] = {
            "type": "object",
            "required": ["status", "data"],
            "properties": {
                "status": {"type": "string", "const": "ok"},
                "data": options[0] if len(options) == 1 else {"anyOf": options},
            },
        }
    return {name: schemas[name] for name in sorted(_reachable(schemas, {model.__name__ for model, _ in inputs}))}


def _reachable(schemas: dict[str, Any], roots: set[str]) -> set[str]:
    """The schemas that the roots lead to; the type of a member that is filtered is none of them."""
    found, left = set[str](), {name for name in schemas if name in roots or name.endswith("Success")}
    while left:
        found |= left
        text = str([schemas[name] for name in left])
        left = set(re.findall(r"#/components/schemas/(\w+)", text)) - found
    return found
