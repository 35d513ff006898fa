"""Calls to an unreliable provider: timeouts, retries, tokens, its quota and circuit breakers.

A call has a share of the time that one request of the service may spend at the provider, and raises only
ProviderError. Reads, masked patches, PUT and DELETE are retried after temporary failures. A POST is retried only if the
provider did not carry it out (it was not reached, or its response was 429), because it has no idempotency keys.
"""

import asyncio
import copy
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import Clock
from profilesvc.provider.breaker import Breakers, Unreachable
from profilesvc.provider.consent import Consent, Endpoints
from profilesvc.provider.oauth import TokenSource, login_error
from profilesvc.provider.port import Login, ProviderError
from profilesvc.provider.quota import Counters, Quota
from profilesvc.provider.responses import Received, read_document, read_response
from profilesvc.settings import ProviderSettings

Params = Mapping[str, str | list[str]]
Api = Literal["information", "verifications", "accounts", "posts", "notifications"]

# Shares of `timeout_seconds`. A sync reads and writes, and a retried post creation lists and writes, so that both take
# about one `timeout_seconds` in total. An import lists many pages, and its caller has no deadline.
READ, LIST = 0.4, 0.6
WRITE, IMPORT = 0.6, 5.0
_ATTEMPTS = 3
_WAIT = 0.5  # of the remaining time of an operation, for its turn within the quota
_LOCATION = re.compile(r"locations/[^/:]+")
_full_jitter = wait_random_exponential(multiplier=0.2, max=2)


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `operation` is its name in metrics, the method of `Provider`.

    `path` starts with the API's version. `edits` names the profile whose limit of edits the request counts towards.
    """

    operation: str
    api: Api
    method: str
    path: str
    share: float = READ
    params: Params = field(default_factory=dict)
    body: JsonObject | None = None
    edits: str = ""

    @property
    def location(self) -> str:
        """The name of the location in the path; empty if there is none."""
        match = _LOCATION.search(self.path)
        return match[0] if match else ""

    @property
    def has_no_effect(self) -> bool:
        """Return whether the request reads, or only validates an update."""
        return self.method == "GET" or self.params.get("validateOnly") == "true"

    @property
    def is_update(self) -> bool:
        """Return whether the request counts towards the limit of updates of locations per day."""
        return self.api == "information" and self.method == "PATCH" and not self.has_no_effect


@dataclass(slots=True)
class _Operation:
    """A call with all its retries, pauses and pages: until when it may take, and when the last page came.

    Both are by the loop's clock.
    """

    deadline: float = 0.0
    responded_at: float = -math.inf


# The callback for every request: API, operation, HTTP status or failure, and seconds.
Observe = Callable[[str, str, str, float], None]


def unobserved(_api: str, _operation: str, _outcome: str, _seconds: float) -> None:
    """Do nothing."""


class Transport:
    """The transport to the provider's APIs, each with its own base URL, quota and circuit breakers."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        settings: ProviderSettings,
        *,
        origin: str,
        clock: Clock,
        observe: Observe = unobserved,
        counters: Counters | None = None,
    ) -> None:
        self._client, self._clock = client, clock
        self._settings, self._observe = settings, observe
        own: dict[Api, str] = {
            "information": settings.information_url,
            "verifications": settings.verifications_url,
            "accounts": settings.accounts_url,
            "posts": settings.posts_url,
            "notifications": settings.notifications_url,
        }
        self._bases = {api: (url or origin).rstrip("/") for api, url in own.items()}
        self._breakers = Breakers(clock, own)
        self._endpoints = Endpoints.of(settings, origin)
        self._tokens = self._token_source(None)
        self.quota = Quota(settings, counters or Counters.in_memory(clock), get_args(Api))
        self._owner = 0  # the operator
        self._party: Hashable = None  # of the circuit breakers; None: the location

    def _token_source(self, login: Login | None) -> TokenSource:
        return TokenSource(self._client, self._settings, url=self._endpoints.token, clock=self._clock, login=login)

    def signed_in(self, login: Login) -> "Transport":
        """Return a transport over the same connections, with the tokens and the circuit breakers of a login."""
        other = self.for_owner(login.owner_id)
        other._tokens = self._token_source(login)
        other._party = object()
        return other

    def for_owner(self, owner_id: int) -> "Transport":
        """Return a transport over the same connections, whose requests are counted for an owner."""
        other = copy.copy(self)
        other._owner = owner_id
        return other

    def consent(self, transport: httpx.AsyncBaseTransport | None = None, authorize_url: str = "") -> Consent:
        """Return the client of the OAuth host; `authorize_url` is the consent page if browsers reach it elsewhere."""
        endpoints = replace(self._endpoints, authorize=authorize_url or self._endpoints.authorize)
        return Consent(self._settings, endpoints, transport)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def call(self, request: Request) -> JsonObject:
        """Send a request, with retries."""
        async with self._operation(request) as operation:
            return await self._with_retries(request, operation.deadline)

    async def pages(self, request: Request, name: str) -> list[JsonObject]:
        """Return the items of the field `name` from all pages, as one operation. Pages can be empty.

        Raises:
            ProviderError: A page token repeats, or the provider fails.
        """
        items: list[JsonObject] = []
        seen: set[str] = set()
        async with self._operation(request) as operation:
            while True:
                page = await self._with_retries(request, operation.deadline)
                operation.responded_at = asyncio.get_running_loop().time()
                items += objects_of(page.get(name, []))
                token = page.get("nextPageToken")
                if not token:
                    return items
                if not isinstance(token, str) or token in seen:
                    raise ProviderError("unavailable", retryable=True, provider_message="paging does not end")
                seen.add(token)
                request = replace(request, params={**request.params, "pageToken": token})

    @asynccontextmanager
    async def _operation(self, request: Request) -> AsyncIterator[_Operation]:
        """Yield the state of a call. Many pages that come one after the other are no outage, even if time runs out."""
        seconds, operation = self._settings.timeout_seconds, _Operation()
        try:
            with self._breakers.calling(request.api, self._party or request.location):
                try:
                    async with asyncio.timeout(seconds * request.share) as scope:
                        operation.deadline = scope.when() or 0
                        yield operation
                except TimeoutError:
                    if asyncio.get_running_loop().time() < operation.responded_at + seconds * READ:
                        raise ProviderError("timeout", retryable=True, provider_message="too many pages") from None
                    raise Unreachable("timeout", "no response in time") from None
        except ProviderError as error:
            error.is_read = request.has_no_effect
            raise

    async def _with_retries(self, request: Request, deadline: float) -> JsonObject:
        def out_of_time(state: RetryCallState) -> bool:
            return asyncio.get_running_loop().time() + state.upcoming_sleep >= deadline

        retrying = AsyncRetrying(
            sleep=self._clock.sleep,
            retry=retry_if_exception(lambda error: _may_repeat(request, error)),
            wait=_pause,
            stop=lambda state: stop_after_attempt(_ATTEMPTS)(state) or out_of_time(state),
            reraise=True,
        )
        try:
            return await retrying(self._send_once, request, deadline)
        except ProviderError as error:
            if error.not_found and request.method == "DELETE" and retrying.statistics["attempt_number"] > 1:
                return {}  # an earlier attempt succeeded, and its response was lost
            raise

    async def _send_once(self, request: Request, deadline: float) -> JsonObject:
        await self._count(request, deadline)
        started, outcome = time.monotonic(), "unreachable"
        try:
            received = await self._authorized(request, deadline)
            outcome = str(received.status)
        except ProviderError:
            raise
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unreachable("unavailable", f"no connection ({type(error).__name__})", reached=False) from None
        except httpx.TimeoutException:
            outcome = "timeout"
            raise Unreachable("timeout", "no response in time") from None
        except asyncio.CancelledError:  # the operation has timed out
            outcome = "timeout"
            raise
        except Exception as error:  # any other error of sockets, TLS or the embedded emulator
            raise Unreachable("unavailable", f"no connection ({type(error).__name__})") from None
        finally:
            self._observe(request.api, request.operation, outcome, time.monotonic() - started)
        return read_document(received)

    async def _count(self, request: Request, deadline: float) -> None:
        """Count a request towards the provider's limits, and wait for its turn."""
        if request.edits:
            await self.quota.count_edit(request.edits)
        await self._turn(request, deadline)
        if request.is_update:
            await self.quota.count_update(request.api, self._owner)

    async def _turn(self, request: Request, deadline: float) -> None:
        left = deadline - asyncio.get_running_loop().time()
        await self.quota.turn(request.api, self._owner, left * _WAIT)

    async def _authorized(self, request: Request, deadline: float) -> Received:
        """Send the request with a token. Replace a rejected token once."""
        token = await self._tokens.get()
        received = await self._send(request, token)
        if received.status == 401:
            await self._turn(request, deadline)
            received = await self._send(request, await self._tokens.get(rejected=token))
        if received.status == 401:
            raise login_error()
        return received

    async def _send(self, request: Request, token: str) -> Received:
        async with self._client.stream(
            request.method,
            f"{self._bases[request.api]}{request.path}",
            headers={"Authorization": f"Bearer {token}"},
            params=request.params or None,
            json=request.body,
            follow_redirects=False,
        ) as response:
            return await read_response(response, self._clock)


def _may_repeat(request: Request, error: BaseException) -> bool:
    """Return whether to retry: not after a rejection, the edit limit, or a POST that may have had its effect."""
    if not isinstance(error, ProviderError) or not error.retryable or error.reason == "timeout":
        return False
    if error.http_status == 429:
        return True
    return error.reason == "unavailable" and (request.method != "POST" or not error.reached)


def _pause(state: RetryCallState) -> float:
    """Return a random pause, so that calls do not retry together; at least the provider's Retry-After."""
    error = state.outcome.exception() if state.outcome else None
    retry_after = error.retry_after if isinstance(error, ProviderError) else None
    return max(_full_jitter(state), retry_after or 0)


def objects_of(value: object) -> list[JsonObject]:
    """Return a list of objects.

    Raises:
        ProviderError: It is something else.
    """
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ProviderError("unavailable", retryable=True, provider_message="response has an invalid list")
    return value
