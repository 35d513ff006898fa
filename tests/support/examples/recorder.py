"""Record requests and responses as examples of the OpenAPI document. Secrets and tokens are shortened."""

import http.client
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.lab.lab import Lab
from profilesvc.lab.views.view import hide_in

_ADDRESS = "192.0.2.44"  # of the caller, from a range for documentation

Named = dict[str, JsonObject]  # by name: an OpenAPI example, so `summary` and `value`


@dataclass
class Examples:
    """The recorded requests and responses by operation, and errors that belong to no operation by group."""

    lab: Lab
    operations: dict[str, JsonObject] = field(default_factory=dict)
    shared: dict[str, dict[str, Named]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        paths = self.lab.anonymous.get("/openapi.json").json()["paths"]
        self._routes = {
            operation["operationId"]: (method.upper(), path, set(operation.get("requestBody", {}).get("content", ())))
            for path, methods in paths.items()
            for method, operation in methods.items()
        }

    def ok(self, operation: str, summary: str, caller: httpx.Client, body: Any = None, **values: Any) -> Any:
        """Call an operation and record its request and its response. Return the `data`, or the body without envelope.

        `values` are those of its path and its query.
        """
        response = self.call(operation, caller, body, **values)
        assert response.is_success, f"{operation}: {response.text}"
        recorded = self.operations.setdefault(operation, {"request": {}, "responses": {}})
        name = _name(summary)
        if body is not None:
            recorded["request"][name] = _example(summary, body)
        successes = recorded["responses"].setdefault(str(response.status_code), {})
        assert name not in successes, f"{operation} has two examples called {name}"
        successes[name] = _example(summary, response.json())
        return response.json().get("data", response.json())

    def fails(
        self,
        operation: str,
        summary: str,
        caller: httpx.Client,
        body: object = None,
        *,
        group: str | None = None,
        headers: dict[str, str] | None = None,
        **values: object,
    ) -> None:
        """Call an operation and record its error, for this operation or for all operations of a group."""
        response = self.call(operation, caller, body, headers, **values)
        assert response.is_error, f"{operation}: {response.text}"
        self.failed(operation, summary, response, group)

    def failed(self, operation: str, summary: str, response: httpx.Response, group: str | None = None) -> None:
        """Record an error. The first of a code has the code as its name, the others also words of their summary."""
        error = response.json()["error"]
        code = error["code"] if isinstance(error, dict) else error
        if group is None:
            recorded = self.operations.setdefault(operation, {"request": {}, "responses": {}})
            examples = recorded["responses"].setdefault(str(response.status_code), {})
        else:
            examples = self.shared.setdefault(group, {}).setdefault(str(response.status_code), {})
        name = code if code not in examples else f"{code}.{_name(summary)}"
        assert name not in examples, f"{operation} has two examples called {name}"
        examples[name] = _example(summary, response.json())

    def call(
        self,
        operation: str,
        caller: httpx.Client,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **values: Any,
    ) -> httpx.Response:
        """Call an operation and record nothing."""
        method, path, media_types = self._routes[operation]
        for name in re.findall(r"{(\w+)}", path):
            path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
        sent: JsonObject = {} if body is None else {"json": body}
        if "application/x-www-form-urlencoded" in media_types:
            sent = {"data": body}
        request_id = f"req-{len(self.lab.calls()):06}"
        identified = {"X-Request-Id": request_id, "X-Forwarded-For": _ADDRESS, **(headers or {})}
        return caller.request(method, path, params=values, headers=identified, **sent)


def never_sent(url: str, path: str, media_type: str) -> httpx.Response:
    """Announce a body, send none, and return the response."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", media_type)
    connection.putheader("Content-Length", "2")
    connection.endheaders()
    response = connection.getresponse()
    return httpx.Response(response.status, content=response.read())


def _name(summary: str) -> str:
    """Return a name for an example, such as `a_standard_post`."""
    return "_".join(re.findall(r"[a-z0-9]+", summary.lower()))


def _example(summary: str, value: object) -> JsonObject:
    return {"summary": summary, "value": json.loads(hide_in(json.dumps(value, ensure_ascii=False)))}
