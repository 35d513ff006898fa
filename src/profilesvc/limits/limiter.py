"""Rate limits: every bucket is named after its setting, and callers see the name in the RateLimit headers (D-50)."""

from collections.abc import Callable
from typing import Literal

from profilesvc.contract.errors import RATE_LIMITED
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.rates import Counted, Standing, Window, Windows
from profilesvc.domain.request import current_request
from profilesvc.limits.settings import LimitSettings

Kind = Literal["tokens", "heartbeats", "reads", "writes"]
Bucket = Literal[
    "tokens-per-address",
    "tokens-per-client",
    "syncs-per-location",
    "verifications-per-location",
    "creations-per-user",
    "mails-per-user",
    "links-per-address",
    "calls-per-user",
]


class Limiter:
    """The rate limits of this process. Every method except `aclose` raises RATE_LIMITED when a limit is exceeded.

    Without `windows` there are no limits. `on_rejected` is called with the name of the bucket that has no room.
    """

    def __init__(
        self, limits: LimitSettings, windows: Windows | None, on_rejected: Callable[[str], None] = lambda _: None
    ) -> None:
        self._limits = limits
        self._windows = windows
        self._on_rejected = on_rejected

    async def by_address(self) -> None:
        """Count a request to a public endpoint, by the network of the client."""
        if self._windows is not None:
            await self.count("tokens-per-address", current_request().client_network)

    async def by_client(self, client_id: str) -> None:
        """Count a grant or credential check by client id and network, so that other networks are not affected."""
        if self._windows is not None:
            await self.count("tokens-per-client", _client(client_id))

    async def wrong_secret(self, client_id: str) -> None:
        """Count a wrong secret. A correct one is never rejected, so that an attacker cannot lock out a site."""
        if self._windows is None:
            return
        window = self._limits.wrong_secrets
        delay = await self._windows.strike(f"wrong-secrets:{_client(client_id)}", window)
        if delay:
            self._count(Counted("wrong-secrets", window, Standing(0, delay)), is_full=True)

    async def by_caller(self, kind: Kind, key_id: int | None, user_id: int, plan_reads: Window | None) -> None:
        """Count a request with a bearer token, by its key, or by its user if there is no key."""
        owner = "user" if key_id is None else "key"
        window: Window | None = getattr(self._limits, f"{kind}_per_{owner}", None)
        if window is None:  # a user token on a route for keys, which is rejected next
            return
        if kind == "reads" and plan_reads is not None:
            window = max(window, plan_reads, key=lambda candidate: candidate.rate)
        await self._take(f"{kind}-per-{owner}", user_id if key_id is None else key_id, window)

    async def count(self, bucket: Bucket, subject: object) -> None:
        """Count a request of a location, user or address in a bucket, whose rate is the setting of the same name."""
        await self._take(bucket, subject, getattr(self._limits, bucket.replace("-", "_")))

    async def aclose(self) -> None:
        """Close the counters' connections."""
        if self._windows is not None:
            await self._windows.close()

    async def _take(self, name: str, subject: object, window: Window) -> None:
        if self._windows is None:
            return
        granted, standing = await self._windows.take(f"{name}:{subject}", window)
        self._count(Counted(name, window, standing), is_full=not granted)

    def _count(self, counted: Counted, is_full: bool) -> None:
        """Add the bucket to the response's headers."""
        buckets = current_request().buckets
        buckets.append(counted)
        if is_full:
            self._on_rejected(counted.name)
            empty = [bucket.seconds for bucket in buckets if bucket.standing.left == 0]
            raise ServiceError(RATE_LIMITED, retry_after=max(empty))


def _client(client_id: str) -> str:
    """Return a client's bucket. An id that no key can have is left out, because it may have any length."""
    return f"{client_id if CLIENT_ID.match(client_id) else ''}@{current_request().client_network}"
