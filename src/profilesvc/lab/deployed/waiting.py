"""Wait for a deployed service: always for rate limits, and for a limited time during an outage."""

import time
from collections.abc import Callable

import httpx

from profilesvc.contract.retry_after import retry_after
from profilesvc.lab.views.record import error_of

LONGEST_WAIT_SECONDS = 180.0  # for all rate limits of one request
_USUAL_PAUSE_SECONDS = 5.0


class Waiting(httpx.BaseTransport):
    """A transport that repeats a request after a rate limit or an outage of the service or the provider.

    A request that exceeds a rate limit has had no effect. `patience` is the number of seconds to wait for outages, for
    all requests together; use it only for requests that may be repeated. `waited` is the time waited in seconds.
    """

    def __init__(
        self, inner: httpx.BaseTransport, patience: float = 0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._inner, self._patience = inner, patience
        self._sleep = sleep
        self.waited = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request until waiting does not help.

        Raises:
            httpx.TransportError: The service does not respond.
        """
        request.read()
        left = LONGEST_WAIT_SECONDS
        while True:
            response, failure = self._send(request)
            pause = None if response is None else _limit_pause(response)
            if pause is not None and pause <= left:
                left -= pause
            elif pause is None and self._patience > 0 and (response is None or _is_outage(response)):
                pause = min(_USUAL_PAUSE_SECONDS, self._patience)
                self._patience -= pause
            elif failure is not None:
                raise failure
            else:
                assert response is not None
                return response
            self.waited += pause
            self._sleep(pause)

    def _send(self, request: httpx.Request) -> tuple[httpx.Response | None, httpx.TransportError | None]:
        started = time.monotonic()
        try:
            response = self._inner.handle_request(request)
            response.read()
        except httpx.TransportError as error:
            self._patience -= time.monotonic() - started
            return None, error
        return response, None

    def close(self) -> None:
        self._inner.close()


def _limit_pause(response: httpx.Response) -> float | None:
    """Return the seconds until a rate limit allows a request; None for other responses and a monthly quota."""
    error = error_of(response)
    details = error.get("details")
    by_provider = isinstance(details, dict) and details.get("reason") == "rate_limited"
    if error.get("code") == "QUOTA_EXCEEDED" or not (response.status_code == 429 or by_provider):
        return None
    wait = retry_after(response.headers.get("Retry-After"), time.time())
    return _USUAL_PAUSE_SECONDS if wait is None else max(wait, 1.0)


def _is_outage(response: httpx.Response) -> bool:
    """Return whether the same request may succeed after an outage."""
    details = error_of(response).get("details")
    final = isinstance(details, dict) and details.get("retryable") is False
    return response.status_code in {502, 503, 504} and not final
