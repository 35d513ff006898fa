"""The examples and the descriptions of the OpenAPI document: complete, valid by their schemas, and recorded."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from conftest import make_settings
from profilesvc.api.openapi import schemas as openapi_schemas
from profilesvc.bootstrap import create_app
from support.documents import inlined
from support.examples import examples

Content = tuple[str, str, dict[str, Any]]  # operation, "request" or a status, what is sent


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app = create_app(make_settings(tmp_path_factory.mktemp("texts")))
    return inlined(app.extensions["QUART_SCHEMA"].openapi_provider.schema())


def contents(document: dict[str, Any]) -> Iterator[Content]:
    """The bodies of all requests and responses."""
    for methods in document["paths"].values():
        for operation in methods.values():
            bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for place, body in bodies.items():
                for content in body.get("content", {}).values():
                    yield operation["operationId"], place, content


def values(document: dict[str, Any], content: dict[str, Any]) -> Iterator[Any]:
    """The values of the examples, through references."""
    for example in content["examples"].values():
        name = example.get("$ref", "").removeprefix("#/components/examples/")
        yield (document["components"]["examples"][name] if name else example)["value"]


def test_every_body_has_examples_that_fit_its_schema(document: dict[str, Any]) -> None:
    for operation, place, content in contents(document):
        hint = f"add a call of `{operation}` to tests/support/examples/examples.py and run `make openapi`"
        assert content["examples"], f"the {place} has no example: {hint}"
        schema = {**content["schema"], "components": document["components"]}
        for value in values(document, content):
            errors = Draft202012Validator(schema).iter_errors(value)
            problems = [f"{error.json_path}: {error.message}" for error in errors]
            assert problems == [], f"run `make openapi`: the {place} of `{operation}` has an old example"


def test_every_shared_example_is_used(document: dict[str, Any]) -> None:
    text = orjson.dumps(document["paths"]).decode()
    for name in document["components"]["examples"]:
        assert f'"#/components/examples/{name}"' in text


def test_every_error_is_recorded(document: dict[str, Any]) -> None:
    """The document has made up the others, from their code and message."""
    shared = orjson.loads(examples.RECORDED.read_bytes())["shared"]
    recorded = {
        f"{group}.{status}.{name}"
        for group, errors in shared.items()
        for status, named in errors.items()
        for name in named
    }
    hint = "add a call to tests/support/examples/examples.py and run `make openapi`"
    assert document["components"]["examples"].keys() - recorded == set(), hint


@pytest.mark.slow
def test_the_examples_are_what_the_service_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profilesvc.services.sync.LOCK_WAIT_SECONDS", 0.1)  # the responses are the same after 10 s
    monkeypatch.setattr("profilesvc.api.request.GRACE_SECONDS", 0.5)
    is_current = examples.RECORDED.read_text("utf-8") == examples.record()
    assert is_current, "api/openapi/examples.json is out of date: run `make openapi` and read the difference"


def test_examples_contain_no_secret(document: dict[str, Any]) -> None:
    for _, _, content in contents(document):
        for value in values(document, content):
            text = orjson.dumps(value).decode()
            assert "eyJhbGciOi" not in text
            secret = value.get("data", value).get("client_secret", "") if isinstance(value, dict) else ""
            assert not secret or len(secret) < 64


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("AUTH_INVALID_TOKEN", "reason"),
        ("AUTH_INSUFFICIENT_PERMISSIONS", "deactivation_reason"),
        ("AUTH_INSUFFICIENT_PERMISSIONS", "deactivated_at"),
        ("AUTH_INSUFFICIENT_PERMISSIONS", "upgrade_url"),
        ("AUTH_INSUFFICIENT_PERMISSIONS", "required"),
        ("AUTH_INSUFFICIENT_PERMISSIONS", "requested"),
        ("CONFLICT", "limit"),
        ("CONFLICT", "previous_secret_expires_at"),
        ("LOCATION_NOT_VERIFIED", "verificationState"),
        ("PLAN_RESTRICTION", "limit"),
        ("PROVIDER_API_ERROR", "retryable"),
        ("QUOTA_EXCEEDED", "resets_at"),
        ("VALIDATION_ERROR", "errors"),
    ],
)
def test_details_that_clients_switch_on_have_an_example(document: dict[str, Any], code: str, detail: str) -> None:
    errors = [
        value["error"]
        for _, place, content in contents(document)
        for value in values(document, content)
        if place >= "400" and isinstance(value.get("error"), dict)
    ]
    assert any(error["code"] == code and detail in error.get("details", {}) for error in errors)


def test_every_field_and_parameter_has_a_description(document: dict[str, Any]) -> None:
    missing = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    missing += [
        f"{operation['operationId']}({parameter['name']})"
        for methods in document["paths"].values()
        for operation in methods.values()
        for parameter in operation["parameters"]
        if not parameter.get("description")
    ]
    names = ", ".join(missing)
    assert not missing, f"describe these in their models or in src/profilesvc/api/openapi/field_texts.toml: {names}"


def test_every_text_of_a_field_is_used(document: dict[str, Any]) -> None:
    used = orjson.dumps(document).decode()
    unused = [
        f"{model}.{field}"
        for model, texts in openapi_schemas.field_texts().items()
        for field, text in texts.items()
        if orjson.dumps(text).decode() not in used
    ]
    assert unused == [], "remove these from src/profilesvc/api/openapi/field_texts.toml"


def test_security_schemes_and_tags_have_descriptions(document: dict[str, Any]) -> None:
    described = [*document["components"]["securitySchemes"].values(), *document["tags"], *document["servers"]]
    assert all(each["description"].endswith(".") for each in described)
