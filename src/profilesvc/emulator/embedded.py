"""The emulator inside this process, behind the same client as the provider over the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from quart import Quart
from quart.testing.app import TestApp

from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.time import Clock
from profilesvc.emulator.access import ControlAccess
from profilesvc.emulator.app import create_emulator
from profilesvc.emulator.browser import PATH
from profilesvc.emulator.consent import AUTHORIZE
from profilesvc.emulator.notifications import CERTS
from profilesvc.provider.connect import emulator_login
from profilesvc.provider.port import Provider
from profilesvc.provider.quota import Counters
from profilesvc.provider.remote import RemoteProvider
from profilesvc.provider.transport import Observe, Transport, unobserved
from profilesvc.settings import Settings

EMULATOR_FILE = "emulator.db"
_ORIGIN = "http://emulator"
_PATIENCE_SECONDS = 60  # Quart gives up a start after 6 s, and a busy machine has needed longer


CERTS_URL = f"{_ORIGIN}{CERTS}"


def transport_of(app: Quart) -> httpx.ASGITransport:
    """Return the transport that calls an emulator in this process."""
    return httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # httpx types ASGI scopes as plain mappings


def push_to(app: Quart, settings: Settings, address: str) -> None:
    """Let the emulator push notifications to the service at an address, unless its switches name another endpoint."""
    feed, shared = settings.notifications, app.extensions["emulator"]
    if feed.enabled:
        shared.pushing = {
            "push_endpoint": f"{address}/provider/notifications",
            "push_audience": settings.effective_audience,
            "push_service_account": feed.service_account,
        }


@asynccontextmanager
async def open_emulator(
    settings: Settings,
    *,
    clock: Clock,
    entropy: Entropy,
    world: JsonObject | None,
    access: ControlAccess | None = None,
    observe: Observe = unobserved,
    counters: Counters | None = None,
) -> AsyncIterator[tuple[Provider, Quart]]:
    """Open the emulator and a client of it. The app's lifespan is already running, so serve the app without one.

    The emulator stores its data in DATA_DIR and starts with the demo data `world`. To serve it, pass an `access`.
    """
    app = create_emulator(settings.data_dir / EMULATOR_FILE, clock=clock, entropy=entropy, world=world, access=access)
    async with TestApp(app, _PATIENCE_SECONDS, _PATIENCE_SECONDS):
        transport = transport_of(app)
        client = httpx.AsyncClient(transport=transport, trust_env=False)
        login = emulator_login(settings.provider)
        port = Transport(client, login, origin=_ORIGIN, clock=clock, observe=observe, counters=counters)
        page = f"{settings.base_url}{PATH}{AUTHORIZE}"
        provider = RemoteProvider(port, port.consent(transport, page))
        try:
            yield provider, app
        finally:
            await provider.aclose()
