"""Proto JSON, query strings and pages: both spellings of names are accepted, camelCase is returned."""

import base64
import bisect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Never, TypeVar

from pydantic import ValidationError
from quart import request

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message
from profilesvc.emulator.errors import ApiError, bad_request, body_error, snake

Item = TypeVar("Item")

_DEFAULTS: tuple[object, ...] = (None, False, "", [])  # 0 equals False; an empty message, {}, is not a default
_STANDARD_PARAMETERS = frozenset(
    {"alt", "fields", "key", "access_token", "oauth_token", "prettyPrint", "quotaUser", "callback"}
    | {"upload_protocol", "uploadType", "$.xgafv"}
)


def camel(name: str) -> str:
    """Convert `open_info` to `openInfo`. A camelCase name does not change."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def camelized(value: object) -> Any:
    """Return a JSON value with every field name in camelCase."""
    if isinstance(value, dict):
        return {camel(key): camelized(inner) for key, inner in value.items()}
    return [camelized(inner) for inner in value] if isinstance(value, list) else value


def pruned(value: object) -> Any:
    """Return the value without fields that have a default value, as proto JSON omits them."""
    if isinstance(value, dict):
        return {key: pruned(inner) for key, inner in value.items() if inner not in _DEFAULTS}
    return [pruned(inner) for inner in value] if isinstance(value, list) else value


def _reject_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


async def read_message(model: type[Message], root: str) -> JsonObject:
    """Return the request's body without default values, checked against the model. An empty body is `{}`.

    Raises:
        ApiError: 400 for no JSON object, or naming the invalid field.
    """
    try:
        body = camelized(json.loads(await request.get_data() or b"{}", parse_constant=_reject_constant))
    except (ValueError, RecursionError):
        raise ApiError(400, "Invalid JSON payload received. Unexpected token.") from None
    if not isinstance(body, dict):
        raise ApiError(400, "Invalid JSON payload received. Root element must be a message.")
    try:
        model.model_validate(body)
    except ValidationError as error:
        raise body_error(error, root) from None
    document: JsonObject = pruned(body)
    return document


def read_query(*allowed: str) -> dict[str, str]:
    """Return the query parameters of an operation. Google's standard parameters are ignored.

    Raises:
        ApiError: 400 for an unknown parameter.
    """
    query = {camel(key): value for key, value in request.args.items() if key not in _STANDARD_PARAMETERS}
    for key in query:
        if key not in allowed:
            message = f'Invalid JSON payload received. Unknown name "{key}": Cannot bind query parameter.'
            raise bad_request(key, message, message)
    return query


def required(query: dict[str, str], *names: str) -> str:
    """Return the first parameter; all must be present.

    Raises:
        ApiError: 400, naming the missing parameter.
    """
    for name in names:
        if not query.get(name):
            raise bad_request(snake(name), "Field is required")
    return query[names[0]]


def page(
    items: list[Item], key: Callable[[Item], Sequence[object]], query: dict[str, str], sizes: tuple[int, int]
) -> tuple[list[Item], JsonObject]:
    """Return one page of items that are sorted by `key`, and `{nextPageToken}` or `{}`.

    `sizes` are the default and the maximum. The token contains the list and the last key, so that the next page starts
    after that key even if items were added or removed.
    """
    text = query.get("pageSize", str(sizes[0]))
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) < 1:
        raise bad_request("page_size", "Must be a whole number from 1")
    # Our choice: the provider's response to a size above the maximum is not documented.
    size, start = min(int(text), sizes[1]), 0
    listed = [request.path, query.get("filter", ""), query.get("orderBy", "")]
    if token := query.get("pageToken"):
        try:
            of, last = json.loads(base64.urlsafe_b64decode(token))
            start = bisect.bisect_right(items, last, key=key)
        except (ValueError, TypeError):
            of = None
        if of != listed:
            raise bad_request("page_token", "Invalid page token")
    chunk = items[start : start + size]
    if start + size >= len(items):
        return chunk, {}
    cursor = json.dumps([listed, key(chunk[-1])])
    return chunk, {"nextPageToken": base64.urlsafe_b64encode(cursor.encode()).decode()}
