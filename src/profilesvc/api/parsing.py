"""Parse and validate requests. Every error names the field and the rule, and never repeats the input."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from itertools import count
from typing import Never, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from werkzeug.http import parse_options_header

from profilesvc.contract.common import Query
from profilesvc.contract.errors import UNSUPPORTED_MEDIA_TYPE
from profilesvc.contract.json import JsonObject
from profilesvc.contract.tokens import GRANT_TYPES
from profilesvc.domain.errors import Problem, ServiceError, invalid, invalid_many
from profilesvc.domain.problems import problem_of
from profilesvc.services.idempotency import IdempotencyKey

Model = TypeVar("Model", bound=BaseModel)
Rules = Callable[[JsonObject], list[Problem]]
MAX_DEPTH = 32
MAX_VALUES = 10_000
_LONGEST_NAME = 100  # characters of an unknown parameter that an error repeats
_JSON_TYPE = re.compile(r"application/(?:[\w.!#$&^-]+\+)?json\Z", re.IGNORECASE | re.ASCII)
_KEY_HEADER, _KEY = "X-Idempotency-Key", re.compile(r"[\x21-\x7e]{1,255}\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ARRAY_SYNTAX = re.compile(r"([^\[]+)\[.*\]\Z", re.DOTALL)


def require_json(hint: str | None, content_type: str | None) -> None:
    """Reject any media type but `application/json` and `application/*+json`; `hint` says what to send instead.

    Raises:
        ServiceError: UNSUPPORTED_MEDIA_TYPE.
    """
    if content_type is None or _JSON_TYPE.match(content_type.split(";")[0].strip()) is None:
        raise ServiceError(UNSUPPORTED_MEDIA_TYPE, hint)
    if ";" in content_type and not is_utf8(content_type):
        raise ServiceError(UNSUPPORTED_MEDIA_TYPE, "Send the body in UTF-8, the only encoding of JSON (RFC 8259).")


def is_utf8(content_type: str) -> bool:
    """Return whether a media type names no other charset than UTF-8, or ASCII, which is a part of it."""
    charset = parse_options_header(content_type)[1].get("charset", "utf-8")
    return charset.strip().lower() in ("utf-8", "utf8", "us-ascii", "ascii")


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise invalid("body", "", "must not contain a field twice")
    return fields


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise invalid("body", "", "must not contain numbers beyond double precision")
    return number


def _constant(text: str) -> Never:
    raise invalid("body", "", f"must be JSON, which has no {text}")


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_constant)


def json_object(raw: bytes) -> JsonObject:
    """Return a JSON object: strict UTF-8, no byte order mark, at most 32 deep, no field twice, no NaN.

    It may contain at most 10,000 values, because checking each must not delay other callers.
    """
    if not raw.strip():
        raise invalid("body", "", "is empty; it must be a JSON object")
    # Before the parser makes them. Each comma outside of a string separates two values.
    if raw.count(b",") >= MAX_VALUES and _STRING.sub(b"", raw).count(b",") >= MAX_VALUES:
        raise _too_many()
    try:
        value = _JSON.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid("body", "", "must be UTF-8") from None
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")  # some reasons of the library end with it
        problem = f"is not valid JSON: {reason} at line {error.lineno} column {error.colno}"
        raise invalid("body", "", problem) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # an integer of thousands of digits
        raise invalid("body", "", "must not contain numbers of thousands of digits") from None
    if not isinstance(value, dict):
        raise invalid("body", "", "must be a JSON object")
    _walk(value, 1, count(1))
    return value


def _too_deep() -> ServiceError:
    return invalid("body", "", f"must not be nested more than {MAX_DEPTH} deep")


def _too_many() -> ServiceError:
    return invalid("body", "", f"must not contain more than {MAX_VALUES} values")


def _walk(value: object, depth: int, counter: "count[int]") -> None:
    """Reject a value that is nested too deep, contains too many values, or a string that is not Unicode."""
    if next(counter) > MAX_VALUES:
        raise _too_many()
    if isinstance(value, str):
        _require_unicode(value)
        return
    if not isinstance(value, dict | list):
        return
    if depth > MAX_DEPTH:
        raise _too_deep()
    for item in value.values() if isinstance(value, dict) else value:
        _walk(item, depth + 1, counter)
    if isinstance(value, dict):
        for name in value:
            _require_unicode(name)


def _require_unicode(text: str) -> None:
    if _SURROGATE.search(text):
        raise invalid("body", "", "must not contain lone surrogates")


def checked(model: type[Model], values: JsonObject, where: str, rules: Rules = lambda _: []) -> Model:
    """Return the values as a model.

    If some values do not fit the model, `rules` finds the other problems, so that one response names them all. If all
    values fit, the operation itself checks the rules.

    Raises:
        ServiceError: VALIDATION_ERROR with every problem.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [_problem(where, problem) for problem in error.errors(include_url=False, include_input=False)]
        reported = {field for _, field, _ in problems}
        raise invalid_many(problems + [problem for problem in rules(values) if problem[1] not in reported]) from None


def _problem(where: str, error: ErrorDetails) -> tuple[str, str, str]:
    context = error.get("ctx", {})
    if error["type"].startswith("union_tag"):  # a body whose type depends on one of its fields
        expected = ", ".join(GRANT_TYPES)
        return where, context["discriminator"].strip("'"), f"must be one of {expected}"
    path = [str(part) for part in error["loc"]]
    if path and path[0] in GRANT_TYPES:  # the branch of that union is not a field
        path = path[1:]
    return where, ".".join(path), problem_of(error)


def query_values(model: type[Query], raw: bytes, *, is_write: bool) -> dict[str, str]:
    """Return the declared parameters, each at most once (D-123).

    A write rejects an unknown parameter; a read ignores it, unless it is a misspelling of a parameter in `exact`.
    Bytes that are not UTF-8 stay percent-encoded.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    values: dict[str, str] = {}
    unknown: list[Problem] = []
    for name, value in parse_qsl(raw.decode(), keep_blank_values=True, errors="werkzeug.url_quote"):
        if name in model.model_fields and name not in values:
            values[name] = value
            continue
        base = array.group(1) if (array := _ARRAY_SYNTAX.match(name)) else name
        if base in model.model_fields:
            raise invalid("query", base, "must be sent once, with a single value")
        folded, known = base.replace("_", "").lower(), model.model_fields if is_write else model.exact
        right = next((name for name in known if name.lower() == folded), None)
        if right or is_write:
            hint = f"; use `{right}`" if right else ""
            unknown.append(("query", base[:_LONGEST_NAME], f"is unknown{hint}"))
    if unknown:
        raise invalid_many(unknown)
    return values


def idempotency_key(headers: list[list[str]], request: object) -> IdempotencyKey | None:
    """Return the key of a request from the values of both headers; `request` is what the fingerprint covers.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    values = {value for header in headers for value in header}
    if any(len(header) > 1 for header in headers) or len(values) > 1:
        raise invalid("header", _KEY_HEADER, "must be sent once, and must not differ from Idempotency-Key")
    if not values:
        return None
    value = values.pop()
    if not _KEY.match(value):
        raise invalid("header", _KEY_HEADER, "must be 1 to 255 visible ASCII characters")
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return IdempotencyKey(value, hashlib.sha256(canonical.encode()).hexdigest())
