"""Webhooks of owners: create, change, roll, test, and what was delivered."""

import asyncio
import hashlib
from urllib.parse import urlsplit

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import Event
from profilesvc.contract.errors import CONFLICT, PLAN_RESTRICTION
from profilesvc.contract.events import WebhookDisabled
from profilesvc.contract.stored import shown, stored_list
from profilesvc.contract.webhooks import (
    SECRET_WARNING,
    DeliveryAttempt,
    DeliveryEntry,
    DeliveryList,
    DeliveryListQuery,
    DeliveryState,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookDeleted,
    WebhookEntry,
    WebhookList,
    WebhookRecover,
    WebhookRecovered,
    WebhookRolled,
)
from profilesvc.database.statements import Executor
from profilesvc.domain import webhooks
from profilesvc.domain.addresses import Target, is_public, parse_target
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.time import instant_of, iso, iso_or_none
from profilesvc.services import audit, events
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.storage import channels, deliveries, users
from profilesvc.storage.channels import Channel
from profilesvc.storage.columns import number_of
from profilesvc.storage.deliveries import Delivery
from profilesvc.storage.events import StoredPublishedEvent

KINDS = ("webhook", "slack", "teams", "discord")
_NONCE_BYTES = 24
_RESOLVE_SECONDS = 2.0


async def create(services: Services, caller: Caller, body: WebhookCreate) -> WebhookCreated:
    """Create a webhook and return its secret, which cannot be read again.

    Raises:
        ServiceError: VALIDATION_ERROR for a URL that is not allowed or used twice; PLAN_RESTRICTION.
    """
    target, kind = await _target(services, body.url), "webhook" if body.format == "standard" else body.format
    now, nonce = services.clock.now(), services.entropy.token_bytes(_NONCE_BYTES).hex()
    values = {"target": target.url, "description": body.description, "types": channels.stored_types(body.types)}
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await _require_room(session, caller)
        number = await channels.add(
            session,
            caller.owner_id,
            _digest(target),
            kind=kind,
            nonce=nonce,
            created_at=now,
            confirmed_at=now,
            **values,
        )
        if number is None:
            raise _used()
        channel = await _own(session, caller, number)
        await _record(services, session, "webhook.created", channel)
    return WebhookCreated(
        **_entry(channel, now).model_dump(),
        secret=_secret(services, nonce) if kind == "webhook" else None,
        warning=SECRET_WARNING if kind == "webhook" else "The URL is the secret of the chat: keep it to yourself.",
    )


async def list_all(services: Services, caller: Caller) -> WebhookList:
    """Return the webhooks of the caller."""
    async with services.storage.read() as session:
        rows = await channels.listing(session, caller.owner_id, KINDS)
    now = services.clock.now()
    return WebhookList(webhooks=[_entry(row, now) for row in rows], limit=caller.plan.webhooks)


