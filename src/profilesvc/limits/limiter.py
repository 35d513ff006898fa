"""Rate limits: the buckets that a request is counted in (D-50).

A bucket is `<name>:<subject>`. Its name is the setting's, and callers see it in the response's RateLimit headers.
"""

from collections.abc import Callable
from typing import Literal

from profilesvc.contract.errors import RATE_LIMITED
from profilesvc.domain.addresses import network
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.rates import Counted, Standing, Window, Windows
from profilesvc.domain.request import current
from profilesvc.limits.settings import LimitSettings

Kind = Literal["tokens", "heartbeats", "reads", "writes"]


class Limiter:
    """Counts requests. Every method but `aclose` raises RATE_LIMITED, with the seconds to wait, if there are too many.

    Without windows it neither counts nor refuses. `refused` is called with the bucket of each refusal.
    """

    def __init__(
        self, limits: LimitSettings, windows: Windows | None, refused: Callable[[str], None] = lambda _: None
    ) -> None:
        self._limits = limits
        self._windows = windows
        self._refused = refused

    async def by_address(self) -> None:
        """Count a request without a bearer token, by the network that it comes from."""
        if self._windows is not None:
            await self._take("tokens-per-address", _network(), self._limits.tokens_per_address)

    async def by_client(self, client_id: str) -> None:
        """Count a grant or check of credentials, by client id and network: other networks are never affected."""
        if self._windows is not None:
            await self._take("tokens-per-client", _client(client_id), self._limits.tokens_per_client)

    async def wrong_secret(self, client_id: str) -> None:
        """Count a wrong secret. A right one is never refused, so that an attacker cannot lock out a site."""
        if self._windows is None:
            return
        window = self._limits.wrong_secrets
        delay = await self._windows.strike(f"wrong-secrets:{_client(client_id)}", window)
        if delay:
            self._note(Counted("wrong-secrets", window, Standing(0, delay)), refused=True)

    async def by_caller(self, kind: Kind, key_id: int | None, user_id: int, more: Window | None) -> None:
        """Count a request with a bearer token, by its key or else its user; `more` is the plan's rate of reads."""
        who = "user" if key_id is None else "key"
        window: Window | None = getattr(self._limits, f"{kind}_per_{who}", None)
        if window is None:  # a user on a route for keys, who is refused next
            return
        if kind == "reads" and more is not None:
            window = max(window, more, key=lambda one: one.rate)
        await self._take(f"{kind}-per-{who}", str(user_id if key_id is None else key_id), window)

    async def sync(self, location: str) -> None:
        """Count a sync that is about to run; a replayed response does not count."""
        await self._take("syncs-per-location", location, self._limits.syncs_per_location)

    async def verification(self, location: str) -> None:
        """Count a question to the provider whether a location is verified."""
        await self._take("verifications-per-location", location, self._limits.verifications_per_location)

    async def creation(self, user_id: int) -> None:
        """Count a new key."""
        await self._take("creations-per-user", str(user_id), self._limits.creations_per_user)

    async def aclose(self) -> None:
        """Close the counters' connections."""
        if self._windows is not None:
            await self._windows.close()

    async def _take(self, name: str, subject: str, window: Window) -> None:
        if self._windows is None:
            return
        granted, standing = await self._windows.take(f"{name}:{subject}", window)
        self._note(Counted(name, window, standing), refused=not granted)

    def _note(self, counted: Counted, refused: bool) -> None:
        """Remember the bucket for the response's headers; a refusal waits for the last of all empty buckets."""
        buckets = current().buckets
        buckets.append(counted)
        if refused:
            self._refused(counted.name)
            empty = [bucket.seconds for bucket in buckets if bucket.standing.left == 0]
            raise ServiceError(RATE_LIMITED, retry_after=max(empty))


def _client(client_id: str) -> str:
    """Leave out a client id that no key can have, because it may be of any length."""
    return f"{client_id if CLIENT_ID.match(client_id) else ''}@{_network()}"


def _network() -> str:
    """Return what one customer of an access provider has: an IPv4 address or an IPv6 /64."""
    address = current().address
    return "local" if address is None else network(address, 32, 64)
