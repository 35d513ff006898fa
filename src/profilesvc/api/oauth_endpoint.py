"""Declarations of routes that speak a standard of their own: no envelope, whole paths, forms instead of JSON (D-02).

The small sibling of `endpoint.py`. A handler names what it needs of `form`, `credentials` and `caller`; it returns the
model that is the whole answer.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import BaseModel
from quart import Blueprint, Response, request
from quart_schema import operation_id, tag

from profilesvc.api import forms, parsing
from profilesvc.api.access import services
from profilesvc.api.body import KB
from profilesvc.api.compression import tag_of
from profilesvc.api.endpoint import Handler
from profilesvc.api.failures import NOT_CACHED
from profilesvc.api.forms import Credentials
from profilesvc.api.request import asked_now, begin, judge_body, read_body, tell_limits
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN, ErrorKind
from profilesvc.contract.oauth2 import (
    ACCESS_DENIED,
    COMPRESSED,
    HEADERS,
    INVALID_CLIENT,
    INVALID_REQUEST,
    INVALID_SCOPE,
    INVALID_TOKEN,
    SERVER_ERROR,
    TOO_LARGE,
    TOO_LATE,
    TOO_MANY,
    UNAVAILABLE,
    ClientForm,
)
from profilesvc.domain.errors import ServiceError
from profilesvc.services import access as callers
from profilesvc.services import audit, oauth2, origins
from profilesvc.services.context import Caller, Services

MAX_FORM = 64 * KB


@dataclass(frozen=True)
class Standard:
    """A declaration, and everything that serving and documenting need of it."""

    method: str
    path: str
    handler: Callable[..., Coroutine[Any, Any, BaseModel]]
    answer: type[BaseModel]
    form: type[ClientForm] | None = None
    errors: tuple[ErrorKind, ...] = ()
    headers: dict[str, str] = field(default_factory=lambda: NOT_CACHED)
    wants: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_tagged(self) -> bool:
        """Whether callers may keep the answer."""
        return self.headers is not NOT_CACHED

    @property
    def all_errors(self) -> list[ErrorKind]:
        """The declared errors and those that follow from the rest; what takes no form looks up nothing."""
        if self.form is None:
            return [HEADERS]
        kinds = {*self.errors, HEADERS, INVALID_REQUEST, TOO_LATE, TOO_LARGE, TOO_MANY, INVALID_CLIENT, ACCESS_DENIED}
        kinds |= {SERVER_ERROR, UNAVAILABLE, COMPRESSED}
        if "caller" in self.wants:
            kinds.add(INVALID_TOKEN)
        return sorted(kinds, key=lambda kind: (kind.status, kind.code))


class StandardRoutes:
    """The routes of one noun."""

    def __init__(self, noun: str) -> None:
        self.blueprint = Blueprint(noun, __name__)
        self.blueprint.after_request(tell_limits)
        self._tag = tag([noun])

    def standard(self, route: str, *, answer: type[BaseModel], **options: Any) -> Callable[[Handler], Handler]:
        """Declare `METHOD /path`; the handler comes back unchanged. Options are the fields of Standard."""
        method, path = route.split(" ", 1)

        def register(handler: Handler) -> Handler:
            wants = frozenset(inspect.signature(handler).parameters)
            declared = Standard(method, path, handler, answer, wants=wants, **options)

            async def view() -> Response:
                return await _serve(declared)

            view.__doc__, view.__name__ = handler.__doc__, handler.__name__
            setattr(view, "standard", declared)  # noqa: B010  read by api/openapi.py and the tests
            documented = operation_id(handler.__name__)(self._tag(view))
            self.blueprint.add_url_rule(path, handler.__name__, documented, methods=[method])
            return handler

        return register


@contextmanager
def refusals(wrong: ErrorKind) -> Iterator[None]:
    """What the services refuse, in the words of RFC 6749 §5.2; `wrong` names what AUTH_INVALID_TOKEN is about here.

    A deactivated key is a client that cannot authenticate now: `invalid_client`, with our three details beside it.
    """
    try:
        yield
    except ServiceError as error:
        if error.kind is AUTH_INVALID_TOKEN:
            raise ServiceError(wrong, error.message) from None
        if error.kind is AUTH_INSUFFICIENT_PERMISSIONS and "deactivation_reason" in error.details:
            raise ServiceError(INVALID_CLIENT, error.message, **error.details) from None
        if error.kind is AUTH_INSUFFICIENT_PERMISSIONS and "requested" in error.details:
            raise ServiceError(INVALID_SCOPE, error.message) from None
        raise


async def _serve(declared: Standard) -> Response:
    """Size and media type, form, client or user, then the operation."""
    running = services()
    asked = asked_now()
    begin(asked)
    arguments: dict[str, Any] = {}
    if declared.form is not None:
        await running.limiter.by_address()
        judge_media = partial(forms.require_form, request.headers.get("Content-Type"))
        judge_body(asked, MAX_FORM, judge_media)
        raw = await read_body(asked, MAX_FORM, judge_media)
        judge_media()
        values = forms.form_values(raw)
        form = arguments["form"] = parsing.checked(declared.form, values, "form")
        if "caller" in declared.wants:
            arguments["caller"] = await _caller(running, form)
        else:
            arguments["credentials"] = _credentials(form)
    wanted = {name: value for name, value in arguments.items() if name in declared.wants}
    result = await running.background.finish(declared.handler(**wanted))
    body = result.model_dump_json(exclude_none=True).encode()
    tag = {"ETag": tag_of(body)} if declared.is_tagged else {}
    return Response(body, content_type="application/json", headers={**declared.headers, **tag})


def _credentials(form: ClientForm) -> Credentials | None:
    authorization = request.headers.getlist("Authorization")
    return forms.client_credentials(authorization, form.client_id, form.client_secret)


async def _caller(running: Services, form: ClientForm) -> Caller:
    """A key by its id and secret, or a user by a bearer token (D-16)."""
    authorization = request.headers.getlist("Authorization")
    if any(header.lower().startswith("bearer ") for header in authorization):
        if form.client_secret is not None:
            raise ServiceError(INVALID_REQUEST, "Authenticate once: by a user token or as a client.")
        caller = await callers.authenticate(running, authorization)
        if caller.key is not None:
            message = "Send a user token here, or authenticate as the client by id and secret."
            raise ServiceError(INVALID_TOKEN, message, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        origins.weigh(running, None)
        origins.require()
    else:
        caller = await client(running, _credentials(form))
    audit.known(caller.scope)
    return caller


def required(credentials: Credentials | None) -> Credentials:
    """What a client authenticates with; `invalid_client` when there is nothing (RFC 6749 §5.2)."""
    if credentials is None:
        raise ServiceError(INVALID_CLIENT, "Send the client id and secret, by HTTP Basic or in the form.")
    return credentials


async def client(running: Services, credentials: Credentials | None) -> Caller:
    """The key that authenticated."""
    sent = required(credentials)
    with refusals(INVALID_CLIENT):
        return await oauth2.authenticate_client(running, sent.client_id, sent.client_secret)
