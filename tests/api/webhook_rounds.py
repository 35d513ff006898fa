"""Webhooks of Alice, events for them, and rounds of the worker that deliver them."""

from typing import Any

import orjson
from sqlalchemy import select

from profilesvc.contract.events import QuotaWarning
from profilesvc.delivery.transport import Transport
from profilesvc.delivery.webhooks import WebhookSender
from profilesvc.delivery.worker import Worker
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.storage import tables
from profilesvc.storage.notify import channels
from profilesvc.storage.notify.channels import Channel


async def channel(services: Services, url: str, kind: str = "webhook", **more: Any) -> int:
    async with services.storage.write() as session:
        number = await channels.add(
            session, 1, f"{kind} {url}", kind=kind, target=url, nonce="n", created_at=0, confirmed_at=0, **more
        )
    assert number is not None
    return number


async def happen(services: Services) -> None:
    async with services.storage.write() as session:
        warned = QuotaWarning(used=8, limit=10, month="2026-01")
        events.publish(services, session, 1, events.new("quota.warning", warned))


async def deliver(services: Services, by: Transport) -> None:
    worker = Worker(services, dict.fromkeys(("webhook", "slack", "teams", "discord"), WebhookSender(by)))
    await worker.run_round()
    await worker.settle()


async def deliveries_of(services: Services) -> list[Any]:
    """All deliveries, without the messages that a webhook was disabled."""
    notices = select(tables.channels.c.id).where(tables.channels.c.kind == "notice")
    to_others = select(tables.deliveries).where(tables.deliveries.c.channel_id.not_in(notices))
    async with services.storage.read() as session:
        rows = await session.execute(to_others.order_by(tables.deliveries.c.id))
        return list(rows.all())


async def only(services: Services) -> tuple[Any, dict[str, Any]]:
    """The only delivery, and its last attempt."""
    [row] = await deliveries_of(services)
    return row, orjson.loads(row.attempts)[-1]


async def only_channel(services: Services) -> Channel:
    async with services.storage.read() as session:
        [found] = await channels.listing(session, 1, ["webhook", "slack", "teams", "discord"])
    return found
