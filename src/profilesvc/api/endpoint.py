"""One declaration per endpoint: route, who may call, what comes in, what goes out, what can go wrong.

The trip of a request is `_serve`, in the order of D-03. A handler names what it needs of `caller`, `location`,
`post_id`, `review_id`, `client_id`, `query`, `body` and `idempotency`; it returns a contract model, or bytes made once.
"""

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel
from quart import Blueprint, Request, Response
from quart_schema import operation_id, tag

from profilesvc.api import parsing
from profilesvc.api.access import Access, services
from profilesvc.api.body import KB
from profilesvc.api.compression import tag_of
from profilesvc.api.quart_fast import JsonResponse, fields
from profilesvc.api.request import asked_now, begin, body_of, judge_body, read_body, tell_limits
from profilesvc.contract.common import Query, location_name, post_id, review_id
from profilesvc.contract.errors import (
    AUTH_INSUFFICIENT_PERMISSIONS,
    AUTH_INVALID_TOKEN,
    IDEMPOTENCY_IN_PROGRESS,
    IDEMPOTENCY_KEY_REUSED,
    NOT_FOUND,
    PAYLOAD_TOO_LARGE,
    RATE_LIMITED,
    REQUEST_TIMEOUT,
    UNSUPPORTED_MEDIA_TYPE,
    VALIDATION_ERROR,
    ErrorKind,
)
from profilesvc.domain.errors import Problem, ServiceError, invalid
from profilesvc.limits.limiter import Kind
from profilesvc.services import access as callers
from profilesvc.services import audit, connection, idempotency, origins
from profilesvc.services.context import Caller, Prefetch, Rendered, Services, deactivated

Handler = TypeVar("Handler", bound=Callable[..., Coroutine[Any, Any, Any]])
PREFIX = "/api/v1"
_CHILDREN = {"postId": ("post_id", post_id), "reviewId": ("review_id", review_id)}


@dataclass(frozen=True)
class Endpoint:
    """A declaration, and everything that serving and documenting need of it."""

    method: str
    path: str
    access: Access
    handler: Callable[..., Coroutine[Any, Any, Any]]
    data: Any
    data_name: str | None = None  # of the one schema for several kinds of data
    query: type[Query] | None = None
    body: type[BaseModel] | type[dict[str, Any]] | None = None
    body_schema: type[BaseModel] | None = None
    rules: Callable[[Services, dict[str, Any]], list[Problem]] | None = None
    status: int = 200
    created_at: Callable[[dict[str, Any]], str] | None = None  # by the data of a 201: the path of the new resource
    errors: tuple[ErrorKind, ...] = ()
    max_body: int = 256 * KB
    no_store: bool = False
    media_hint: str | None = None
    counted_as: Kind | None = None
    wants: frozenset[str] = field(default_factory=frozenset)
    prefetch: Callable[[Any, dict[str, str]], Prefetch | None] | None = None  # by query and path: read with the caller
    handed_over: bool = False  # to a task of the service, which goes on when the caller hangs up

    @property
    def limit(self) -> Kind:
        """Which buckets its requests are counted in (D-50): no route is without."""
        by_method: Kind = "reads" if self.method == "GET" else "writes"
        return self.counted_as or ("tokens" if self.access.public else by_method)

    @cached_property
    def is_tagged(self) -> bool:
        """Whether a caller may keep the answer for itself, if it asks each time whether that is still good."""
        return self.method == "GET" and not self.no_store

    @property
    def all_errors(self) -> list[ErrorKind]:
        """The declared errors and those that follow from the rest of the declaration."""
        kinds = [*self.errors, RATE_LIMITED]
        if not self.access.public:
            kinds += [AUTH_INVALID_TOKEN, AUTH_INSUFFICIENT_PERMISSIONS]
        if self.body is not None:
            kinds += [VALIDATION_ERROR, REQUEST_TIMEOUT, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE]
        if self.query is not None or "location" in self.wants:
            kinds += [VALIDATION_ERROR]
        if "location" in self.wants:
            kinds += [NOT_FOUND]
        if "idempotency" in self.wants:
            kinds += [IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED]
        return sorted(set(kinds), key=lambda kind: (kind.status, kind.code))


class Routes:
    """The endpoints of one noun."""

    def __init__(self, noun: str) -> None:
        self.blueprint = Blueprint(noun, __name__)
        self.blueprint.after_request(tell_limits)
        self._tag = tag([noun])

    def endpoint(self, route: str, *, access: Access, data: Any, **options: Any) -> Callable[[Handler], Handler]:
        """Declare `METHOD /path` under /api/v1; the handler comes back unchanged.

        Options are the fields of Endpoint: data_name, query, body, body_schema, rules, status, created_at, errors,
        max_body, no_store, media_hint, counted_as, prefetch, handed_over.
        """
        method, path = route.split(" ", 1)

        def register(handler: Handler) -> Handler:
            wants = frozenset(inspect.signature(handler).parameters)
            declared = Endpoint(method, path, access, handler, data, wants=wants, **options)

            async def view(**path_values: str) -> Response:
                try:
                    return await _serve(declared, path_values)
                except ServiceError as error:
                    if declared.no_store:  # refusals of these routes are as private as their answers (D-04)
                        error.headers.setdefault("Cache-Control", "no-store")
                    raise

            view.__doc__, view.__name__ = handler.__doc__, handler.__name__
            setattr(view, "endpoint", declared)  # noqa: B010  read by api/openapi.py and the surface test
            documented = operation_id(handler.__name__)(self._tag(view))
            self.blueprint.add_url_rule(PREFIX + path, handler.__name__, documented, methods=[method])
            return handler

        return register


