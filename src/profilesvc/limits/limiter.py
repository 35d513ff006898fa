"""Rate limits: which buckets a request is taken from, and what its answer says of them (D-50).

A bucket is `<name>:<subject>`; its name is the setting's and the one in the answer's RateLimit fields.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from profilesvc.contract.errors import RATE_LIMITED
from profilesvc.domain.addresses import network
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.rates import Standing, Window, Windows
from profilesvc.domain.world import SECOND
from profilesvc.limits.settings import LimitSettings

Kind = Literal["tokens", "heartbeats", "reads", "writes"]


@dataclass(frozen=True, slots=True)
class Counted:
    """One bucket that a request was counted in."""

    name: str
    window: Window
    standing: Standing

    @property
    def seconds(self) -> int:
        """Whole seconds until there is more, at least one."""
        return max(-(-self.standing.wait // SECOND), 1)

    @property
    def headers(self) -> dict[str, str]:
        """RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-10)."""
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.window.limit};w={self.window.seconds}',
            "RateLimit": f'"{self.name}";r={self.standing.left};t={self.seconds}',
        }


@dataclass(slots=True)
class Account:
    """From where a request comes, and what it was counted in so far."""

    address: str | None = None
    buckets: list[Counted] = field(default_factory=list)

    @property
    def tightest(self) -> Counted | None:
        """The bucket with the least left; of empty ones the one that stays so longest."""
        return min(self.buckets, key=lambda counted: (counted.standing.left, -counted.standing.wait), default=None)


# Set once per request, at the edge of the API; elsewhere nothing reads it.
account: ContextVar[Account] = ContextVar("account")


class Limiter:
    """Counts requests; every method raises RATE_LIMITED, with Retry-After, where there are too many.

    Without windows nothing is counted and nothing is refused. `refused` is told the bucket of each refusal.
    """

    def __init__(
        self, limits: LimitSettings, windows: Windows | None, refused: Callable[[str], None] = lambda _: None
    ) -> None:
        self._limits = limits
        self._windows = windows
        self._refused = refused

    async def by_address(self) -> None:
        """A request without a bearer token, by the network that it comes from."""
        if self._windows is not None:
            await self._take("tokens-per-address", _network(), self._limits.tokens_per_address)

    async def by_client(self, client_id: str) -> None:
        """A grant or check of credentials, by the client id and the network: other networks are never affected."""
        if self._windows is not None:
            await self._take("tokens-per-client", _client(client_id), self._limits.tokens_per_client)

    async def wrong_secret(self, client_id: str) -> None:
        """A wrong secret. Only wrong ones are counted and refused, so that nobody can lock out a site."""
        if self._windows is None:
            return
        window = self._limits.wrong_secrets
        delay = await self._windows.strike(f"wrong-secrets:{_client(client_id)}", window)
        if delay:
            self._note(Counted("wrong-secrets", window, Standing(0, delay)), refused=True)

    async def by_caller(self, kind: Kind, key_id: int | None, user_id: int, more: Window | None) -> None:
        """A request with a bearer token, by its key or else its user; `more` is what the plan grants for reads."""
        who = "user" if key_id is None else "key"
        window: Window | None = getattr(self._limits, f"{kind}_per_{who}", None)
        if window is None:  # a user on a route for keys, who is refused in a moment
            return
        if kind == "reads" and more is not None:
            window = max(window, more, key=lambda one: one.rate)
        await self._take(f"{kind}-per-{who}", str(user_id if key_id is None else key_id), window)

    async def sync(self, location: str) -> None:
        """A sync that is about to run: not a repeated answer."""
        await self._take("syncs-per-location", location, self._limits.syncs_per_location)

    async def verification(self, location: str) -> None:
        """A question to the provider whether a location is verified."""
        await self._take("verifications-per-location", location, self._limits.verifications_per_location)

    async def creation(self, user_id: int) -> None:
        """A new key."""
        await self._take("creations-per-user", str(user_id), self._limits.creations_per_user)

    async def aclose(self) -> None:
        """Give back what the counters hold open."""
        if self._windows is not None:
            await self._windows.close()

    async def _take(self, name: str, subject: str, window: Window) -> None:
        if self._windows is None:
            return
        granted, standing = await self._windows.take(f"{name}:{subject}", window)
        self._note(Counted(name, window, standing), refused=not granted)

    def _note(self, counted: Counted, refused: bool) -> None:
        """Remember for the answer's headers; a refusal says when the last of all empty buckets has room again."""
        buckets = account.get(Account()).buckets
        buckets.append(counted)
        if refused:
            self._refused(counted.name)
            empty = [bucket.seconds for bucket in buckets if bucket.standing.left == 0]
            raise ServiceError(RATE_LIMITED, retry_after=max(empty))


def _client(client_id: str) -> str:
    """A client id that no key can have is not kept: it may be of any length."""
    return f"{client_id if CLIENT_ID.match(client_id) else ''}@{_network()}"


def _network() -> str:
    """What one customer of an access provider has: an IPv4 address or an IPv6 /64."""
    address = account.get(Account()).address
    return "local" if address is None else network(address, 32, 64)
