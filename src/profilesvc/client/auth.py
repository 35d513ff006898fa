"""Bearer tokens for httpx: a fixed one, or one that is granted to an API key and kept fresh."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field, replace

import httpx

from profilesvc.client import operations
from profilesvc.client.answers import failure_of
from profilesvc.client.errors import InvalidToken, ProfileApiError, RateLimited, ServiceUnavailable
from profilesvc.client.operation import Operation
from profilesvc.contract.tokens import Token

EARLY_SECONDS = 300.0
LATER_SECONDS = 30.0
_RENEWABLE = {"invalid", "expired", "revoked"}

Steps = Generator[httpx.Request | None, httpx.Response, None]


class BearerAuth(httpx.Auth):
    """A token that the caller got elsewhere, such as a user token."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()  # pasted with its line end
        if not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise ValueError("a token is ASCII without spaces")  # the HTTP library's error would repeat it

    def __repr__(self) -> str:
        return "BearerAuth(…)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


@dataclass(frozen=True)
class _Held:
    """A grant and its times by the client's own clock, in seconds."""

    access_token: str = field(repr=False)
    renew_at: float
    expires_at: float
    refresh_until: float


class ServiceAuth(httpx.Auth):
    """The tokens of an API key: granted at the first request, renewed five minutes early.

    A token is renewed with the refresh token while that is valid, else with the credentials, because the refresh token
    expires before the access token (D-11). A token that the service rejects as invalid, expired or revoked is replaced
    once. Threads, and tasks of one event loop, share one token and one call for it. Lifetimes are counted from the
    request on `clock`, in seconds. The default clock ignores changes of the wall clock; after a suspended computer
    wakes up, a rejected token is replaced.
    """

    def __init__(
        self,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = base_url.rstrip("/") + operations.TOKEN_PATH
        self._client_id = client_id
        self._permissions = permissions
        self.use_secret(client_secret)
        self._clock = clock
        self._held: _Held | None = None
        self._refresh_token: str | None = None
        self._threads = threading.Lock()
        self._tasks = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ServiceAuth(client_id={self._client_id!r}, client_secret=…)"

    def use_secret(self, client_secret: str) -> None:
        """Use another secret from now on, as after a roll; the tokens stay valid."""
        self._credentials = operations.client_credentials(self._client_id, client_secret, self._permissions)

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """For httpx.Client. ProfileApiError when no token is granted."""
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
        """For httpx.AsyncClient. ProfileApiError when no token is granted."""
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

    def _flow(self, request: httpx.Request, give_back: Callable[[], None]) -> Steps:
        """What both flows do: yields requests to send, and None for the lock to be taken, which it gives back."""
        held, refusal = self._held, None
        while True:
            if held is None or refusal is not None or self._clock() >= held.renew_at:
                yield None
                held = yield from self._in_turn(request, held, refusal, give_back)
            request.headers["Authorization"] = f"Bearer {held.access_token}"
            response = yield request
            if refusal is not None or response.status_code != 401:
                return
            refusal = failure_of(response)
            if refusal.details.get("reason") not in _RENEWABLE:
                return

    def _in_turn(
        self,
        request: httpx.Request,
        held: _Held | None,
        refusal: ProfileApiError | None,
        give_back: Callable[[], None],
    ) -> Generator[httpx.Request, httpx.Response, _Held]:
        """The token that the one before in the queue got, or a new one."""
        try:
            if self._held is None or self._held is held:
                self._held = yield from self._renewed(request, held, refusal)
            return self._held
        finally:
            give_back()

    def _renewed(
        self, request: httpx.Request, held: _Held | None, refusal: ProfileApiError | None
    ) -> Generator[httpx.Request, httpx.Response, _Held]:
        """Request a new token. If that fails, raise why the old token was rejected, which explains more."""
        try:
            return (yield from self._granted(request, held, refusal))
        except InvalidToken as error:
            raise refusal or error from None
        except (RateLimited, ServiceUnavailable):
            now = self._clock()
            if held is None or refusal is not None or now >= held.expires_at:
                raise
            return replace(held, renew_at=now + LATER_SECONDS)

    def _granted(
        self, request: httpx.Request, held: _Held | None, refusal: ProfileApiError | None
    ) -> Generator[httpx.Request, httpx.Response, _Held]:
        """Renew with the refresh token, else with the credentials. A refresh token is used once, even if it fails."""
        refresh_token, self._refresh_token = self._refresh_token, None
        if held and refresh_token and refusal is None and self._clock() < held.refresh_until:
            with contextlib.suppress(InvalidToken):
                return (yield from self._call(request, operations.refresh(refresh_token)))
        return (yield from self._call(request, self._credentials))

    def _call(
        self, request: httpx.Request, operation: Operation[Token]
    ) -> Generator[httpx.Request, httpx.Response, _Held]:
        """One call of the token route, with the time limits of the request that needs it."""
        asked = self._clock()
        limits = {name: value for name, value in request.extensions.items() if name == "timeout"}
        response = yield httpx.Request(operation.method, self._url, json=operation.body, extensions=limits)
        try:
            token = operation.read(response)
        except ProfileApiError as error:
            error.sent = False  # the request that needs the token has not been carried out
            raise
        self._refresh_token = token.refresh_token
        early = min(EARLY_SECONDS, token.expires_in / 2)
        expires = asked + token.expires_in
        return _Held(token.access_token, expires - early, expires, asked + token.refresh_expires_in)


def use_secret(auth: httpx.Auth | None, client_secret: str) -> None:
    """Give a service's authentication the new secret of its key. ValueError for another kind."""
    if not isinstance(auth, ServiceAuth):
        raise ValueError("only a client with an API key has a secret")  # noqa: TRY004
    auth.use_secret(client_secret)
