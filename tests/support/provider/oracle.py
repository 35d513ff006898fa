"""The provider's schemas as a judge of bodies: the shipped v1 documents, and a v4 one built from our facts."""

import json
import pkgutil
import re
from functools import cache, partial
from typing import Any

from profilesvc.fixtures import fixture_path

Document = dict[str, Any]
INFORMATION, VERIFICATIONS, ACCOUNTS, NOTIFICATIONS = (
    f"mybusiness{name}" for name in ("businessinformation", "verifications", "accountmanagement", "notifications")
)
KINDS: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z"

ACCOUNT = "accounts/[^/]+"
LOCATION = f"{ACCOUNT}/locations/[^/]+"
POST, REVIEW = f"{LOCATION}/localPosts/[^/]+", f"{LOCATION}/reviews/[^/]+"
PAGE = {"pageSize": "integer", "pageToken": "string"}
# method: verb, path, pattern of the name in it, query, request, response
V4_METHODS: dict[str, tuple[str, str, str, Document, str, str]] = {
    "localPosts.create": ("POST", "v4/{+parent}/localPosts", LOCATION, {}, "LocalPost", "LocalPost"),
    "localPosts.list": ("GET", "v4/{+parent}/localPosts", LOCATION, PAGE, "", "ListLocalPostsResponse"),
    "localPosts.get": ("GET", "v4/{+name}", POST, {}, "", "LocalPost"),
    "localPosts.patch": ("PATCH", "v4/{+name}", POST, {"updateMask": "string"}, "LocalPost", "LocalPost"),
    "localPosts.delete": ("DELETE", "v4/{+name}", POST, {}, "", "Empty"),
    "reviews.list": ("GET", "v4/{+parent}/reviews", LOCATION, {**PAGE, "orderBy": "string"}, "", "ListReviewsResponse"),
    "reviews.get": ("GET", "v4/{+name}", REVIEW, {}, "", "Review"),
    "reviews.updateReply": ("PUT", "v4/{+name}/reply", REVIEW, {}, "ReviewReply", "ReviewReply"),
    "reviews.deleteReply": ("DELETE", "v4/{+name}/reply", REVIEW, {}, "", "Empty"),
    "batchGetReviews": (
        "POST",
        "v4/{+name}/locations:batchGetReviews",
        ACCOUNT,
        {},
        "BatchGetReviewsRequest",
        "BatchGetReviewsResponse",
    ),
}


@cache
def shipped(api: str) -> Document:
    """A document inside google-api-python-client."""
    document = pkgutil.get_data("googleapiclient.discovery_cache", f"documents/{api}.v1.json")
    assert document is not None
    loaded: Document = json.loads(document)
    return loaded


@cache
def v4_document() -> Document:
    """A discovery document of the v4 methods that are used; the package has none."""
    resources: Document = {"localPosts": {"methods": {}}, "reviews": {"methods": {}}}
    own: Document = {}
    for name, facts in V4_METHODS.items():
        resource, _, verb = name.rpartition(".")
        (resources[resource]["methods"] if resource else own)[verb] = _method(name, *facts)
    return {
        "kind": "discovery#restDescription",
        "discoveryVersion": "v1",
        "id": "mybusiness:v4",
        "name": "mybusiness",
        "version": "v4",
        "title": "v4 subset",
        "protocol": "rest",
        "rootUrl": "https://mybusiness.googleapis.com/",
        "servicePath": "",
        "batchPath": "batch",
        "parameters": {"alt": {"type": "string", "location": "query"}},
        "schemas": _v4_schemas(),
        "resources": {"accounts": {"resources": {"locations": {"methods": own, "resources": resources}}}},
    }


def _method(
    name: str, verb: str, path: str, pattern: str, query: Document, request: str, response: str
) -> Document:  # one row of the table
    (key,) = re.findall(r"\{\+(\w+)\}", path)
    parameters: Document = {key: {"type": "string", "required": True, "location": "path", "pattern": f"^{pattern}$"}}
    parameters |= {name: {"type": kind, "location": "query"} for name, kind in query.items()}
    method = {
        "id": f"mybusiness.accounts.locations.{name}",
        "httpMethod": verb,
        "path": path,
        "flatPath": path,
        "parameters": parameters,
        "parameterOrder": [key],
        "response": {"$ref": response},
        "scopes": ["https://www.googleapis.com/auth/business.manage"],
    }
    return {**method, "request": {"$ref": request}} if request else method