async def get(services: Services, caller: Caller, webhook_id: str) -> WebhookEntry:
    """Return a webhook of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        return _entry(await _own(session, caller, _number(webhook_id)), services.clock.now())


async def change(services: Services, caller: Caller, webhook_id: str, body: WebhookChange) -> WebhookEntry:
    """Change a webhook. To enable it starts a new time of failing.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND.
    """
    number, now = _number(webhook_id), services.clock.now()
    target = None if body.url is None else await _target(services, body.url)
    values: dict[str, object] = {}
    if body.description is not None:
        values["description"] = body.description
    if body.types is not None:
        values["types"] = channels.stored_types(body.types)
    if body.enabled is not None:
        disabled_at, reason = (None, None) if body.enabled else (now, "owner")
        values |= {"disabled_at": disabled_at, "disabled_reason": reason, "failing_since": None}
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await _own(session, caller, number)
        if target is not None:
            if await channels.uses(session, caller.owner_id, _digest(target), except_for=number):
                raise _used()
            values |= {"target": target.url, "target_digest": _digest(target), "failing_since": None}
        if values:
            await channels.change(session, caller.owner_id, number, **values)
        channel = await _own(session, caller, number)
        await _record(services, session, "webhook.changed", channel, fields=sorted(body.model_fields_set))
        return _entry(channel, now)


async def disable(services: Services, session: AsyncSession, channel: Channel, reason: str) -> bool:
    """Disable a channel that fails; return False if it is disabled, or was changed since these calls started.

    The owner of a webhook hears of it by e-mail.
    """
    owner_id, now = channel.owner_id, services.clock.now()
    if not await channels.disable_failing(session, channel, now, reason):
        return False
    user = await users.user(session, owner_id)
    if channel.kind in KINDS and user is not None:
        if services.settings.mail.sends(services.settings.production):
            await channels.notify(session, owner_id, user.email, ["webhook.disabled"], now)
        host = urlsplit(channel.target).hostname or ""
        data = WebhookDisabled.model_validate({"webhook_id": channel.id, "host": host, "disabled_reason": reason})
        events.publish(services, session, owner_id, events.new("webhook.disabled", data))
    return True


async def delete(services: Services, caller: Caller, webhook_id: str) -> WebhookDeleted:
    """Delete a webhook with its deliveries.

    Raises:
        ServiceError: NOT_FOUND.
    """
    number = _number(webhook_id)
    async with services.storage.write() as session:
        channel = await _own(session, caller, number)
        await channels.remove(session, caller.owner_id, number)
        await _record(services, session, "webhook.deleted", channel)
    return WebhookDeleted(id=number)


async def roll(services: Services, caller: Caller, webhook_id: str) -> WebhookRolled:
    """Give a webhook a new secret. The previous one signs too for 24 hours.

    Raises:
        ServiceError: NOT_FOUND, also for a chat, which has no secret.
    """
    number, now = _number(webhook_id), services.clock.now()
    nonce = services.entropy.token_bytes(_NONCE_BYTES).hex()
    async with services.storage.write() as session:
        channel = await _own(session, caller, number)
        if channel.kind != "webhook":
            raise missing("webhook with a secret")
        previous = {"previous_nonce": channel.nonce, "previous_until": now + webhooks.OVERLAP}
        await channels.change(session, caller.owner_id, number, nonce=nonce, **previous)
        await _record(services, session, "webhook.rolled", channel)
    return WebhookRolled(
        id=number,
        secret=_secret(services, nonce),
        rolled_at=iso(now),
        previous_secret_expires_at=iso(now + webhooks.OVERLAP),
        warning=SECRET_WARNING,
    )


async def test(services: Services, caller: Caller, webhook_id: str) -> DeliveryEntry:
    """Queue an event of the type `webhook.test`.

    Raises:
        ServiceError: RATE_LIMITED; NOT_FOUND; CONFLICT if the webhook is disabled.
    """
    return await _queue(services, caller, _number(webhook_id), None)


async def resend(services: Services, caller: Caller, webhook_id: str, delivery_id: str) -> DeliveryEntry:
    """Queue the event of a delivery again, with the same `webhook-id`.

    Raises:
        ServiceError: RATE_LIMITED; NOT_FOUND, also if the event was deleted; CONFLICT if the webhook is disabled.
    """
    return await _queue(services, caller, _number(webhook_id), _number(delivery_id))


async def _queue(services: Services, caller: Caller, number: int, delivery: int | None) -> DeliveryEntry:
    owner_id, event_id = caller.owner_id, None
    await services.limiter.call(owner_id)
    async with services.storage.write() as session:
        await _enabled(session, caller, number)
        if delivery is not None:
            sent = await deliveries.find(session, owner_id, number, delivery)
            if sent is None or (sent.event_id is not None and sent.type is None):
                raise missing("delivery")
            event_id = sent.event_id
        added = await deliveries.add(session, owner_id, number, event_id, services.clock.now())
        row = await deliveries.find(session, owner_id, number, added)
        services.due.set()
    assert row is not None, "added in this transaction"
    return _delivery(owner_id, row)


async def recover(services: Services, caller: Caller, webhook_id: str, body: WebhookRecover) -> WebhookRecovered:
    """Queue the events since a time that were not delivered, such as those of the time when a webhook was disabled.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND; CONFLICT if the webhook is disabled.
    """
    number, now = _number(webhook_id), services.clock.now()
    since = instant_of("since", body.since, "2026-01-02T03:04:05Z")
    if not now - events.KEPT <= since <= now:
        raise invalid("body", "since", "must be a time within the last 30 days")
    async with services.storage.write() as session:
        channel = await _enabled(session, caller, number)
        queued = await deliveries.add_since(session, channel, since, now)
        services.due.set()
    return WebhookRecovered(id=number, queued=queued)


async def list_deliveries(
    services: Services,
    caller: Caller,
    webhook_id: str,
    query: DeliveryListQuery,
    *,
    state: DeliveryState | None = None,
) -> DeliveryList:
    """Return a page of deliveries, newest first; with `state` only those in that state.

    Raises:
        ServiceError: NOT_FOUND.
    """
    number, limit = _number(webhook_id), query.limit
    before = None if query.before is None else int(query.before)
    async with services.storage.read() as session:
        await _own(session, caller, number)
        rows = await deliveries.page(session, caller.owner_id, number, before, limit + 1, state=state)
    shown = rows[:limit]
    return DeliveryList(
        deliveries=[_delivery(caller.owner_id, row) for row in shown],
        next_before=str(shown[-1].id) if len(rows) > limit else None,
    )


async def get_delivery(services: Services, caller: Caller, webhook_id: str, delivery_id: str) -> DeliveryEntry:
    """Return a delivery to a webhook of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    number, delivery = _number(webhook_id), _number(delivery_id)
    async with services.storage.read() as session:
        await _own(session, caller, number)
        row = await deliveries.find(session, caller.owner_id, number, delivery)
    if row is None:
        raise missing("delivery")
    return _delivery(caller.owner_id, row)


