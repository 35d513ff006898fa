"""The client library, bound to the lab: its calls are recorded, its clock is the lab's, its pauses cost no time."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from profilesvc.client import ProfileClient, Retries, SyncOptions

Transport = Callable[[str], httpx.BaseTransport]


def members_of(key: Any) -> Mapping[str, Any]:
    """Return a key's fields, from the response's dict or from the client's model."""
    return key if isinstance(key, Mapping) else vars(key)


class Clients:
    """Makes ProfileClients; the lab closes their connections."""

    def __init__(self, url: str, transport: Transport, user_token: Callable[[str], str], time: SyncOptions) -> None:
        self._url, self._transport, self._user_token, self._time = url, transport, user_token, time

    def _options(self, name: str) -> SyncOptions:
        return {**self._time, "transport": self._transport(name)}

    def user(self, name: str) -> ProfileClient:
        """`alice`, `bob` or `carol`."""
        return ProfileClient.user(self._url, self._user_token(name), **self._options(name.capitalize()))

    def signed_in(self, name: str, id_token: str, nonce: str | None = None) -> ProfileClient:
        """A user by their ID token; the name is for the record."""
        return ProfileClient.signed_in(self._url, id_token, nonce, **self._options(name.capitalize()))

    def service(self, key: Any, permissions: list[str] | None = None) -> ProfileClient:
        """A site with a key: what its creation answered, as a dict or as a model."""
        key = members_of(key)
        options = self._options(str(key.get("name", "service")))
        pair = str(key["client_id"]), str(key["client_secret"])
        return ProfileClient.service(self._url, *pair, permissions, **options)

    def anonymous(self) -> ProfileClient:
        """Nobody."""
        return ProfileClient.anonymous(self._url, **self._options("anonymous"))


def frozen_time(now: Callable[[], int], advance: Callable[..., object]) -> SyncOptions:
    """Options for a clock that is moved by hand (`now` in milliseconds): a pause moves it instead of waiting."""
    return {
        "clock": lambda: now() / 1000,
        "sleep": lambda seconds: advance(seconds=seconds),
        "retries": Retries(chance=lambda: 1.0),
    }