def _v4_schemas() -> Document:
    facts = json.loads(fixture_path("provider_v4.json").read_text("utf-8"))

    def schema(text: str) -> Document:
        word, _, out = text.partition(" ")
        if word.startswith("["):
            found: Document = {"type": "array", "items": schema(word[1:-1])}
        elif word in facts["enums"]:
            found = {"type": "string", "enum": facts["enums"][word]}
        elif word in ("time", "int64"):
            found = {"type": "string", "format": {"time": "google-datetime"}.get(word, word)}
        else:
            found = {"type": word} if word in KINDS else {"$ref": word}
        return {**found, "readOnly": True} if out else found

    named = {
        name: {member: schema(text) for member, text in members.items()} for name, members in facts["messages"].items()
    }
    posts = {"localPosts": schema("[LocalPost]"), "nextPageToken": {"type": "string"}}
    named |= {"Empty": {}, "ListLocalPostsResponse": posts}
    made = {name: {"id": name, "type": "object", "properties": members} for name, members in named.items()}
    return made | {name: shipped(INFORMATION)["schemas"][name] for name in ("Date", "TimeOfDay")}


def violations(document: Document, schema: Document, value: Any, *, sent: bool = False, at: str = "$") -> list[str]:
    """The places where a body differs from its schema; `sent` also rejects output-only fields."""
    if "$ref" in schema:
        return violations(document, document["schemas"][schema["$ref"]], value, sent=sent, at=at)
    kind = schema.get("type")
    if kind == "array":
        if not isinstance(value, list):
            return [f"{at}: list wanted"]
        each = (violations(document, schema["items"], one, sent=sent, at=f"{at}[{n}]") for n, one in enumerate(value))
        return [found for one in each for found in one]
    if kind == "object":
        return _in_object(document, schema, value, sent, at)
    return [f"{at}: {problem}" for problem in _in_scalar(schema, value)]


def _in_object(document: Document, schema: Document, value: Any, sent: bool, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: object wanted"]
    found, members = [], schema.get("properties", {})
    for key, inner in value.items():
        if key not in members:
            found.append(f"{at}.{key}: unknown")
            continue
        if sent and members[key].get("readOnly"):
            found.append(f"{at}.{key}: output only")
        found += violations(document, members[key], inner, sent=sent, at=f"{at}.{key}")
    return found


def _in_scalar(schema: Document, value: Any) -> list[str]:
    kind, form = schema.get("type"), schema.get("format")
    if kind not in KINDS:
        return []
    if not isinstance(value, KINDS[kind]) or (kind != "boolean" and isinstance(value, bool)):
        return [f"{kind} wanted"]
    if "enum" in schema and value not in schema["enum"]:
        return ["not in enum"]
    if form == "int64" and not re.fullmatch(r"-?\d+", value):
        return ["int64 text wanted"]
    if form == "google-datetime" and not re.fullmatch(TIME, value):
        return ["Z timestamp wanted"]
    return []


def _methods(resource: Document) -> list[Document]:
    own = list(resource.get("methods", {}).values())
    return own + [method for inner in resource.get("resources", {}).values() for method in _methods(inner)]


def _replaced(names: dict[str, str], match: re.Match[str]) -> str:
    return names[match[1]]


@cache
def routes() -> tuple[tuple[str, re.Pattern[str], Document, Document], ...]:
    """Every method of the provider: verb, path, its document, itself."""
    found = []
    for document in (
        shipped(INFORMATION),
        shipped(VERIFICATIONS),
        shipped(ACCOUNTS),
        shipped(NOTIFICATIONS),
        v4_document(),
    ):
        for method in _methods(document):
            names = {key: one.get("pattern", "^[^/]+$")[1:-1] for key, one in method["parameters"].items()}
            pattern = re.sub(r"\{\+(\w+)\}", partial(_replaced, names), method["path"])
            pattern = pattern.replace("[^/]+", "[^/:]+")
            found.append((method["httpMethod"], re.compile(f"/{pattern}"), document, method))
    return tuple(found)


def method_of(verb: str, path: str) -> tuple[Document, Document]:
    """The document and the method that a request is; LookupError when the provider has none such."""
    for own_verb, pattern, document, method in routes():
        if verb == own_verb and pattern.fullmatch(path):
            return document, method
    raise LookupError(f"{verb} {path}")


def check_answer(verb: str, path: str, body: Any) -> list[str]:
    """The problems with the body of a 200."""
    document, method = method_of(verb, path)
    return [f"{method['id']} {problem}" for problem in violations(document, method["response"], body)]
