"""The OpenAPI operations of the OAuth endpoints: forms, responses without an envelope, and OAuth errors."""

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode

from profilesvc.api.forms import FORM
from profilesvc.api.oauth_endpoint import OAuthEndpoint
from profilesvc.api.openapi.examples import Examples
from profilesvc.api.openapi.headers import (
    ALLOW,
    CONDITION,
    NOT_MODIFIED,
    RETRY_AFTER,
    TAG_HEADER,
    header_references,
    limit_headers,
)
from profilesvc.contract.errors import ErrorKind
from profilesvc.contract.json import JsonObject
from profilesvc.contract.oauth2 import OAuthError

_REF = "#/components/schemas/{model}"


def operation(declared: OAuthEndpoint, examples: Examples) -> JsonObject:
    """Build one operation without its texts."""
    name = declared.handler.__name__
    result: JsonObject = {"security": _security(declared)}
    result["parameters"] = [CONDITION] if declared.is_tagged else []
    if declared.form is not None:
        content = {FORM: {"schema": _ref(declared.form), **examples.request(name)}}
        result["requestBody"] = {"required": True, "content": content}
    content = {"application/json": {"schema": _ref(declared.response), **examples.success(name, 200)}}
    success: JsonObject = {"description": "Success", "content": content}
    result["responses"] = {"200": success, **_failures(declared, examples)}
    if declared.is_tagged:
        success["headers"] = TAG_HEADER
        result["responses"]["304"] = NOT_MODIFIED
    return result


def models(declared: OAuthEndpoint) -> list[tuple[type[BaseModel], JsonSchemaMode]]:
    forms: list[tuple[type[BaseModel], JsonSchemaMode]] = [(declared.form, "validation")] if declared.form else []
    return [(declared.response, "serialization"), (OAuthError, "serialization"), *forms]


def _security(declared: OAuthEndpoint) -> list[dict[str, list[str]]]:
    """Return the security schemes. `{}` is the client that authenticates in the form."""
    if declared.form is None:
        return []
    user: list[dict[str, list[str]]] = [{"userToken": []}] if "caller" in declared.parameters else []
    return [{"client": []}, *user, {}]


def _failures(declared: OAuthEndpoint, examples: Examples) -> JsonObject:
    by_status: dict[int, list[ErrorKind]] = {}
    for kind in declared.all_errors:
        by_status.setdefault(kind.status, []).append(kind)
    failures = {
        str(status): {
            "description": " ".join(kind.message for kind in kinds),
            "content": {"application/json": {"schema": _ref(OAuthError), **examples.failures(declared, kinds)}},
        }
        for status, kinds in sorted(by_status.items())
    }
    failures["405"]["headers"] = ALLOW
    if "401" in failures:
        failures["401"]["headers"] = header_references("WWW-Authenticate")
    if "503" in failures:
        failures["503"]["headers"] = {"Retry-After": RETRY_AFTER}
    if "429" in failures:
        failures["429"]["headers"] = {**limit_headers(), "Retry-After": RETRY_AFTER}
    return failures


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
