"""Write once what several operations of the OpenAPI document have in common, and write the document as a file."""

import json
from collections import Counter
from collections.abc import Iterable

from profilesvc.contract.json import JsonObject

_WIDTH = 200  # of a line in the file


def share(document: JsonObject) -> None:
    """Replace responses and parameters that occur more than once by references to components.

    A parameter's component has its name, and an error's that of its first example if operations share it. Others are
    called after the first operation that has them.
    """
    operations = [
        each for place in ("paths", "webhooks") for item in document[place].values() for each in item.values()
    ]
    responses = _Components("responses", (each for one in operations for each in one["responses"].values()))
    parameters = _Components("parameters", (each for one in operations for each in one["parameters"]))
    for operation in operations:
        owner = operation["operationId"]
        operation["parameters"] = [
            parameters.shared(each, each["name"], f"{owner}.{each['name']}") for each in operation["parameters"]
        ]
        operation["responses"] = {
            status: responses.shared(each, *_example_names(each), f"{owner}.{status}")
            for status, each in operation["responses"].items()
        }
    document["components"] |= {"responses": responses.by_name, "parameters": parameters.by_name}


class _Components:
    """The components of one kind, by name."""

    def __init__(self, kind: str, parts: Iterable[JsonObject]) -> None:
        self._kind, self._counts = kind, Counter(map(_text, parts))
        self._names: dict[str, str] = {}
        self.by_name: dict[str, JsonObject] = {}

    def shared(self, part: JsonObject, *names: str) -> JsonObject:
        """Return a reference to a component with the first free name, or the part if no other is equal."""
        text = _text(part)
        if self._counts[text] == 1:
            return part
        if text not in self._names:
            self._names[text] = next(name for name in names if name not in self.by_name)
            self.by_name[self._names[text]] = part
        return {"$ref": f"#/components/{self._kind}/{self._names[text]}"}


def _example_names(response: JsonObject) -> list[str]:
    examples = response.get("content", {}).get("application/json", {}).get("examples", {}).values()
    return [example["$ref"].rpartition("/")[2] for example in examples if "$ref" in example][:1]


def _text(part: JsonObject) -> str:
    return json.dumps(part, sort_keys=True)


def text_of(value: object, indent: int = 0) -> str:
    """Return JSON with each object and array on one line if it fits, so that a file is small and changes by lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _WIDTH or not isinstance(value, dict | list):
        return line
    space = " " * (indent + 1)
    if isinstance(value, dict):
        lines = [f"{space}{json.dumps(name)}: {text_of(each, indent + 1)}" for name, each in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(space + text_of(each, indent + 1) for each in value) + "\n" + " " * indent + "]"
