"""Choosing the way to the provider: the network, or the emulator inside this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import SecretStr
from quart import Quart

from profilesvc.domain.world import Clock, Entropy
from profilesvc.provider.emulator.app import create_emulator
from profilesvc.provider.port import Provider
from profilesvc.provider.remote import RemoteProvider
from profilesvc.settings import ProviderSettings, Settings

EMULATOR_FILE = "emulator.db"
_EMULATOR_ORIGIN = "http://emulator"


@asynccontextmanager
async def open_provider(
    settings: Settings, *, clock: Clock, entropy: Entropy, world: dict[str, Any] | None
) -> AsyncIterator[tuple[Provider, Quart | None]]:
    """The provider, and the emulator's app where that stands in for it (its lifespan runs; serve it without one).

    The emulator keeps its file in DATA_DIR and fills it from the world when it is new.
    """
    if not settings.provider.embedded:
        client = httpx.AsyncClient(timeout=settings.provider.timeout_seconds)
        remote = RemoteProvider(client, settings.provider, origin=settings.provider.url, clock=clock, entropy=entropy)
        try:
            yield remote, None
        finally:
            await remote.aclose()
        return
    app = create_emulator(settings.data_dir / EMULATOR_FILE, clock=clock, entropy=entropy, world=world)
    async with app.test_app():
        transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # httpx types ASGI scopes as plain mappings
        client = httpx.AsyncClient(transport=transport, trust_env=False)
        embedded = RemoteProvider(
            client, _emulator_login(settings.provider), origin=_EMULATOR_ORIGIN, clock=clock, entropy=entropy
        )
        try:
            yield embedded, app
        finally:
            await embedded.aclose()


def _emulator_login(settings: ProviderSettings) -> ProviderSettings:
    """The emulator takes any login; it only must not be empty."""
    login = {"client_id": "emulator", "client_secret": SecretStr("emulator"), "refresh_token": SecretStr("emulator")}
    return settings.model_copy(update={**login, "token_url": ""})
