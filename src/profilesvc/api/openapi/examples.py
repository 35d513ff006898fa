"""The examples of the OpenAPI document, which `make openapi` records, read only to build the document."""

import json
from pathlib import Path

from profilesvc.api.endpoint import Endpoint
from profilesvc.api.oauth_endpoint import OAuthEndpoint
from profilesvc.contract.errors import ErrorKind
from profilesvc.contract.json import JsonObject
from profilesvc.contract.oauth2 import error_members

_RECORDED = Path(__file__).with_name("examples.json")
Named = dict[str, JsonObject]


class Examples:
    """The recorded examples. `components` are those that the operations built so far refer to."""

    def __init__(self) -> None:
        recorded = json.loads(_RECORDED.read_text("utf-8"))
        self._operations, self._shared = recorded["operations"], recorded["shared"]
        self.components: Named = {}

    def request(self, operation: str) -> dict[str, Named]:
        return {"examples": self._recorded(operation)["request"]}

    def success(self, operation: str, status: int) -> dict[str, Named]:
        return {"examples": self._recorded(operation)["responses"].get(str(status), {})}

    def failures(self, declared: Endpoint | OAuthEndpoint, kinds: list[ErrorKind]) -> dict[str, Named]:
        """Return the `examples` of errors of one status: at least one of each code, which is its name or the start."""
        own = self._recorded(declared.handler.__name__)["responses"].get(str(kinds[0].status), {})
        examples: Named = {}
        for kind in kinds:
            recorded = {name: example for name, example in own.items() if _code(name) == kind.code}
            examples |= recorded or self._references(declared, kind)
        return {"examples": examples}

    def _recorded(self, operation: str) -> JsonObject:
        """Return the examples of an operation. A new one has none, because `make openapi` reads this document."""
        recorded: JsonObject = self._operations.get(operation, {"request": {}, "responses": {}})
        return recorded

    def _references(self, declared: Endpoint | OAuthEndpoint, kind: ErrorKind) -> Named:
        """Return references to examples that several operations share."""
        for group in _groups(declared):
            recorded: Named = self._shared.get(group, {}).get(str(kind.status), {})
            shared = {name: example for name, example in recorded.items() if _code(name) == kind.code}
            if shared:
                return {
                    name: self._reference(f"{group}.{kind.status}.{name}", example) for name, example in shared.items()
                }
        # A new error is not recorded yet, because `make openapi` reads this document. A test rejects what stays so.
        value: JsonObject = {"status": "error", "error": {"code": kind.code, "message": kind.message}}
        if isinstance(declared, OAuthEndpoint):
            value = error_members(kind, kind.message, {})
        return {kind.code: self._reference(f"{kind.status}.{kind.code}", {"summary": kind.message, "value": value})}

    def _reference(self, name: str, example: JsonObject) -> dict[str, str]:
        self.components[name] = example
        return {"$ref": f"#/components/examples/{name}"}


def _code(name: str) -> str:
    return name.partition(".")[0]


def _groups(declared: Endpoint | OAuthEndpoint) -> tuple[str, ...]:
    """Return the groups of shared errors that an operation can return, the most specific first."""
    if isinstance(declared, OAuthEndpoint):
        return ("oauth",)
    if declared.access.public:
        return ("all",)
    return ("key" if declared.access.service else "user", "all")
