"""The standard endpoints in the OpenAPI document: in their own terms, and every promised status is given."""

from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from quart import Quart

from conftest import AsService, Change, make_settings
from profilesvc.api import request as body
from profilesvc.api.failures import STANDARD_PATHS
from profilesvc.bootstrap import create_app
from support.api import TOO_MANY_HEADERS, Site, unfinished
from support.documents import inlined
from support.identity.oauth import FORM, GRANT, INTROSPECT, JWKS, METADATA, REVOKE, TOKEN, assert_oauth_error, basic
from support.parts import AWAY, NO_ROOM, Broken

Promise = tuple[str, str, str]  # operation, status, word of the error or ""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Quart:
    """An app that is never started."""
    return create_app(make_settings(tmp_path_factory.mktemp("document")))


@pytest.fixture(scope="module")
def document(built: Quart) -> dict[str, Any]:
    return inlined(built.extensions["QUART_SCHEMA"].openapi_provider.schema())


def standard(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The operations that speak a standard, by `METHOD /path`."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        if path.startswith(STANDARD_PATHS)
        for method, operation in methods.items()
    }


def test_documents_the_served_operations(built: Quart, document: dict[str, Any]) -> None:
    served = {
        f"{method} {rule.rule}"
        for rule in built.url_map.iter_rules()
        if rule.rule.startswith(STANDARD_PATHS)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert set(standard(document)) == served
    assert {f"POST {path}" for path in (TOKEN, INTROSPECT, REVOKE)} <= served


def test_names_forms_responses_and_errors(document: dict[str, Any]) -> None:
    for name, operation in standard(document).items():
        assert "An addition of this service" in operation["summary"] + operation.get("description", ""), name
        assert [one["name"] for one in operation["parameters"]] == ["If-None-Match"] * ("304" in operation["responses"])
        if name.startswith("POST"):
            assert list(operation["requestBody"]["content"]) == [FORM["Content-Type"]]
            assert {"client": []} in operation["security"]
        for status, response in operation["responses"].items():
            if status == "304":
                continue
            content = response["content"]["application/json"]
            reference = content["schema"]["$ref"].removeprefix("#/components/schemas/")
            assert reference in document["components"]["schemas"]
            assert (reference == "OAuthError") is (status != "200")
            for label, example in content.get("examples", {}).items():
                name = example.get("$ref", "").removeprefix("#/components/examples/")
                value = (document["components"]["examples"][name] if name else example)["value"]
                assert status == "200" or value["error"] == label.partition(".")[0]


class Record:
    """Checks each answer against the document, and remembers what was seen."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document, self.seen = document, set[Promise]()

    def promised(self) -> set[Promise]:
        return {
            (name, status, "" if status == "200" else label.partition(".")[0])
            for name, operation in standard(self._document).items()
            for status, response in operation["responses"].items()
            if status != "304"  # which test_delivery.py is about
            for label in response["content"]["application/json"]["examples"]
        }

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        method = response.request.extensions.get("instead_of", response.request.method)
        name = f"{method} {response.request.url.path}"
        promised = standard(self._document)[name]["responses"][str(response.status_code)]
        schema = {**promised["content"]["application/json"]["schema"], "components": self._document["components"]}
        errors = [error.message for error in Draft202012Validator(schema).iter_errors(response.json())]
        assert errors == [], name
        self.seen.add((name, str(response.status_code), response.json().get("error", "")))


async def refusals_of_what_arrives(http: httpx.AsyncClient) -> None:
    for path, method in ((METADATA, "GET"), (JWKS, "GET"), (TOKEN, "POST"), (INTROSPECT, "POST"), (REVOKE, "POST")):
        await http.request("PUT", path, extensions={"instead_of": method})
    for path in (METADATA, JWKS):
        await http.get(path, headers=TOO_MANY_HEADERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "GRACE_SECONDS", 0.05)
        for path in (TOKEN, INTROSPECT, REVOKE):
            await http.post(path, headers=TOO_MANY_HEADERS)
            await http.post(path, content=unfinished(), headers=FORM)


async def refusals(http: httpx.AsyncClient, plugin: Site) -> None:
    headers = basic(plugin)
    refresh = {"grant_type": "refresh_token", "refresh_token": "x"}
    for form in (refresh, {**GRANT, "scope": "x"}, {"grant_type": "x"}):
        await http.post(TOKEN, data=form, headers=headers)
    for path in (TOKEN, INTROSPECT, REVOKE):
        form = {**GRANT, "token": "x"}
        await http.post(path, data=form)
        elsewhere = await http.post(path, data=form, headers={**headers, "Origin": "https://elsewhere.test"})
        assert_oauth_error(elsewhere, 403, "access_denied")
        await http.post(path, data={"x": "x"}, headers=headers)
        await http.post(path, content=b"x" * 70_000, headers={**FORM, **headers})
        await http.post(path, data=form, headers={**headers, "Content-Encoding": "gzip"})
        if path != TOKEN:
            await http.post(path, data={"token": "x"}, headers={"Authorization": "Bearer x"})


async def test_every_documented_status_occurs_and_fits_its_schema(
    change: Change,
    http: httpx.AsyncClient,
    plugin: Site,
    as_service: AsService,
    document: dict[str, Any],
) -> None:
    record = Record(document)
    bound = await as_service(primary_domain="example.com")
    http.event_hooks["response"].append(record)
    form = {**GRANT, "token": plugin.tokens["access_token"]}
    await refusals(http, bound)
    await refusals_of_what_arrives(http)
    failing: list[dict[str, Any]] = [{"database": AWAY}, {"storage": Broken()}]
    for status, word, part in zip((503, 500), ("temporarily_unavailable", "server_error"), failing, strict=True):
        change(**part)
        for path in (TOKEN, INTROSPECT, REVOKE):
            response = await http.post(path, data=form, headers=basic(plugin))
            assert assert_oauth_error(response, status, word) == {}
            assert ("retry-after" in response.headers) is (status == 503)
            assert "private" not in response.text
    change(limits=NO_ROOM)
    for path in (TOKEN, INTROSPECT, REVOKE):
        limited = await http.post(path, data=form, headers=basic(plugin))
        assert assert_oauth_error(limited, 429, "temporarily_unavailable") == {}
        assert limited.headers["Retry-After"] == "60"
        assert limited.headers["RateLimit"] == '"tokens-per-address";r=0;t=60'
    change()
    for path in (METADATA, JWKS):
        assert (await http.get(path)).status_code == 200
    for path in (TOKEN, INTROSPECT, REVOKE):
        assert (await http.post(path, data=form, headers=basic(plugin))).status_code == 200
    assert record.seen == record.promised()
