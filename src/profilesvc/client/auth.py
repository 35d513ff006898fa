"""Bearer tokens for httpx: a fixed one, or one that is granted to an API key and renewed."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field, replace

import httpx

from profilesvc.client import operations
from profilesvc.client.errors import InvalidToken, ProfileApiError, RateLimited, ServiceUnavailable
from profilesvc.client.operation import Operation
from profilesvc.client.responses import failure_of
from profilesvc.client.sending import secure_url
from profilesvc.contract.tokens import Token

EARLY_SECONDS = 300.0
LATER_SECONDS = 30.0
_RENEWABLE = {"invalid", "expired", "revoked"}

Steps = Generator[httpx.Request | None, httpx.Response, None]


class BearerAuth(httpx.Auth):
    """A fixed token, such as a user token."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()  # pasted tokens end with a newline
        if not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise ValueError("a token is ASCII without spaces")  # httpx would quote the token

    def __repr__(self) -> str:
        return "BearerAuth(…)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token to the request."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


@dataclass(frozen=True)
class _Grant:
    """An access token and its times on the client's clock, in seconds."""

    access_token: str = field(repr=False)
    renew_at: float
    expires_at: float
    refresh_until: float


class ServiceAuth(httpx.Auth):
    """The tokens of an API key, granted at the first request and renewed five minutes early.

    A token is renewed with the refresh token while that is valid, else with the credentials, because the refresh token
    expires before the access token. A token that the service rejects as invalid, expired or revoked is replaced
    once. Threads, and tasks of one event loop, share one token and one call for it. Lifetimes are counted in seconds of
    `clock`, from the request. The default clock ignores changes of the wall clock. It can stop while a computer is
    suspended; then the service rejects the expired token and it is replaced.
    """

    def __init__(
        self,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = secure_url(base_url).rstrip("/") + operations.TOKEN_PATH
        self._client_id = client_id
        self._permissions = permissions
        self.use_secret(client_secret)
        self._clock = clock
        self._grant: _Grant | None = None
        self._refresh_token: str | None = None
        self._threads = threading.Lock()
        self._tasks = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ServiceAuth(client_id={self._client_id!r}, client_secret=…)"

    def use_secret(self, client_secret: str) -> None:
        """Use another secret from now on, such as after a roll; the tokens stay valid."""
        self._credentials = operations.client_credentials(self._client_id, client_secret, self._permissions)

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Authenticate a request of httpx.Client.

        Raises:
            ProfileApiError: No token was granted.
        """
        with contextlib.closing(self._flow(request, self._threads.release)) as flow, contextlib.suppress(StopIteration):
            step = next(flow)
            while True:
                if step is None:
                    self._threads.acquire()
                    step = next(flow)
                else:
                    response = yield step
                    response.read()
                    step = flow.send(response)

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Authenticate a request of httpx.AsyncClient.

        Raises:
            ProfileApiError: No token was granted.
        """
        with contextlib.closing(self._flow(request, self._tasks.release)) as flow, contextlib.suppress(StopIteration):
            step = next(flow)
            while True:
                if step is None:
                    await self._tasks.acquire()
                    step = next(flow)
                else:
                    response = yield step
                    await response.aread()
                    step = flow.send(response)

    def _flow(self, request: httpx.Request, release: Callable[[], None]) -> Steps:
        """Yield the requests to send. Yield None when the caller must acquire the lock; `release` releases it."""
        grant, rejection = self._grant, None
        while True:
            if grant is None or rejection is not None or self._clock() >= grant.renew_at:
                yield None
                grant = yield from self._renew_in_turn(request, grant, rejection, release)
            request.headers["Authorization"] = f"Bearer {grant.access_token}"
            response = yield request
            if rejection is not None or response.status_code != 401:
                return
            rejection = failure_of(response)
            if rejection.details.get("reason") not in _RENEWABLE:
                return

    def _renew_in_turn(
        self,
        request: httpx.Request,
        grant: _Grant | None,
        rejection: ProfileApiError | None,
        release: Callable[[], None],
    ) -> Generator[httpx.Request, httpx.Response, _Grant]:
        """Return the token that an earlier request in the queue got, or request a new one."""
        try:
            if self._grant is None or self._grant is grant:
                self._grant = yield from self._renew(request, grant, rejection)
            return self._grant
        finally:
            release()

    def _renew(
        self, request: httpx.Request, grant: _Grant | None, rejection: ProfileApiError | None
    ) -> Generator[httpx.Request, httpx.Response, _Grant]:
        """Request a new token. If that fails, raise the error of the rejected token, because it explains more."""
        try:
            return (yield from self._request_grant(request, grant, rejection))
        except InvalidToken as error:
            raise rejection or error from None
        except (RateLimited, ServiceUnavailable):
            now = self._clock()
            if grant is None or rejection is not None or now >= grant.expires_at:
                raise
            return replace(grant, renew_at=now + LATER_SECONDS)

    def _request_grant(
        self, request: httpx.Request, grant: _Grant | None, rejection: ProfileApiError | None
    ) -> Generator[httpx.Request, httpx.Response, _Grant]:
        """Renew with the refresh token, else with the credentials. A refresh token is used once, even if it fails."""
        refresh_token, self._refresh_token = self._refresh_token, None
        if grant and refresh_token and rejection is None and self._clock() < grant.refresh_until:
            with contextlib.suppress(InvalidToken):
                return (yield from self._call(request, operations.refresh(refresh_token)))
        return (yield from self._call(request, self._credentials))

    def _call(
        self, request: httpx.Request, operation: Operation[Token]
    ) -> Generator[httpx.Request, httpx.Response, _Grant]:
        """Call the token endpoint with the timeouts of the request that needs the token."""
        started = self._clock()
        limits = {name: value for name, value in request.extensions.items() if name == "timeout"}
        response = yield httpx.Request(operation.method, self._url, json=operation.body, extensions=limits)
        try:
            token = operation.read(response)
        except ProfileApiError as error:
            error.sent = False  # the request that needs the token was not sent
            raise
        self._refresh_token = token.refresh_token
        early = min(EARLY_SECONDS, token.expires_in / 2)
        expires = started + token.expires_in
        return _Grant(token.access_token, expires - early, expires, started + token.refresh_expires_in)


class Authenticated:
    """The base of both clients, whose requests `_auth` authenticates."""

    _http: httpx.Client | httpx.AsyncClient
    _auth: httpx.Auth | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url)!r}, {self._auth!r})"

    def use_secret(self, client_secret: str) -> None:
        """Use the new secret of a rolled key from now on; the tokens stay valid.

        Raises:
            ValueError: This client has no API key.
        """
        if not isinstance(self._auth, ServiceAuth):
            raise ValueError("only a client with an API key has a secret")  # noqa: TRY004
        self._auth.use_secret(client_secret)
