"""Declarations of endpoints that follow a standard: no envelope, whole paths, forms instead of JSON.

This is the smaller counterpart of `endpoint.py`. A handler has parameters named `services`, `form`, `credentials`,
`caller` or `user_agent`, as it needs them. It returns the model that is the whole response.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel
from quart import Blueprint, Response

from profilesvc.api import forms, parsing
from profilesvc.api.caching import tag_of
from profilesvc.api.endpoint import Arguments
from profilesvc.api.failures import NOT_CACHED
from profilesvc.api.forms import Credentials
from profilesvc.api.request import KB, BodyRule, bearer_token, current_services, header_values, quart_request, receive
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
    WRONG_METHOD,
    ClientForm,
)
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request
from profilesvc.services import access, oauth2
from profilesvc.services.context import Caller, Services

_FORM = BodyRule(64 * KB, forms.require_form)
OAuthHandler = Callable[..., Coroutine[object, None, BaseModel]]
Handler = TypeVar("Handler", bound=OAuthHandler)


@dataclass(frozen=True)
class OAuthEndpoint:
    """The declaration of an endpoint, from which it is served and documented."""

    method: str
    path: str
    handler: OAuthHandler
    response: type[BaseModel]
    form: type[ClientForm] | None = None
    errors: tuple[ErrorKind, ...] = ()
    headers: dict[str, str] = field(default_factory=lambda: NOT_CACHED)
    parameters: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_tagged(self) -> bool:
        """Return whether clients may cache the response."""
        return self.headers is not NOT_CACHED

    @property
    def all_errors(self) -> list[ErrorKind]:
        """The declared errors and those that follow from the rest; an endpoint without a form cannot fail."""
        if self.form is None:
            return [WRONG_METHOD, HEADERS]
        kinds = {
            *self.errors,
            WRONG_METHOD,
            HEADERS,
            INVALID_REQUEST,
            TOO_LATE,
            TOO_LARGE,
            TOO_MANY,
            INVALID_CLIENT,
            ACCESS_DENIED,
        }
        kinds |= {SERVER_ERROR, UNAVAILABLE, COMPRESSED}
        if "caller" in self.parameters:
            kinds.add(INVALID_TOKEN)
        return sorted(kinds, key=lambda kind: (kind.status, kind.code))


class OAuthRoutes:
    """The endpoints of one noun."""

    def __init__(self, noun: str) -> None:
        self.blueprint = Blueprint(noun, __name__)

    def endpoint(
        self,
        route: str,
        *,
        response: type[BaseModel],
        form: type[ClientForm] | None = None,
        errors: tuple[ErrorKind, ...] = (),
        headers: dict[str, str] = NOT_CACHED,
    ) -> Callable[[Handler], Handler]:
        """Declare `METHOD /path`; return the handler unchanged."""
        method, path = route.split(" ", 1)

        def register(handler: Handler) -> Handler:
            parameters = frozenset(inspect.signature(handler).parameters)
            declared = OAuthEndpoint(method, path, handler, response, form, errors, headers, parameters)

            async def view() -> Response:
                return await _serve(declared)

            setattr(view, "oauth_endpoint", declared)  # noqa: B010  read by api/openapi/document.py and the tests
            self.blueprint.add_url_rule(path, handler.__name__, view, methods=[method])
            return handler

        return register


@contextmanager
def as_oauth_errors(invalid: ErrorKind) -> Iterator[None]:
    """Translate the errors of the services into those of RFC 6749 §5.2; `invalid` replaces AUTH_INVALID_TOKEN.

    A deactivated key is a client that cannot authenticate now, so it gets `invalid_client` with our three details.
    """
    try:
        yield
    except ServiceError as error:
        if error.kind is AUTH_INVALID_TOKEN:
            raise ServiceError(invalid, error.message) from None
        if error.kind is AUTH_INSUFFICIENT_PERMISSIONS and "deactivation_reason" in error.details:
            raise ServiceError(INVALID_CLIENT, error.message, **error.details) from None
        if error.kind is AUTH_INSUFFICIENT_PERMISSIONS and "requested" in error.details:
            raise ServiceError(INVALID_SCOPE, error.message) from None
        raise


async def _serve(declared: OAuthEndpoint) -> Response:
    """Check size and media type, form, client or user; then run the operation."""
    services, incoming = current_services(), quart_request()
    arguments: Arguments = {"services": services, "user_agent": incoming.headers.get("User-Agent", "")}
    if declared.form is not None:
        _, raw = await receive(services, incoming, _FORM, None)
        forms.require_form(incoming.headers.get("Content-Type"))  # also of an empty body
        form = arguments["form"] = parsing.checked(declared.form, forms.form_values(raw), "form")
        authorization = header_values(incoming, b"authorization")
        if "caller" in declared.parameters:
            arguments["caller"] = await _caller(services, form, authorization)
        else:
            arguments["credentials"] = _credentials(form, authorization)
    accepted = {name: value for name, value in arguments.items() if name in declared.parameters}
    result = await services.background.finish(declared.handler(**accepted))
    body = result.model_dump_json(exclude_none=True).encode()
    entity_tag = {"ETag": tag_of(body)} if declared.is_tagged else {}
    return Response(body, content_type="application/json", headers={**declared.headers, **entity_tag})


def _credentials(form: ClientForm, authorization: list[str]) -> Credentials | None:
    return forms.client_credentials(authorization, form.client_id, form.client_secret)


async def _caller(services: Services, form: ClientForm, authorization: list[str]) -> Caller:
    """Authenticate a key by its id and secret, or a user by a bearer token."""
    if not any(header.lower().startswith("bearer ") for header in authorization):
        return await client(services, _credentials(form, authorization))
    if form.client_secret is not None:
        raise ServiceError(INVALID_REQUEST, "Authenticate only once: with a user token or as a client.")
    return await access.admit(services, current_request(), bearer_token(authorization), access.SESSION, None)


def required(credentials: Credentials | None) -> Credentials:
    """Return the credentials of a client.

    Raises:
        ServiceError: INVALID_CLIENT if it sent none (RFC 6749 §5.2).
    """
    if credentials is None:
        raise ServiceError(INVALID_CLIENT, "Send the client id and secret, with HTTP Basic or in the form.")
    return credentials


async def client(services: Services, credentials: Credentials | None) -> Caller:
    pair = required(credentials)
    with as_oauth_errors(INVALID_CLIENT):
        return await oauth2.authenticate_client(services, pair.client_id, pair.client_secret)
