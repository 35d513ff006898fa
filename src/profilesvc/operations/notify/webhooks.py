"""Webhooks of all owners, for the operator."""

from typing import NamedTuple
from urllib.parse import urlsplit

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import iso_or_none
from profilesvc.operations.notify import sweep
from profilesvc.services.context import Services
from profilesvc.services.notify.channels import switched
from profilesvc.services.notify.webhooks import WEBHOOKS
from profilesvc.storage.notify import channels, deliveries
from profilesvc.storage.notify.channels import Channel


class ShownWebhook(NamedTuple):
    """A webhook without its path, because the path of a chat's webhook is a secret."""

    id: int
    owner_id: int
    format: str
    host: str
    state: str
    failing_since: str | None


def _entry(channel: Channel) -> ShownWebhook:
    failing = iso_or_none(channel.failing_since)
    state = "enabled" if channel.disabled_at is None else f"disabled: {channel.disabled_reason}"
    kind = "standard" if channel.kind == "webhook" else channel.kind
    return ShownWebhook(channel.id, channel.owner_id, kind, urlsplit(channel.target).netloc, state, failing)


async def listing(services: Services) -> list[ShownWebhook]:
    """Return the webhooks of all owners, oldest first."""
    async with services.storage.read() as session:
        return [_entry(row) for row in await channels.all_channels(session, WEBHOOKS.kinds)]


async def switch(services: Services, owner_id: int, number: int, *, enabled: bool) -> ShownWebhook:
    """Enable or disable a webhook.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        if enabled:
            await channels.change(session, owner_id, number, **switched(None))
        else:
            await channels.disable(session, owner_id, number, services.clock.now(), "operator")
        channel = await channels.find(session, owner_id, number, WEBHOOKS.kinds)
        if channel is None:
            raise ServiceError(NOT_FOUND, "There is no such webhook.")
        return _entry(channel)


async def backlog(services: Services) -> dict[str, int]:
    """Return how many deliveries are due, and for how many seconds the oldest one is."""
    now = services.clock.now()
    async with services.storage.read() as session:
        queued, oldest = await deliveries.backlog(session, now)
    return {"queued": queued, "oldest_seconds": 0 if oldest is None else (now - oldest) // 1000}


async def figures(services: Services) -> dict[str, dict[str, int]]:
    """Return the backlog, and whether alarms are held, for the metrics."""
    held = await sweep.held_since(services) is not None
    return {"delivery_backlog": await backlog(services), "alarms": {"held": int(held)}}
