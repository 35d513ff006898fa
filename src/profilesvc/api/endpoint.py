"""One declaration per endpoint: its route, access rule, request, response and errors.

`_serve` handles a request. A handler has parameters named `services`, `caller`, `location`, `post_id`, `review_id`,
`client_id`, `webhook_id`, `delivery_id`, `alert_id`, `connection_id`, `query`, `body`, `idempotency` or `user_agent`,
as it needs them. It returns a contract model or prepared bytes, so tests can call it without an app.
"""

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypedDict, TypeVar, Unpack

import orjson
from pydantic import BaseModel
from quart import Blueprint, Request, Response
from quart.wrappers.response import DataBody

from profilesvc.api import failures, parsing
from profilesvc.api.caching import tag_of
from profilesvc.api.quart_fast import unchecked
from profilesvc.api.request import (
    KB,
    Admit,
    BodyRule,
    bearer_token,
    current_services,
    header_values,
    quart_request,
    receive,
)
from profilesvc.contract.common import LocationQuery, Query, location_name, post_id, review_id
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
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import Problem, ServiceError, invalid
from profilesvc.domain.permissions import Permission
from profilesvc.domain.request import current_request
from profilesvc.limits.limiter import Kind
from profilesvc.services import access
from profilesvc.services.access import Access
from profilesvc.services.context import Caller, Prefetch, Rendered, Services

Arguments = dict[str, object]  # of a handler, by name
Handler = TypeVar("Handler", bound=Callable[..., Coroutine[object, None, BaseModel | Rendered]])
PREFIX = "/api/v1"
READ, WRITE = access.user_or_service(Permission.READ), access.user_or_service(Permission.WRITE)
_IDS = {"client_id", "webhook_id", "delivery_id", "alert_id", "connection_id"}
_CHILDREN = {"postId": ("post_id", post_id), "reviewId": ("review_id", review_id)}


class Options(TypedDict, total=False):
    """The optional parts of a declaration, which are fields of `Endpoint`."""

    data_name: str
    query: type[Query]
    body: type[BaseModel] | type[JsonObject]
    body_schema: type[BaseModel]
    rules: Callable[[Services, JsonObject], list[Problem]]
    status: int
    created_at: Callable[[JsonObject], str]
    errors: tuple[ErrorKind, ...]
    max_body: int
    no_store: bool
    addition: bool
    media_hint: str
    counted_as: Kind
    prefetch: Callable[[Any, dict[str, str]], Prefetch | None]
    handed_over: bool


@dataclass(frozen=True)
class Endpoint:
    """The declaration of an endpoint, from which it is served and documented."""

    method: str
    path: str
    access: Access
    handler: Callable[..., Coroutine[object, None, BaseModel | Rendered]]
    data: Any
    data_name: str | None = None  # the name of the schema if `data` is a union
    query: type[Query] | None = None
    body: type[BaseModel] | type[JsonObject] | None = None
    body_schema: type[BaseModel] | None = None
    rules: Callable[[Services, JsonObject], list[Problem]] | None = None
    status: int = 200
    created_at: Callable[[JsonObject], str] | None = None  # returns the path of a new resource from its data
    errors: tuple[ErrorKind, ...] = ()
    max_body: int = 256 * KB
    no_store: bool = False
    addition: bool = False  # to the documented API
    media_hint: str | None = None
    counted_as: Kind | None = None
    parameters: frozenset[str] = field(default_factory=frozenset)
    # From query and path: what to read with the caller.
    prefetch: Callable[[Any, dict[str, str]], Prefetch | None] | None = None
    handed_over: bool = False  # a task of the service does the work, even if the caller disconnects

    @property
    def limit(self) -> Kind:
        """The kind of limit that its requests count against; every endpoint has one."""
        by_method: Kind = "reads" if self.method == "GET" else "writes"
        return self.counted_as or ("tokens" if self.access.public else by_method)

    @cached_property
    def is_tagged(self) -> bool:
        """Return whether a client may cache the response for itself and revalidate it each time."""
        return self.method == "GET" and not self.no_store

    @cached_property
    def body_rule(self) -> BodyRule | None:
        """The rule for the body, or None if the endpoint has none."""
        return None if self.body is None else BodyRule(self.max_body, partial(parsing.require_json, self.media_hint))

    @property
    def all_errors(self) -> list[ErrorKind]:
        """The declared errors and those that follow from the rest of the declaration."""
        kinds = [*self.errors, RATE_LIMITED]
        if not self.access.public:
            kinds += [AUTH_INVALID_TOKEN, AUTH_INSUFFICIENT_PERMISSIONS]
        if self.body is not None:
            kinds += [VALIDATION_ERROR, REQUEST_TIMEOUT, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE]
        if self.method != "GET" or self.query is not None or "location" in self.parameters:
            kinds += [VALIDATION_ERROR]
        if "location" in self.parameters or "<" in self.path:
            kinds += [NOT_FOUND]
        if "idempotency" in self.parameters:
            kinds += [IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED]
        return sorted(set(kinds), key=lambda kind: (kind.status, kind.code))


