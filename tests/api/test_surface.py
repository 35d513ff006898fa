"""The documented operations, one row each, as the OpenAPI document describes them."""

import re
from typing import Any

import pytest

from conftest import make_settings
from profilesvc.bootstrap import create_app
from support.documents import inlined

Security = list[dict[str, list[str]]]
USER: Security = [{"userToken": []}]
KEY: Security = [{"serviceToken": []}, {"clientCredentials": []}]
READ: Security = [*USER, {"serviceToken": ["business.read"]}, {"clientCredentials": ["business.read"]}]
WRITE: Security = [*USER, {"serviceToken": ["business.write"]}, {"clientCredentials": ["business.write"]}]
LOCATION = "/api/v1/external-business/locations/{locationId}"

Operation = tuple[str, Security, set[str], str, set[str]]
# (documented operation, security, parameters, success, codes it names)
OPERATIONS: list[Operation] = [
    ("POST /api/v1/developer/credentials", USER, set(), "201", {"NOT_FOUND", "CONFLICT"}),
    ("GET /api/v1/developer/credentials", USER, {"include_revoked", "limit", "before"}, "200", set()),
    ("DELETE /api/v1/developer/credentials/{client_id}", USER, {"client_id!"}, "200", {"NOT_FOUND"}),
    ("GET /api/v1/api-keys/{client_id}/status", USER, {"client_id!", "history"}, "200", {"NOT_FOUND"}),
    ("POST /api/v1/api-keys/heartbeat", KEY, set(), "200", set()),
    (
        "POST /api/v1/auth/validate-service-credentials",
        [],
        set(),
        "200",
        {"VALIDATION_ERROR", "AUTH_INSUFFICIENT_PERMISSIONS"},
    ),
    ("POST /api/v1/auth/token", [], set(), "200", {"AUTH_INVALID_TOKEN", "AUTH_INSUFFICIENT_PERMISSIONS"}),
    ("GET /api/v1/posts", READ, {"locationId!", "pageSize", "pageToken"}, "200", {"PROVIDER_API_ERROR"}),
    (
        "POST /api/v1/posts",
        WRITE,
        {"locationId!", "X-Idempotency-Key"},
        "201",
        {"QUOTA_EXCEEDED", "PROVIDER_API_ERROR", "VALIDATION_ERROR", "PLAN_RESTRICTION"},
    ),
    (
        "PATCH /api/v1/posts/{postId}",
        WRITE,
        {"postId!", "locationId!"},
        "200",
        {"PROVIDER_API_ERROR", "VALIDATION_ERROR", "PLAN_RESTRICTION", "NOT_FOUND"},
    ),
    ("DELETE /api/v1/posts/{postId}", WRITE, {"postId!", "locationId!"}, "200", {"PROVIDER_API_ERROR", "NOT_FOUND"}),
    ("GET /api/v1/external-business/locations", READ, {"type", "page", "limit"}, "200", {"VALIDATION_ERROR"}),
    (f"GET {LOCATION}", READ, {"locationId!"}, "200", {"NOT_FOUND"}),
    (f"PATCH {LOCATION}/sync", WRITE, {"locationId!"}, "200", {"LOCATION_NOT_VERIFIED", "PLAN_RESTRICTION"}),
    (f"POST {LOCATION}/refresh-verification", WRITE, {"locationId!"}, "200", {"PROVIDER_API_ERROR"}),
    ("GET /api/v1/sync/comparison/{locationId}", READ, {"locationId!"}, "200", {"PROVIDER_API_ERROR"}),
    (
        "POST /api/v1/sync/{locationId}",
        WRITE,
        {"locationId!", "validateOnly", "updateMask", "X-Idempotency-Key"},
        "200",
        {"LOCATION_NOT_VERIFIED", "SYNC_DISABLED", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED"},
    ),
    ("GET /api/v1/sync/history/{locationId}", READ, {"locationId!", "page", "limit"}, "200", {"NOT_FOUND"}),
]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app = create_app(make_settings(tmp_path_factory.mktemp("surface")))
    return inlined(app.extensions["QUART_SCHEMA"].openapi_provider.schema())


@pytest.mark.parametrize("row", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_the_operation_is_there_as_the_contract_has_it(document: dict[str, Any], row: Operation) -> None:
    name, security, parameters, success, codes = row
    method, path = name.split(" ")
    operation = document["paths"][path][method.lower()]
    assert operation["security"] == security
    asked = {p["name"] + "!" * p["required"] for p in operation["parameters"]}
    assert asked - {"If-None-Match"} == parameters  # that one is ours, like the answers to it
    assert success in operation["responses"]
    contents = [
        response["content"]["application/json"] for response in operation["responses"].values() if "content" in response
    ]
    assert codes <= {code for content in contents for code in content.get("examples", {})}


def test_there_are_eighteen_documented_operations_and_additions(document: dict[str, Any]) -> None:
    assert len(OPERATIONS) == 18
    served = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    ours = served - {row[0] for row in OPERATIONS}
    assert ours >= {"GET /api/v1/businesses"}
    for name in ours:
        method, path = name.split(" ")
        operation = document["paths"][path][method.lower()]
        assert re.search("addition", operation["summary"] + operation.get("description", "")), name
