"""The OpenAPI 3.1 document, built from the declarations of the endpoints.

quart-schema builds the outer document. The operations are built here, because quart-schema leaves out `required`,
inlines models and supports only one failure per status.
"""

import inspect
import re

from quart_schema.openapi import OpenAPIProvider
from werkzeug.routing import Rule

from profilesvc.api.endpoint import PREFIX, Endpoint
from profilesvc.api.oauth_endpoint import OAuthEndpoint
from profilesvc.api.openapi import oauth as openapi_oauth
from profilesvc.api.openapi import webhooks as openapi_webhooks
from profilesvc.api.openapi.examples import Examples
from profilesvc.api.openapi.headers import (
    ALLOW,
    CONDITION,
    HEADERS,
    NOT_MODIFIED,
    REPLAYED_HEADER,
    RETRY_AFTER,
    TAG_HEADER,
    header_references,
    limit_headers,
)
from profilesvc.api.openapi.schemas import Schema, body_model, components, reference, success_name
from profilesvc.api.openapi.sharing import share
from profilesvc.api.openapi.texts import GUIDES, INFO, SECURITY_SCHEMES, TAGS
from profilesvc.contract.common import LOCATION_PATTERN, POST_PATTERN, REVIEW_PATTERN
from profilesvc.contract.errors import (
    CONFLICT,
    HEADERS_TOO_LARGE,
    IDEMPOTENCY_IN_PROGRESS,
    INTERNAL_ERROR,
    METHOD_NOT_ALLOWED,
    PROVIDER_API_ERROR,
    QUOTA_EXCEEDED,
    RATE_LIMITED,
    SERVICE_UNAVAILABLE,
    ErrorKind,
)
from profilesvc.contract.json import JsonObject

_CHALLENGED = (401, 403)
_RETRIED = {CONFLICT, IDEMPOTENCY_IN_PROGRESS, PROVIDER_API_ERROR, QUOTA_EXCEEDED, RATE_LIMITED, SERVICE_UNAVAILABLE}
_VARIABLE = re.compile(r"<(?:[^:>]*:)?([^>]+)>")
_TEXT = {"type": "string"}
_PATH_PARAMETERS: dict[str, JsonObject] = {
    "locationId": {
        "description": "The id, or the resource name `locations/<id>`, plain or percent-encoded.",
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
    "client_id": {
        "description": "The key's client id.",
        "schema": {**_TEXT, "examples": ["svcid_1_1767323045678_harbour_coffee_website"]},
    },
    "webhook_id": {"description": "The webhook's id.", "schema": {**_TEXT, "examples": ["1"]}},
    "delivery_id": {"description": "The delivery's id.", "schema": {**_TEXT, "examples": ["1"]}},
    "connection_id": {"description": "The id of a provider login.", "schema": {**_TEXT, "examples": ["1"]}},
    "alert_id": {"description": "The id of an address for alerts.", "schema": {**_TEXT, "examples": ["1"]}},
}
# Links from fields of a response to parameters of other operations.
_KEY_LINK = {"client_id": "$response.body#/data/client_id"}
_WEBHOOK_LINK = {"webhook_id": "$response.body#/data/id"}
_POST_LINK = {"postId": "$response.body#/data/name", "locationId": "$request.query.locationId"}
_LINKS: dict[str, dict[str, dict[str, str]]] = {
    "create_key": {"get_connection_status": _KEY_LINK, "roll_key": _KEY_LINK, "revoke_key": _KEY_LINK},
    "create_webhook": {"test_webhook": _WEBHOOK_LINK, "delete_webhook": _WEBHOOK_LINK},
    "create_post": {"change_post": _POST_LINK, "delete_post": _POST_LINK},
}
_IDEMPOTENCY_HEADER = {
    "name": "X-Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A retry with the same value and body returns the first response. `Idempotency-Key` works too.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"},
}


class Document(OpenAPIProvider):
    """quart-schema's provider with our operations."""

    _examples: Examples

    def schema(self) -> JsonObject:
        """Return the whole document, in a stable order."""
        self._examples = Examples()
        document = super().schema()
        declared = [self._declared(rule) for rule in self.generate_rules()]
        endpoints = [each for each in declared if isinstance(each, Endpoint)]
        standards = [each for each in declared if isinstance(each, OAuthEndpoint)]
        tags = {tag for item in document["paths"].values() for each in item.values() for tag in each["tags"]}
        has_webhooks = "Webhooks" in tags  # not without the room
        models = openapi_webhooks.models() if has_webhooks else []
        document["components"]["schemas"] = components(endpoints, standards, models)
        document["webhooks"] = openapi_webhooks.webhooks() if has_webhooks else {}
        document["components"]["headers"] = HEADERS
        document["components"]["examples"] = dict(sorted(self._examples.components.items()))
        document["servers"] = [{"url": "/", "description": "The service that serves this document."}]
        document["components"]["securitySchemes"] = SECURITY_SCHEMES
        document["tags"] = [
            {"name": name, "description": text, "externalDocs": {"url": f"{GUIDES}/{page}", "description": "Guide"}}
            for name, text, page in TAGS.values()
            if name in tags
        ]
        document["externalDocs"] = {"url": f"{GUIDES}/index.html", "description": "Guides"}
        document["paths"] = {path: dict(document["paths"][path]) for path in sorted(document["paths"])}
        document["info"] = INFO
        share(document)
        return document

    def generate_rules(self) -> list[Rule]:
        """Return the routes of the API and of the OAuth endpoints."""
        return [rule for rule in self._app.url_map.iter_rules() if self._declared(rule) is not None]

    def _declared(self, rule: Rule) -> Endpoint | OAuthEndpoint | None:
        view = self._app.view_functions[rule.endpoint]
        return getattr(view, "endpoint", None) or getattr(view, "oauth_endpoint", None)

    def build_paths(self, rule: Rule) -> tuple[JsonObject, JsonObject]:
        """Return one path with one operation."""
        declared = self._declared(rule)
        assert declared is not None, "generate_rules returns only declared routes"
        tag, *_ = TAGS[rule.endpoint.rsplit(".", 1)[0].partition("_")[0]]
        if isinstance(declared, OAuthEndpoint):
            operation = {**_described(declared, tag), **openapi_oauth.operation(declared, self._examples)}
            return {declared.path: {declared.method.lower(): operation}}, {}
        path = _VARIABLE.sub(r"{\1}", PREFIX + declared.path)
        notes = ["An addition of this service."] if declared.addition else []
        described = _described(declared, tag, *notes, _accepted_tokens(declared))
        operation = {**described, **_operation(declared, path, self._examples)}
        return {path: {declared.method.lower(): operation}}, {}