async def _record(services: Services, session: AsyncSession, event: Event, channel: Channel, **more: object) -> None:
    """Record a change. Only the host of the URL is recorded, because the URL of a chat is a secret."""
    host = urlsplit(channel.target).hostname
    await audit.record(services, session, event, channel.owner_id, None, webhook_id=channel.id, host=host, **more)


def _number(text: str) -> int:
    if not (number := number_of(text)):
        raise missing("webhook")
    return number


async def _own(session: Executor, caller: Caller, number: int, *, locked: bool = False) -> Channel:
    channel = await channels.find(session, caller.owner_id, number, KINDS, locked=locked)
    if channel is None:
        raise missing("webhook")
    return channel


async def _enabled(session: AsyncSession, caller: Caller, number: int) -> Channel:
    """Return a webhook to which deliveries can be added."""
    channel = await _own(session, caller, number, locked=True)
    if channel.disabled_at is not None:
        raise ServiceError(CONFLICT, "The webhook is disabled. Enable it first.")
    return channel


async def _require_room(session: AsyncSession, caller: Caller) -> None:
    limit = caller.plan.webhooks
    if await channels.count(session, caller.owner_id, KINDS) >= limit:
        raise ServiceError(
            PLAN_RESTRICTION,
            f"The {caller.plan.display_name} plan includes {limit} webhooks. Delete one first, or change the plan.",
            plan=caller.plan.name,
            limit=limit,
        )


async def _target(services: Services, url: str) -> Target:
    """Return an accepted URL. A name without an address is accepted, because it may get one later."""
    allow_private = services.settings.webhooks.allow_private
    try:
        target = parse_target(url, allow_private=allow_private)
    except ValueError as error:
        raise invalid("body", "url", str(error)) from None
    if allow_private:
        return target
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            addresses = await services.resolver(target.host, target.port)
    except OSError:  # also TimeoutError
        return target
    if not all(map(is_public, addresses)):
        raise invalid("body", "url", "must not lead to a private address")
    return target


def _used() -> ServiceError:
    return invalid("body", "url", "is used by another of your webhooks")


def _digest(target: Target) -> str:
    return hashlib.sha256(target.url.encode()).hexdigest()


def _secret(services: Services, nonce: str) -> str:
    return webhooks.shown_secret(webhooks.secret(services.pepper, nonce))


def _entry(channel: Channel, now: int) -> WebhookEntry:
    until = channel.previous_until
    return shown(
        WebhookEntry,
        {
            "id": channel.id,
            "url": channel.target,
            "format": "standard" if channel.kind == "webhook" else channel.kind,
            "description": channel.description,
            "types": channel.event_types(),
            "enabled": channel.disabled_at is None,
            "disabled_reason": channel.disabled_reason,
            "failing_since": iso_or_none(channel.failing_since),
            "created_at": iso(channel.created_at),
            "previous_secret_expires_at": iso(until) if until is not None and until > now else None,
        },
    )


def _delivery(owner_id: int, row: Delivery) -> DeliveryEntry:
    event = None
    if row.event_id is not None and row.type is not None and row.event_created_at is not None:
        stored = StoredPublishedEvent(row.event_id, row.event_created_at, row.type, row.data or "{}")
        event = events.published(owner_id, stored)
    attempts = [shown(DeliveryAttempt, {**each, "at": iso(each["at"])}) for each in stored_list(row.attempts)]
    return shown(
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
