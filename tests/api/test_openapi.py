"""The OpenAPI document: valid, complete, committed, and true of every answer that is given."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from quart import Quart

from conftest import make_settings
from profilesvc.api.openapi.sharing import text_of
from profilesvc.bootstrap import create_app
from profilesvc.contract.errors import CATALOGUE
from profilesvc.contract.events import EVENT_TYPES
from support.documents import inlined

COMMITTED = Path(__file__).parents[2] / "openapi.json"
SNAKE = re.compile(r"[a-z]+(_[a-z]+)*\Z")
CREATING = ("create_key", "create_post", "create_webhook", "create_alert")


def document_of(app: Quart) -> dict[str, Any]:
    made: dict[str, Any] = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of an app that was never started."""
    return document_of(create_app(make_settings(tmp_path_factory.mktemp("openapi"))))


@pytest.fixture(scope="module")
def document(served: dict[str, Any]) -> dict[str, Any]:
    return inlined(served)


def resolved(document: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """An example, which may be a reference."""
    name = example.get("$ref", "").removeprefix("#/components/examples/")
    found: dict[str, Any] = document["components"]["examples"][name] if name else example
    return found


def operations(document: dict[str, Any], under: str = "/api/v1/") -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of the API; those that speak a standard are looked at in test_oauth2_document.py."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path.startswith(under):
                yield f"{method.upper()} {path}", operation


def test_is_valid_openapi_3_1(served: dict[str, Any]) -> None:
    assert served["openapi"].startswith("3.1")
    assert [error.message for error in OpenAPIV31SpecValidator(served).iter_errors()] == []


def test_is_the_committed_file(served: dict[str, Any]) -> None:
    is_current = COMMITTED.read_text("utf-8") == text_of(served) + "\n"
    assert is_current, "openapi.json is not what the service serves: run `make openapi` and read the difference"


def test_is_the_same_each_time(served: dict[str, Any], tmp_path: Path) -> None:
    again = document_of(create_app(make_settings(tmp_path)))
    assert orjson.dumps(again) == orjson.dumps(served)


@pytest.mark.parametrize("kind", ["responses", "parameters"])
def test_equal_parts_of_operations_are_written_once(served: dict[str, Any], kind: str) -> None:
    text = orjson.dumps(served).decode()
    for name in served["components"][kind]:
        assert text.count(f'"#/components/{kind}/{name}"') > 1, f"{name} is a component of one operation"
    own = [
        orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
        for place in ("paths", "webhooks")
        for item in served[place].values()
        for operation in item.values()
        for part in (operation[kind].values() if kind == "responses" else operation[kind])
        if "$ref" not in part
    ]
    assert own
    assert len(own) == len(set(own))


# Without a cursor the first page is returned; without `limit` all keys are.
WITHOUT_DEFAULT = {
    "updateMask",
    "before",
    "after",
    "types",
    "client_id",
    "pageToken",
    "GET /api/v1/developer/credentials limit",
}


def test_an_optional_query_parameter_has_its_default(document: dict[str, Any]) -> None:
    queries = [(name, each) for name, operation in operations(document) for each in operation["parameters"]]
    optional = {
        f"{name} {each['name']}": each for name, each in queries if each["in"] == "query" and not each["required"]
    }
    without = {name for name, each in optional.items() if "default" not in each["schema"]}
    assert {name for name in without if not {name, name.split()[-1]} & WITHOUT_DEFAULT} == set()
    for name, each in optional.items():
        if "integer" in each["schema"]["type"]:
            assert each["schema"]["minimum"] == 1, name
            assert name.endswith(" page") or "a larger value is reduced to" in each["description"], name


def test_a_generated_package_has_a_short_name(document: dict[str, Any]) -> None:
    """openapi-python-client calls it `profilesvc_client`."""
    assert document["info"]["title"] == "profilesvc"


def test_names_the_tokens_and_permissions_of_each_operation(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    kinds = {name: (scheme["type"], scheme.get("scheme")) for name, scheme in schemes.items()}
    bearer = ("http", "bearer")
    assert kinds == {
        "userToken": bearer,
        "serviceToken": bearer,
        "clientCredentials": ("oauth2", None),
        "client": ("http", "basic"),
    }
    for name, operation in operations(document):
        assert "security" in operation, name
        for requirement in operation["security"]:
            (scheme,) = requirement
            assert scheme in schemes
            assert set(requirement[scheme]) <= {"business.read", "business.write"}


def test_the_document_describes_every_operation(document: dict[str, Any]) -> None:
    identifiers = [operation["operationId"] for _, operation in operations(document, "/")]
    assert len(identifiers) == len(set(identifiers))
    for name, operation in operations(document, "/"):
        assert SNAKE.match(operation["operationId"])
        assert 2 <= len(operation["summary"].split()) <= 5, name
        assert not operation["summary"].endswith("."), name
        assert operation["description"].endswith("."), name
        assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}
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


def test_has_no_unused_schema(document: dict[str, Any]) -> None:
    text = orjson.dumps(document).decode()
    used = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert used == set(document["components"]["schemas"])


def test_has_an_example_of_every_code_of_every_error_status(document: dict[str, Any]) -> None:
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
            for label, example in content["examples"].items():
                code = label.partition(".")[0]
                assert CATALOGUE[code].status == int(status)
                assert code in content["examples"], "the first example of a code has its name"
                assert resolved(document, example)["value"]["error"]["code"] == code


def test_documents_one_success_and_all_errors(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        statuses = set(operation["responses"])
        success = {status for status in statuses if status < "400"} - {"304"}
        is_conditional = any(parameter["name"] == "If-None-Match" for parameter in operation["parameters"])
        assert is_conditional is ("304" in statuses), name
        assert success == ({"201"} if operation["operationId"] in CREATING else {"200"}), name
        assert ("Location" in operation["responses"][min(success)]["headers"]) is (success == {"201"}), name
        assert {"500", "503"} <= statuses
        if operation["security"]:
            assert {"401", "403"} <= statuses, name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= statuses, name
        if "{locationId}" in name or any(p["name"] == "locationId" for p in operation["parameters"]):
            assert {"400", "404"} <= statuses, name


def test_has_no_null_defaults_and_no_name_of_a_machine(document: dict[str, Any]) -> None:
    text = orjson.dumps(document).decode()
    assert '"default":null' not in text
    for word in (str(COMMITTED.parent), str(Path.home()), "localhost", "127.0.0.1"):
        assert word not in text


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema object in a part of the document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(inner)


# Clients that were generated without the rules below failed; tests/clients runs five of them.
def test_a_response_has_one_schema_and_no_alternatives(document: dict[str, Any]) -> None:
    """Of alternatives a client tries the first, and loses what that one does not know."""
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("Success"):
            assert set(schema["properties"]["data"]) == {"$ref", "description"}, name
        for node in nodes(schema):
            alternatives = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
            assert len(alternatives) <= 1, name
            assert name == "TokenRequest" or "oneOf" not in node


def test_schemas_have_no_const_and_no_discriminator(document: dict[str, Any]) -> None:
    for node in nodes(document["components"]["schemas"]):
        assert not {"const", "discriminator"} & set(node)
        assert node.get("type") != "boolean" or "enum" not in node


def test_schemas_have_names_in_camel_case_and_no_titles(document: dict[str, Any]) -> None:
    for name in document["components"]["schemas"]:
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", name), name
    for node in nodes(document["components"]["schemas"]):
        assert not isinstance(node.get("title"), str)  # a generator would name a type after it


def test_fields_that_are_always_sent_are_required(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, field in [
        ("HeartbeatReceived", "received"),
        ("PostDeleted", "deleted"),
        ("KeyRevoked", "revoked"),
        ("Failure", "status"),
        ("Token", "token_type"),
        ("OAuthToken", "token_type"),
        ("CredentialsChecked", "valid"),
        ("SyncResult", "fieldsUpdated"),
        ("ConnectionStatus", "reason_hint"),
    ]:
        assert field in schemas[name]["required"], name
        assert "default" not in schemas[name]["properties"][field], name
    for name, field in [("Token", "refresh_token"), ("SyncResult", "syncId"), ("ConnectionStatus", "history")]:
        assert field in schemas[name]["properties"]
        assert field not in schemas[name]["required"]


def test_error_codes_are_an_enum(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["ErrorBody"]["properties"]["code"]["enum"] == list(CATALOGUE)


def test_every_operation_documents_the_errors_of_the_server(document: dict[str, Any]) -> None:
    for name, operation in operations(document, "/"):
        assert {"405", "431"} <= set(operation["responses"]), name
        assert "Allow" in operation["responses"]["405"]["headers"], name
        assert ("408" in operation["responses"]) is ("requestBody" in operation), name
        for status in {"401", "403"} & set(operation["responses"]):
            challenged = "WWW-Authenticate" in operation["responses"][status].get("headers", {})
            public = not operation["security"] or (status == "403" and "/api/" not in name)
            assert challenged is not public, (name, status)


@pytest.mark.parametrize(
    ("schema", "field"),
    [("KeyCreate", "name"), ("KeyCreate", "primary_domain"), ("ReplyBody", "comment"), ("LocalPostEvent", "title")],
)
def test_the_document_marks_strings_that_must_not_be_empty(document: dict[str, Any], schema: str, field: str) -> None:
    described = document["components"]["schemas"][schema]["properties"][field]
    assert described.get("minLength") == 1


def test_the_document_marks_bodies_that_must_not_be_empty(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name, schema in schemas.items() if schema.get("minProperties") == 1] == [
        "KeyChange",
        "LocalPost",
        "Location",
    ]


def test_each_type_of_event_is_a_webhook_with_an_example(document: dict[str, Any]) -> None:
    assert list(document["webhooks"]) == list(EVENT_TYPES)
    for kind, methods in document["webhooks"].items():
        content = methods["post"]["requestBody"]["content"]["application/json"]
        schema = {**content["schema"], "components": document["components"]}
        errors = [error.message for error in Draft202012Validator(schema).iter_errors(content["example"])]
        assert errors == [], "the examples of events are in src/profilesvc/api/openapi/webhooks.py"
        assert content["example"]["type"] == kind