async def _serve(endpoint: Endpoint, path_values: dict[str, str]) -> Response:
    """Size and media type, caller, permission, syntax, location, body, then the operation (D-03).

    A body is read when its head and its caller were judged.
    """
    running, asked = services(), asked_now()
    begin(asked)
    if endpoint.access.public:  # before any work; a caller with a token is counted when it is known (D-03)
        await running.limiter.by_address()
    raw, judge_media = b"", partial(_judge_media, endpoint, asked)
    if endpoint.body is not None:
        judge_body(asked, endpoint.max_body, judge_media)
    query, fault = _query(endpoint, asked)
    arguments: dict[str, Any] = {"query": query}
    if not endpoint.access.public:
        arguments["caller"] = await _admit(running, endpoint, asked, _prefetch(endpoint, query, path_values))
    if endpoint.body is not None:
        raw = await read_body(asked, endpoint.max_body, judge_media)
        if body_of(asked).was_late and not endpoint.access.public:  # the token may have been revoked meanwhile (D-14)
            arguments["caller"] = await _admit(running, endpoint, asked, None, counted=True)
    if fault is not None:
        raise fault
    arguments.update(await _path(running, endpoint, path_values, arguments))
    if endpoint.body is not None:
        document = parsing.json_object(raw)
        arguments["body"] = _body(running, endpoint, endpoint.body, document)
        if "idempotency" in endpoint.wants:
            arguments["idempotency"] = _idempotency_key(asked, document, arguments.get("query"))
    operation = endpoint.handler(**{name: value for name, value in arguments.items() if name in endpoint.wants})
    may_be_left = endpoint.method == "GET" or endpoint.handed_over
    return _respond(endpoint, await (operation if may_be_left else running.background.finish(operation)))


def _body(
    running: Services, endpoint: Endpoint, model: type[BaseModel] | type[dict[str, Any]], document: dict[str, Any]
) -> Any:
    """The body as the declared model, or as it is for an operation that reads it by the provider's format."""
    if not issubclass(model, BaseModel):
        return document
    rules = endpoint.rules
    return parsing.checked(model, document, "body", (lambda _: []) if rules is None else partial(rules, running))


def _query(endpoint: Endpoint, asked: Request) -> tuple[Query | None, ServiceError | None]:
    """The parameters, or what is wrong with them, which is told in its turn."""
    if endpoint.query is None:
        return None, None
    try:
        return parsing.checked(endpoint.query, parsing.query_values(endpoint.query, asked.query_string), "query"), None
    except ServiceError as error:
        return None, error


def _prefetch(endpoint: Endpoint, query: Query | None, path_values: dict[str, str]) -> Prefetch | None:
    """What can be read with the caller; a name that is none is told of in its turn."""
    if endpoint.prefetch is None or query is None:
        return None
    try:
        return endpoint.prefetch(query, path_values)
    except ValueError:
        return None


def _judge_media(endpoint: Endpoint, asked: Request) -> None:
    if not parsing.is_json(asked.headers.get("Content-Type")):
        raise ServiceError(UNSUPPORTED_MEDIA_TYPE, endpoint.media_hint)


async def _admit(
    running: Services, endpoint: Endpoint, asked: Request, prefetch: Prefetch | None, *, counted: bool = False
) -> Caller:
    caller = await callers.authenticate(running, fields(asked, b"authorization"), prefetch)
    audit.known(caller.scope)
    origins.weigh(running, caller.key)  # before anything refuses: a page in its place may read why
    key_id = None if caller.key is None else caller.key.id
    if not counted:
        await running.limiter.by_caller(endpoint.limit, key_id, caller.user_id, caller.plan.reads)
    if caller.key is not None and caller.key.hold is not None:
        if endpoint.access.records_contact:
            await connection.record_contact(running, caller.key)
        raise deactivated(running, caller.key.hold)
    endpoint.access.require(caller)
    origins.require()
    return caller


async def _path(
    running: Services, endpoint: Endpoint, path_values: dict[str, str], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Canonical names first, then whether the caller reaches the location."""
    found: dict[str, Any] = {}
    if "client_id" in path_values:
        found["client_id"] = path_values["client_id"]
    if "location" not in endpoint.wants:
        return found
    where, member, name = "path", "locationId", path_values.get("locationId")
    if name is None:
        where, name = "query", arguments["query"].locationId
    try:
        name = location_name(name)
        for member in _CHILDREN.keys() & path_values.keys():
            where, (wanted, canonical) = "path", _CHILDREN[member]
            found[wanted] = canonical(path_values[member], name)
    except ValueError as error:
        raise invalid(where, member, str(error)) from None
    found["location"] = await callers.reach(running, arguments["caller"], name)
    return found


def _idempotency_key(
    asked: Request, document: dict[str, Any], query: Query | None
) -> idempotency.IdempotencyKey | None:
    given = [fields(asked, name) for name in (b"x-idempotency-key", b"idempotency-key")]
    return idempotency.key_of(given, [document, None if query is None else query.model_dump()])


def _respond(endpoint: Endpoint, result: BaseModel | Rendered) -> Response:
    """Wrap the result in Success; a model is written once, prepared bytes are passed on."""
    rendered = result if isinstance(result, Rendered) else Rendered(result.model_dump_json(by_alias=True).encode())
    body = b'{"status":"ok","data":' + rendered.data + b"}"
    keeping = [("Cache-Control", "private, no-cache"), ("ETag", tag_of(body))] if endpoint.is_tagged else ()
    response = JsonResponse(body, rendered.status or endpoint.status, keeping)
    if rendered.headers:
        response.headers.update(rendered.headers)
    if endpoint.created_at is not None:
        response.headers["Location"] = PREFIX + endpoint.created_at(orjson.loads(rendered.data))
    if endpoint.no_store:
        response.headers["Cache-Control"] = "no-store"
    return response