def _described(declared: Endpoint | OAuthEndpoint, tag: str, *more: str) -> JsonObject:
    """Return the texts of an operation: the first line of its docstring, and the paragraphs below."""
    summary, *paragraphs = inspect.cleandoc(declared.handler.__doc__ or "").split("\n\n")
    description = "\n\n".join([*(" ".join(paragraph.split()) for paragraph in paragraphs), *more])
    summary = summary.removesuffix(".")
    return {"operationId": declared.handler.__name__, "tags": [tag], "summary": summary, "description": description}


def _operation(endpoint: Endpoint, path: str, examples: Examples) -> JsonObject:
    operation: JsonObject = {"security": _security(endpoint), "parameters": _parameters(endpoint, path)}
    if endpoint.body is not None:
        recorded = examples.request(endpoint.handler.__name__)
        content = {"application/json": {"schema": reference(body_model(endpoint).__name__), **recorded}}
        operation["requestBody"] = {"required": True, "content": content}
    operation["responses"] = _responses(endpoint, examples)
    return operation


def _accepted_tokens(endpoint: Endpoint) -> str:
    permission = "" if endpoint.access.permission is None else f" with `{endpoint.access.permission}`"
    accepted = [
        *(["a user token"] if endpoint.access.user else []),
        *([f"a service token{permission}"] if endpoint.access.service else []),
    ]
    return f"Accepts {' or '.join(accepted)}." if accepted else "Accepts no token."


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    schemes: list[dict[str, list[str]]] = []
    if endpoint.access.user:
        schemes.append({"userToken": []})
    if endpoint.access.service:
        permissions = [] if endpoint.access.permission is None else [str(endpoint.access.permission)]
        schemes += [{"serviceToken": permissions}, {"clientCredentials": permissions}]
    return schemes


def _parameters(endpoint: Endpoint, path: str) -> list[JsonObject]:
    parameters: list[JsonObject] = [
        {"name": name, "in": "path", "required": True, **_PATH_PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", path)
    ]
    if endpoint.query is not None:
        schema = endpoint.query.model_json_schema(schema_generator=Schema)
        for name, field in schema["properties"].items():
            parameter = {"name": name, "in": "query", "required": name in schema.get("required", [])}
            if "description" in field:
                parameter["description"] = field.pop("description")
            parameters.append({**parameter, "schema": field})
    if "idempotency" in endpoint.parameters:
        parameters.append(_IDEMPOTENCY_HEADER)
    if endpoint.is_tagged:
        parameters.append(CONDITION)
    for parameter in parameters:
        if examples := parameter["schema"].get("examples"):
            parameter["example"] = examples[0]  # where Swagger UI looks for the value that it suggests
    return parameters


def _responses(endpoint: Endpoint, examples: Examples) -> JsonObject:
    recorded = examples.success(endpoint.handler.__name__, endpoint.status)
    success: JsonObject = {
        "description": "Success",
        "content": {"application/json": {"schema": reference(success_name(endpoint)), **recorded}},
    }
    success["headers"] = limit_headers()
    if "idempotency" in endpoint.parameters:
        success["headers"] |= REPLAYED_HEADER
    if endpoint.created_at is not None:
        success["headers"] |= header_references("Location")
    if endpoint.handler.__name__ in _LINKS:
        links = _LINKS[endpoint.handler.__name__].items()
        success["links"] = {name: {"operationId": name, "parameters": parameters} for name, parameters in links}
    responses = {str(endpoint.status): success}
    if endpoint.is_tagged:
        success["headers"] |= TAG_HEADER
        responses["304"] = {**NOT_MODIFIED, "headers": {**TAG_HEADER, **limit_headers()}}
    by_status: dict[int, list[ErrorKind]] = {}
    for kind in [*endpoint.all_errors, METHOD_NOT_ALLOWED, HEADERS_TOO_LARGE, INTERNAL_ERROR, SERVICE_UNAVAILABLE]:
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        responses[str(status)] = {
            "description": " ".join(kind.message for kind in kinds),
            "content": {"application/json": {"schema": reference("Failure"), **examples.failures(endpoint, kinds)}},
        }
        headers = _failure_headers(endpoint, status, kinds)
        if headers:
            responses[str(status)]["headers"] = headers
    return responses


def _failure_headers(endpoint: Endpoint, status: int, kinds: list[ErrorKind]) -> JsonObject:
    headers = limit_headers() if RATE_LIMITED in kinds else {}
    if not _RETRIED.isdisjoint(kinds):
        headers["Retry-After"] = RETRY_AFTER
    if status in _CHALLENGED and not endpoint.access.public:
        headers |= header_references("WWW-Authenticate")
    if METHOD_NOT_ALLOWED in kinds:
        headers |= ALLOW
    return headers
