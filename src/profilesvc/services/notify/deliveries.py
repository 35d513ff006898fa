"""Deliveries to webhooks of owners: queue them, and list what was delivered."""

from profilesvc.contract.stored import as_stored, stored_list
from profilesvc.contract.webhooks import (
    MOST_RECOVERED,
    DeliveryAttempt,
    DeliveryEntry,
    DeliveryList,
    DeliveryListQuery,
    DeliveryState,
    WebhookRecover,
    WebhookRecovered,
)
from profilesvc.domain.errors import invalid
from profilesvc.domain.time import instant_of, iso, iso_or_none
from profilesvc.services import events, page_tokens
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify.webhooks import WEBHOOKS
from profilesvc.storage.events import StoredPublishedEvent
from profilesvc.storage.notify import deliveries
from profilesvc.storage.notify.deliveries import Delivery

_PIECE = 500  # deliveries that one transaction adds


async def test(services: Services, caller: Caller, webhook_id: str) -> DeliveryEntry:
    """Queue an event of the type `webhook.test`.

    Raises:
        ServiceError: RATE_LIMITED; NOT_FOUND; CONFLICT if the webhook is disabled.
    """
    return await _queue(services, caller, WEBHOOKS.number(webhook_id), None)


async def resend(services: Services, caller: Caller, webhook_id: str, delivery_id: str) -> DeliveryEntry:
    """Queue the event of a delivery again, with the same `webhook-id`.

    Raises:
        ServiceError: RATE_LIMITED; NOT_FOUND, also if the event was deleted; CONFLICT if the webhook is disabled.
    """
    return await _queue(services, caller, WEBHOOKS.number(webhook_id), WEBHOOKS.number(delivery_id))


async def _queue(services: Services, caller: Caller, number: int, delivery: int | None) -> DeliveryEntry:
    owner_id, event_id = caller.owner_id, None
    await services.limiter.count("calls-per-user", owner_id)
    async with services.storage.write() as session:
        await WEBHOOKS.enabled(session, caller, number)
        if delivery is not None:
            repeated = await deliveries.find(session, owner_id, number, delivery)
            if repeated is None or (repeated.event_id is not None and repeated.type is None):
                raise missing("delivery")
            event_id = repeated.event_id
        added = await deliveries.add(session, owner_id, number, event_id, services.clock.now())
        row = await deliveries.find(session, owner_id, number, added)
        services.due.set()
    assert row is not None, "added in this transaction"
    return _delivery(owner_id, row)


async def recover(services: Services, caller: Caller, webhook_id: str, body: WebhookRecover) -> WebhookRecovered:
    """Queue the events since a time that were not delivered, such as those of the time when a webhook was disabled.

    It queues at most `MOST_RECOVERED`, the oldest, a piece in a transaction, so that other writers need not wait.

    Raises:
        ServiceError: VALIDATION_ERROR; RATE_LIMITED; NOT_FOUND; CONFLICT if the webhook is disabled.
    """
    number, now = WEBHOOKS.number(webhook_id), services.clock.now()
    since = instant_of("since", body.since, "2026-01-02T03:04:05Z")
    if since > now:
        raise invalid("body", "since", "must not be in the future")
    since = max(since, now - events.RETENTION)
    await services.limiter.count("calls-per-user", caller.owner_id)
    async with services.storage.read() as session:
        channel = await WEBHOOKS.enabled(session, caller, number, locked=False)
        missed = await deliveries.missed(session, channel, since, MOST_RECOVERED)
    queued = 0
    for start in range(0, len(missed.events), _PIECE):
        async with services.storage.write() as session:
            await WEBHOOKS.enabled(session, caller, number)
            queued += await deliveries.add_missed(session, channel, missed, start, start + _PIECE, now)
            services.due.set()
    return WebhookRecovered(id=number, queued=queued)


async def list_deliveries(
    services: Services, caller: Caller, webhook_id: str, query: DeliveryListQuery, *, state: DeliveryState | None = None
) -> DeliveryList:
    """Return a page of deliveries, newest first; with `state` only those in that state.

    Raises:
        ServiceError: NOT_FOUND.
    """
    number, limit = WEBHOOKS.number(webhook_id), query.limit
    before = None
    if query.before is not None:
        (before,) = page_tokens.position(services, caller.owner_id, _list_of(number), query.before)
    async with services.storage.read() as session:
        await WEBHOOKS.own(session, caller, number)
        rows = await deliveries.page(session, caller.owner_id, number, before, limit + 1, state=state)
    page = rows[:limit]
    return DeliveryList(
        deliveries=[_delivery(caller.owner_id, row) for row in page],
        next_before=page_tokens.cursor(services, caller.owner_id, _list_of(number), page[-1].id)
        if len(rows) > limit
        else None,
    )


async def get_delivery(services: Services, caller: Caller, webhook_id: str, delivery_id: str) -> DeliveryEntry:
    """Return a delivery to a webhook of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    number, delivery = WEBHOOKS.number(webhook_id), WEBHOOKS.number(delivery_id)
    async with services.storage.read() as session:
        await WEBHOOKS.own(session, caller, number)
        row = await deliveries.find(session, caller.owner_id, number, delivery)
    if row is None:
        raise missing("delivery")
    return _delivery(caller.owner_id, row)


def _list_of(number: int) -> str:
    return f"deliveries {number}"


def _delivery(owner_id: int, row: Delivery) -> DeliveryEntry:
    event = None
    if row.event_id is not None and row.type is not None and row.event_created_at is not None:
        stored = StoredPublishedEvent(row.event_id, row.event_created_at, row.type, row.data or "{}")
        event = events.published(owner_id, stored)
    attempts = [as_stored(DeliveryAttempt, {**each, "at": iso(each["at"])}) for each in stored_list(row.attempts)]
    return as_stored(
        DeliveryEntry,
        {
            "id": row.id,
            "state": row.state,
            "created_at": iso(row.created_at),
            "next_attempt_at": iso_or_none(row.next_at),
            "finished_at": iso_or_none(row.finished_at),
            "attempts": attempts,
            "event": event,
        },
    )
