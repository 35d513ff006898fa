"""Connect to the provider over the network, or to the emulator in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import SecretStr
from quart import Quart

from profilesvc.domain.world import Clock, Entropy
from profilesvc.emulator.app import create_emulator
from profilesvc.emulator.guard import Guard
from profilesvc.provider.port import Provider
from profilesvc.provider.remote import RemoteProvider
from profilesvc.provider.transport import Observe, unobserved
from profilesvc.settings import ProviderSettings, Settings

EMULATOR_FILE = "emulator.db"
_EMULATOR_ORIGIN = "http://emulator"
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30)


@asynccontextmanager
async def open_provider(
    settings: Settings,
    *,
    clock: Clock,
    entropy: Entropy,
    world: dict[str, Any] | None,
    guard: Guard | None = None,
    observe: Observe = unobserved,
) -> AsyncIterator[tuple[Provider, Quart | None]]:
    """Return the provider, and the emulator's app if that is used (its lifespan runs; serve it without one).

    The emulator has its file in DATA_DIR and fills a new one with the demo data. Serving it needs a `guard`.
    """
    if not settings.provider.embedded:
        client = httpx.AsyncClient(timeout=_timeout(settings.provider), limits=_LIMITS)
        login = settings.provider if settings.production else _with_login(settings.provider)
        remote = RemoteProvider(client, login, origin=settings.provider.url, clock=clock, observe=observe)
        try:
            yield remote, None
        finally:
            await remote.aclose()
        return
    app = create_emulator(settings.data_dir / EMULATOR_FILE, clock=clock, entropy=entropy, world=world, guard=guard)
    async with app.test_app():
        transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # httpx types ASGI scopes as plain mappings
        client = httpx.AsyncClient(transport=transport, trust_env=False)
        login = _emulator_login(settings.provider)
        embedded = RemoteProvider(client, login, origin=_EMULATOR_ORIGIN, clock=clock, observe=observe)
        try:
            yield embedded, app
        finally:
            await embedded.aclose()


def _timeout(settings: ProviderSettings) -> httpx.Timeout:
    """Limit the time for a connection, so that it can be retried within the operation's time."""
    return httpx.Timeout(settings.timeout_seconds, connect=settings.timeout_seconds / 4)


def _emulator_login(settings: ProviderSettings) -> ProviderSettings:
    """Return settings for the emulator. It accepts any login that is not empty, and counts edits only on request."""
    login: dict[str, Any] = {name: SecretStr("emulator") for name in ("client_secret", "refresh_token")}
    edits = settings.edits_per_minute if "edits_per_minute" in settings.model_fields_set else 0
    return settings.model_copy(update={**login, "client_id": "emulator", "token_url": "", "edits_per_minute": edits})


def _with_login(settings: ProviderSettings) -> ProviderSettings:
    """Return whether the provider is an emulator: only that is configured without a login."""
    own = settings.client_id or settings.refresh_token or settings.token_url
    return settings if own else _emulator_login(settings)