class Routes:
    """The endpoints of one noun, and the options that they have by default."""

    def __init__(self, noun: str, **defaults: Unpack[Options]) -> None:
        self.blueprint = Blueprint(noun, __name__)
        self._defaults = defaults

    def endpoint(
        self, route: str, *, access: Access, data: object, **options: Unpack[Options]
    ) -> Callable[[Handler], Handler]:
        """Declare `METHOD /path` under /api/v1; return the handler unchanged."""
        method, path = route.split(" ", 1)

        def register(handler: Handler) -> Handler:
            parameters = frozenset(inspect.signature(handler).parameters)
            declared = Endpoint(method, path, access, handler, data, parameters=parameters, **self._defaults | options)

            async def view(**path_values: str) -> Response:
                try:
                    return await _serve(declared, path_values)
                except ServiceError as error:
                    if declared.no_store:
                        return failures.render(failures.service_error(error), no_store=True)
                    raise

            setattr(view, "endpoint", declared)  # noqa: B010  read by api/openapi/document.py and the surface test
            self.blueprint.add_url_rule(PREFIX + path, handler.__name__, view, methods=[method])
            return handler

        return register


async def _serve(endpoint: Endpoint, path_values: dict[str, str]) -> Response:
    """Check size, media type, caller, permission, syntax, location and body in this order, then run the operation."""
    services, incoming = current_services(), quart_request()
    query, fault = _query(endpoint, incoming)
    admit = None
    if not endpoint.access.public:
        admit = _admit(services, endpoint, incoming, _prefetch(endpoint, query, path_values))
    caller, raw = await receive(services, incoming, endpoint.body_rule, admit)
    if fault is not None:
        raise fault
    arguments: Arguments = {"services": services, "query": query, "caller": caller}
    arguments |= await _path(services, endpoint, path_values, query, caller)
    if endpoint.body is not None:
        document = parsing.json_object(raw)
        arguments["body"] = _body(services, endpoint, endpoint.body, document)
        if "idempotency" in endpoint.parameters:
            headers = [header_values(incoming, name) for name in (b"x-idempotency-key", b"idempotency-key")]
            values = [document, None if query is None else query.model_dump(exclude_none=True)]
            arguments["idempotency"] = parsing.idempotency_key(headers, values)
    if "user_agent" in endpoint.parameters:
        arguments["user_agent"] = incoming.headers.get("User-Agent", "")
    operation = endpoint.handler(**{name: value for name, value in arguments.items() if name in endpoint.parameters})
    may_be_cancelled = endpoint.method == "GET" or endpoint.handed_over
    return _respond(endpoint, await (operation if may_be_cancelled else services.background.finish(operation)))


