"""The examples of requests in the OpenAPI document: a reader can send each of them, today and in some years."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService, AsUser
from profilesvc.domain.time import FrozenClock
from support.api import ALICE
from support.documents import inlined
from support.provider.drive import drift

DOCUMENT = inlined(json.loads((Path(__file__).parents[2] / "openapi.json").read_text("utf-8")))
Sent = tuple[str, str, str, dict[str, Any]]  # operation, method, path with its query, the body


def _value(parameter: dict[str, Any]) -> str:
    return str(parameter.get("example", parameter["schema"].get("examples", [""])[0]))


def _sent() -> list[Sent]:
    """The requests with a JSON body, once for each of their examples."""
    found = []
    for template, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            parameters = [one for one in operation.get("parameters", []) if one.get("required")]
            path = template
            for one in parameters:
                path = path.replace(f"{{{one['name']}}}", _value(one))
            query = {one["name"]: _value(one) for one in parameters if one["in"] == "query"}
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for example in content.get("examples", {}).values():
                found.append((operation["operationId"], method, str(httpx.URL(path, params=query)), example["value"]))
    return found


@pytest.mark.parametrize("years", [0, 1, 5])
@ON_ONE_DATABASE
async def test_every_example_of_a_request_is_accepted_as_valid(
    as_user: AsUser, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock, years: int
) -> None:
    """A conflict, a missing thing and a wrong secret are no fault of an example."""
    clock.advance(days=365 * years)
    user, site = await as_user(ALICE), await as_service()
    requests = _sent()
    assert len(requests) > 30
    for operation, method, path, body in requests:
        theirs = {"title": operation, "websiteUri": f"https://harbour.example/{operation}"}
        await drift(emulator, google_updated={"locations/111": theirs})
        answer = await user.request(method, path, json=body)
        if answer.status_code == 403:  # only for sites
            answer = await site.http.request(method, path, json=body)
        assert answer.status_code != 400, (operation, body, answer.text)
        assert answer.status_code < 500, (operation, body, answer.text)
