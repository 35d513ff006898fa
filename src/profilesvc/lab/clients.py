"""The client library for the lab: calls are recorded, and pauses move the lab's clock instead of waiting."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from profilesvc.client import ProfileClient, Retries, SyncOptions

Transport = Callable[[str], httpx.BaseTransport]


def fields_of(key: object) -> Mapping[str, Any]:
    """Return a key's fields, from the response's dict or from the client's model."""
    return key if isinstance(key, Mapping) else vars(key)


class Clients:
    """The factory of ProfileClients. The lab closes their connections."""

    def __init__(self, url: str, transport: Transport, user_token: Callable[[str], str], time: SyncOptions) -> None:
        self._url, self._transport = url, transport
        self._user_token, self._time = user_token, time

    def _options(self, name: str) -> SyncOptions:
        return {**self._time, "transport": self._transport(name)}

    def user(self, name: str) -> ProfileClient:
        """Return a client for `alice`, `bob` or `carol`."""
        return ProfileClient.user(self._url, self._user_token(name), **self._options(name.capitalize()))

    def signed_in(self, name: str, id_token: str, nonce: str | None = None) -> ProfileClient:
        """Return a client for the user of an ID token. The name appears in the recorded calls."""
        return ProfileClient.signed_in(self._url, id_token, nonce, **self._options(name.capitalize()))

    def service(self, key: object, permissions: list[str] | None = None) -> ProfileClient:
        """Return a client for a site, with the key from the response to its creation, as a dict or a model."""
        key = fields_of(key)
        options = self._options(str(key.get("name", "service")))
        pair = str(key["client_id"]), str(key["client_secret"])
        return ProfileClient.service(self._url, *pair, permissions, **options)

    def anonymous(self) -> ProfileClient:
        """Return a client without credentials."""
        return ProfileClient.anonymous(self._url, **self._options("anonymous"))


def frozen_time(now: Callable[[], int], advance: Callable[..., object]) -> SyncOptions:
    """Return options for a frozen clock, with `now` in milliseconds. A pause advances it."""
    return {
        "clock": lambda: now() / 1000,
        "sleep": lambda seconds: advance(seconds=seconds),
        "retries": Retries(chance=lambda: 1.0),
    }