def _admit(services: Services, endpoint: Endpoint, incoming: Request, prefetch: Prefetch | None) -> Admit:
    """Return a function that admits the caller. Its second call neither counts the request nor prefetches."""
    authorization = header_values(incoming, b"authorization")

    async def admit(is_first: bool) -> Caller:
        kind, prefetched = (endpoint.limit, prefetch) if is_first else (None, None)
        return await access.admit(
            services, current_request(), bearer_token(authorization), endpoint.access, kind, prefetched
        )

    return admit


def _query(endpoint: Endpoint, incoming: Request) -> tuple[Query | None, ServiceError | None]:
    """Return the parameters, or the error to raise after the caller is admitted."""
    is_write, model = endpoint.method != "GET", endpoint.query or Query
    if endpoint.query is None and not (is_write and incoming.query_string):
        return None, None
    try:
        values = parsing.query_values(model, incoming.query_string, is_write=is_write)
        query = parsing.checked(model, values, "query")
    except ServiceError as error:
        return None, error
    return (query if endpoint.query else None), None


def _prefetch(endpoint: Endpoint, query: Query | None, path_values: dict[str, str]) -> Prefetch | None:
    """Return what to read together with the caller. `_path` rejects a malformed name later."""
    if endpoint.prefetch is None or query is None:
        return None
    try:
        return endpoint.prefetch(query, path_values)
    except ValueError:
        return None


async def _path(
    services: Services, endpoint: Endpoint, path_values: dict[str, str], query: Query | None, caller: Caller | None
) -> Arguments:
    """Return the arguments from the path: canonical names first, then the location if the caller has access to it."""
    path_arguments: Arguments = {name: path_values[name] for name in _IDS & path_values.keys()}
    if "location" not in endpoint.parameters:
        return path_arguments
    assert caller is not None, "a public endpoint has no location"
    where, parameter = "path", "locationId"
    name = path_values.get("locationId", "")
    if isinstance(query, LocationQuery):
        where, name = "query", query.locationId
    try:
        name = location_name(name)
        for parameter in _CHILDREN.keys() & path_values.keys():
            where, (argument, canonical) = "path", _CHILDREN[parameter]
            path_arguments[argument] = canonical(path_values[parameter], name)
    except ValueError as error:
        raise invalid(where, parameter, str(error)) from None
    path_arguments["location"] = await access.require_location(services, caller, name)
    return path_arguments


def _body(
    services: Services, endpoint: Endpoint, model: type[BaseModel] | type[JsonObject], document: JsonObject
) -> Any:
    """Return the body as the declared model, or unchanged if the operation parses the provider's format itself."""
    if not issubclass(model, BaseModel):
        return document
    rules = endpoint.rules
    return parsing.checked(model, document, "body", (lambda _: []) if rules is None else partial(rules, services))


def _respond(endpoint: Endpoint, result: BaseModel | Rendered) -> Response:
    """Wrap the result in Success; a model is serialized once, prepared bytes are passed on."""
    if isinstance(result, Rendered):
        rendered = result
    else:  # a stored value that no longer validates is no reason for a warning
        rendered = Rendered(result.model_dump_json(by_alias=True, warnings=False).encode())
    body = b'{"status":"ok","data":' + rendered.data + b"}"
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    if endpoint.is_tagged:
        headers += [("Cache-Control", "private, no-cache"), ("ETag", tag_of(body))]
    elif endpoint.no_store:
        headers.append(("Cache-Control", "no-store"))
    if rendered.replayed:
        headers.append(("Idempotency-Replayed", "true"))
    if rendered.data_age is not None:
        headers.append(("X-Data-Age", str(rendered.data_age)))
    if endpoint.created_at is not None:
        headers.append(("Location", PREFIX + endpoint.created_at(orjson.loads(rendered.data))))
    return Response(DataBody(body), endpoint.status, unchecked(headers))
