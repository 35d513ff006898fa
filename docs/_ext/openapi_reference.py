"""Sphinx directive `openapi-reference`: the committed OpenAPI document as pages of tables."""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if isinstance(schema.get("type"), list):
        return " or ".join(_type({**schema, "type": each}) for each in schema["type"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    return str(schema.get("type", "any"))


def _rules(schema: dict[str, Any]) -> str:
    """Return the type of a parameter with its default and its bounds."""
    rules = [_type(schema)]
    rules += [f"at least {schema['minimum']}"] if "minimum" in schema else []
    rules += [f"at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    rules += [f"default `{schema['default']}`"] if "default" in schema else []
    return "; ".join(rules)


def _security(operation: dict[str, Any]) -> str:
    names = {"userToken": "user token", "serviceToken": "service token", "client": "client id and secret"}
    options = [
        names[scheme] + (f" with `{scopes[0]}`" if scopes else "")
        for option in operation["security"]
        for scheme, scopes in option.items()
        if scheme in names  # clientCredentials is another way to the same service token
    ]
    return " or ".join(options) or "no token"


def _resolved(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return the component that a part refers to, or the part itself."""
    if "$ref" not in part:
        return part
    kind, name = part["$ref"].removeprefix("#/components/").split("/")
    found: dict[str, Any] = document["components"][kind][name]
    return found


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"### {method.upper()} {path}", "", operation["summary"], "", operation.get("description", ""), ""]
    if "Accepts " not in operation.get("description", ""):  # the description of an OAuth endpoint does not say it
        lines += [f"Accepts: {_security(operation)}.", ""]
    parameters = [_resolved(document, each) for each in operation["parameters"]]
    if parameters:
        lines += ["| Parameter | In | Required | Type | Meaning |", "|---|---|---|---|---|"]
        lines += [
            _row(
                f"`{p['name']}`",
                p["in"],
                "yes" if p["required"] else "no",
                _rules(p["schema"]),
                p.get("description", ""),
            )
            for p in parameters
        ]
        lines.append("")
    if "requestBody" in operation:
        ((media_type, body),) = operation["requestBody"]["content"].items()
        form = "" if media_type == "application/json" else f" as `{media_type}`"
        lines += [f"Body: {_type(body['schema'])}{form}", "", *_examples("Example of a request", body)]
    successes, failures = [], ["| Status | Codes |", "|---|---|"]
    for status, response in operation["responses"].items():
        content = _resolved(document, response).get("content", {}).get("application/json", {})  # a 304 has none
        if status >= "400":
            codes = dict.fromkeys(name.partition(".")[0] for name in content.get("examples", {}))
            failures.append(_row(status, ", ".join(map(_code, codes))))
        else:
            successes += [f"Response: {status}, {_type(content['schema']) if content else 'no body'}", ""]
            successes += _examples("Example of a response", content)
    return [*lines, *successes, *(failures if len(failures) > 2 else ()), ""]


def _code(name: str) -> str:
    """Link an error code to its row; the codes of OAuth are lower case."""
    return f"[`{name}`](errors.md#{name.lower()})" if name.isupper() else f"`{name}`"


def _examples(title: str, content: dict[str, Any]) -> list[str]:
    """Return the examples of a body, folded."""
    found = {"": {"value": content["example"]}} if "example" in content else content.get("examples", {})
    lines: list[str] = []
    for example in found.values():
        text = json.dumps(example["value"], indent=2, ensure_ascii=False).splitlines()
        heading = f"{title}: {example['summary']}" if "summary" in example else title
        lines += [f":::{{dropdown}} {heading}", "```json", *text, "```", ":::", ""]
    return lines


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", "", schema.get("description", ""), ""]
    if schema.get("properties"):
        required = schema.get("required", [])
        lines += ["| Field | Type | Required | Meaning |", "|---|---|---|---|"]
        lines += [
            _row(f"`{member}`", _type(value), "yes" if member in required else "no", value.get("description", ""))
            for member, value in schema["properties"].items()
        ]
    return [*lines, ""]


class OpenApiReference(SphinxDirective):
    """`:::{openapi-reference}` writes all operations by noun, then all schemas."""

    def run(self) -> list[nodes.Node]:
        """Parse Markdown made from `openapi.json` at the root of the sources."""
        path = Path(self.env.srcdir) / "openapi.json"
        self.env.note_dependency(str(path))
        document = json.loads(path.read_text("utf-8"))
        lines: list[str] = []
        by_tag: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}  # in the order for readers
        for url, methods in document["paths"].items():
            for method, operation in methods.items():
                by_tag[operation["tags"][0]].extend(_operation(document, method, url, operation))
        for tag, operations in by_tag.items():
            lines += [f"## {tag}", "", *operations]
        lines += ["## Schemas", ""]
        for name, schema in document["components"]["schemas"].items():
            lines += _schema(name, schema)
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(StringList(lines, str(path)), 0, section, match_titles=True)
        return section.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("openapi-reference", OpenApiReference)
    return {"parallel_read_safe": True}
