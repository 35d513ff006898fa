"""docs/api-contract.md describes every operation, field, error code, permission and limit of the code."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from profilesvc.contract import oauth2
from profilesvc.contract.errors import CATALOGUE, ErrorKind
from profilesvc.domain.permissions import ALL
from profilesvc.limits.settings import LimitSettings
from support.documents import inlined
from support.repository import DOCS, ROOT, sections

PAGE = DOCS / "api-contract.md"
DOCUMENT = inlined(json.loads((ROOT / "openapi.json").read_text("utf-8")))
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if "operationId" in operation
}
# Their fields are the provider's, or a standard's, and are described there.
ELSEWHERE = {
    "LocalPost",
    "Post",
    "Location",
    "ReviewDetail",
    "ReviewReply",
    "ReplyBody",
    "Introspection",
    "JwkSet",
    "ServerMetadata",
}
STANDARD_FORMS = {"issue_oauth_token", "introspect_token", "revoke_token"}


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """The names of a body's own fields, through references and alternatives."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in ELSEWHERE:
            yield from fields(DOCUMENT["components"]["schemas"][name])
        return
    for alternative in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        yield from fields(alternative)
    yield from schema.get("properties", {})


def sent_and_returned(operation: dict[str, Any]) -> set[str]:
    """The query parameters and body fields of an operation, and the fields of its data."""
    names = {found["name"] for found in operation.get("parameters", ()) if found.get("in") == "query"}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        names |= set(fields(content["schema"]))
    for status, response in operation["responses"].items():
        if not status.startswith("2"):
            continue
        for content in response["content"].values():
            schema = content["schema"]
            if "$ref" in schema:
                schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            names |= set(fields(schema.get("properties", {}).get("data", {})))
    return names


@pytest.fixture(scope="module")
def page() -> dict[str, str]:
    return sections(PAGE)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_described_with_its_path_and_callers(page: dict[str, str], name: str) -> None:
    method, path, operation = OPERATIONS[name]
    text = " ".join(page[name].split())
    assert f"`{method} {path}`" in text
    schemes = {scheme: scopes for each in operation["security"] for scheme, scopes in each.items()}
    if path.startswith("/api/"):
        assert ("user token" in text) is ("userToken" in schemes)
        assert ("service token" in text) is ("serviceToken" in schemes)
        assert ("no token" in text) is (not schemes)
        assert set(re.findall(r"`(business\.\w+)`", text)) == set(schemes.get("serviceToken", ()))


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - STANDARD_FORMS))
def test_an_operation_is_described_with_its_fields(page: dict[str, str], name: str) -> None:
    # The parameter that all operations on posts and reviews share is described once, above them.
    named = set(re.findall(r"`([\w.]+)[`:]", page[name])) | {"locationId"}

    missing = sent_and_returned(OPERATIONS[name][2]) - named
    assert not missing, f"name these below `{name}` in docs/api-contract.md: {missing}"


def test_no_operation_is_described_that_does_not_exist(page: dict[str, str]) -> None:
    described = {name for name, text in page.items() if re.match(r"\s*`(GET|POST|PUT|PATCH|DELETE) /", text)}
    assert described == OPERATIONS.keys()


def test_every_error_code_is_described_with_its_status(page: dict[str, str]) -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", page["error-catalogue"], re.MULTILINE))
    assert rows == {kind.code: str(kind.status) for kind in CATALOGUE.values()}


def test_every_oauth_code_is_described(page: dict[str, str]) -> None:
    codes = {kind.code for kind in vars(oauth2).values() if isinstance(kind, ErrorKind) and kind.code.islower()}
    assert codes <= set(re.findall(r"`([a-z_]+)`", page["error-catalogue"]))


def test_every_permission_is_described(page: dict[str, str]) -> None:
    assert re.findall(r"^\| `([\w.]+)` \|", page["permissions"], re.MULTILINE) == [str(name) for name in ALL]


def test_every_rate_limit_is_described_with_its_default(page: dict[str, str]) -> None:
    described = set(re.findall(r"`([a-z-]+)`", page["rate-limits"]))
    buckets = {
        name.replace("_", "-") for name, field in LimitSettings.model_fields.items() if field.annotation not in (bool,)
    }
    assert buckets - {"storage-url"} == described
