"""The OpenAPI document for tests that look at operations one by one."""

from typing import Any


def inlined(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the shared responses and parameters in place of the references to them."""

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return part
        kind, name = part["$ref"].removeprefix("#/components/").split("/")
        found: dict[str, Any] = document["components"][kind][name]
        return found

    def operation(each: dict[str, Any]) -> dict[str, Any]:
        responses = {status: resolved(response) for status, response in each["responses"].items()}
        return {**each, "parameters": list(map(resolved, each["parameters"])), "responses": responses}

    def path(item: dict[str, Any]) -> dict[str, Any]:
        return {method: operation(each) for method, each in item.items()}

    return document | {
        place: {name: path(item) for name, item in document[place].items()} for place in ("paths", "webhooks")
    }
