"""The provider over the network: the real one, or an emulator that another process serves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from pydantic import SecretStr

from profilesvc.domain.time import Clock
from profilesvc.provider.port import Provider
from profilesvc.provider.quota import Counters
from profilesvc.provider.remote import RemoteProvider
from profilesvc.provider.transport import Observe, Transport, unobserved
from profilesvc.settings import ProviderSettings, Settings

_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30)


@asynccontextmanager
async def open_provider(
    settings: Settings, *, clock: Clock, observe: Observe = unobserved, counters: Counters | None = None
) -> AsyncIterator[Provider]:
    """Open the client of the provider at the configured address; without `counters` this process counts on its own."""
    seconds = settings.provider.timeout_seconds
    timeout = httpx.Timeout(seconds, connect=seconds / 4)  # so that a connection can be retried within the timeout
    client = httpx.AsyncClient(timeout=timeout, limits=_LIMITS)
    provider = settings.provider
    if not (settings.production or provider.client_id or provider.refresh_token or provider.token_url):
        provider = emulator_login(provider)  # the real provider needs a login of its own
    transport = Transport(client, provider, origin=provider.url, clock=clock, observe=observe, counters=counters)
    remote = RemoteProvider(transport)
    try:
        yield remote
    finally:
        await remote.aclose()


def emulator_login(settings: ProviderSettings) -> ProviderSettings:
    """Return the settings with a login for an emulator, which accepts any that is not empty.

    A limit of the provider applies only if it is set explicitly.
    """
    login = {name: SecretStr("emulator") for name in ("client_secret", "refresh_token")}
    own = dict.fromkeys(("token_url", "authorize_url", "revoke_url", "userinfo_url"), "")
    off = dict.fromkeys({"edits_per_minute", "requests_per_minute", "updates_per_day"} - settings.model_fields_set, 0)
    return settings.model_copy(update={**login, "client_id": "emulator", **off, **own})
