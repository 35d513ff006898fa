"""The OpenAPI document: valid, complete, committed, and true of every answer that is given."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from quart import Quart

from conftest import make_settings
from profilesvc.bootstrap import create_app
from profilesvc.contract.errors import CATALOGUE

COMMITTED = Path(__file__).parents[2] / "openapi.json"
SNAKE = re.compile(r"[a-z]+(_[a-z]+)*\Z")


def document_of(app: Quart) -> dict[str, Any]:
    made: dict[str, Any] = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    return made


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of an app that was never started."""
    return document_of(create_app(make_settings(tmp_path_factory.mktemp("openapi"))))


def operations(document: dict[str, Any], under: str = "/api/v1/") -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of the API; those that speak a standard are looked at in test_oauth2_document.py."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path.startswith(under):
                yield f"{method.upper()} {path}", operation


def test_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_is_the_committed_file(document: dict[str, Any]) -> None:
    """`make openapi` writes it anew."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    assert COMMITTED.read_bytes() == orjson.dumps(document, option=option)


def test_is_the_same_each_time(document: dict[str, Any], tmp_path: Path) -> None:
    again = document_of(create_app(make_settings(tmp_path)))
    assert orjson.dumps(again) == orjson.dumps(document)


def test_says_who_may_call_and_with_which_permission(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    kinds = {name: (scheme["type"], scheme["scheme"]) for name, scheme in schemes.items()}
    bearer = ("http", "bearer")
    assert kinds == {"userToken": bearer, "serviceToken": bearer, "client": ("http", "basic")}
    for name, operation in operations(document):
        assert "security" in operation, name
        for requirement in operation["security"]:
            (scheme,) = requirement
            assert scheme in schemes
            assert set(requirement[scheme]) <= {"business.read", "business.write"}


def test_describes_every_operation(document: dict[str, Any]) -> None:
    identifiers = [operation["operationId"] for _, operation in operations(document, "/")]
    assert len(identifiers) == len(set(identifiers))
    for name, operation in operations(document, "/"):
        assert SNAKE.match(operation["operationId"])
        assert operation["summary"].endswith("."), name
        assert len(operation["tags"]) == 1


def test_names_every_parameter_and_whether_it_is_required(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        parameters = operation["parameters"]
        in_path = re.findall(r"{(\w+)}", name)
        assert [p["name"] for p in parameters if p["in"] == "path"] == in_path
        assert len({(p["name"], p["in"]) for p in parameters}) == len(parameters)
        for parameter in parameters:
            assert isinstance(parameter["required"], bool)
            assert parameter["required"] is (parameter["in"] == "path" or parameter["name"] == "locationId")
            assert "default" not in parameter["schema"] or not parameter["required"]


def test_refers_to_schemas_by_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, operation in operations(document):
        contents = [response["content"] for status, response in operation["responses"].items() if status != "304"]
        if "requestBody" in operation:
            assert operation["requestBody"]["required"] is True
            contents.append(operation["requestBody"]["content"])
        for content in contents:
            assert set(content) == {"application/json"}, name
            reference = content["application/json"]["schema"]
            assert set(reference) == {"$ref"}, name
            assert reference["$ref"].removeprefix("#/components/schemas/") in schemas


def test_has_no_schema_that_nobody_uses(document: dict[str, Any]) -> None:
    text = orjson.dumps(document).decode()
    used = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert used == set(document["components"]["schemas"])


def test_gives_an_example_for_every_code_of_every_error_status(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if status == "304":
                assert "content" not in response
                continue
            content = response["content"]["application/json"]
            if int(status) < 400:
                assert content["schema"]["$ref"].endswith("Success"), name
                continue
            assert content["schema"] == {"$ref": "#/components/schemas/Failure"}
            assert content["examples"], (name, status)
            for code, example in content["examples"].items():
                assert CATALOGUE[code].status == int(status)
                assert example["value"]["error"]["code"] == code
                assert example["value"]["status"] == "error"


def test_promises_one_success_and_the_errors_that_follow(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        statuses = set(operation["responses"])
        success = {status for status in statuses if status < "400"} - {"304"}
        is_conditional = any(parameter["name"] == "If-None-Match" for parameter in operation["parameters"])
        assert is_conditional is ("304" in statuses), name
        assert success == ({"201"} if operation["operationId"] in ("create_key", "create_post") else {"200"}), name
        assert {"500", "503"} <= statuses
        if operation["security"]:
            assert {"401", "403"} <= statuses, name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= statuses, name
        if "{locationId}" in name or any(p["name"] == "locationId" for p in operation["parameters"]):
            assert {"400", "404"} <= statuses, name


def test_tells_no_defaults_of_null_and_no_machine(document: dict[str, Any]) -> None:
    text = orjson.dumps(document).decode()
    assert '"default":null' not in text
    for word in (str(COMMITTED.parent), str(Path.home()), "localhost", "127.0.0.1"):
        assert word not in text
