"""Webhooks of owners: create, change, roll, test, and what was delivered."""

import asyncio
from urllib.parse import urlsplit

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.contract.events import WebhookDisabled
from profilesvc.contract.stored import as_stored
from profilesvc.contract.webhooks import (
    SECRET_WARNING,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookDeleted,
    WebhookEntry,
    WebhookList,
    WebhookRolled,
)
from profilesvc.database.statements import Executor
from profilesvc.domain import webhooks
from profilesvc.domain.addresses import Target, is_public, parse_target
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.time import iso, iso_or_none
from profilesvc.services import events
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify.channels import OwnChannels, digest_of, new_nonce, switched
from profilesvc.services.notify.resolving import resolver_of
from profilesvc.storage import users
from profilesvc.storage.notify import channels
from profilesvc.storage.notify.channels import Channel

_RESOLVE_SECONDS = 2.0
# Only the host of the URL is recorded, because the URL of a chat is a secret.
WEBHOOKS = OwnChannels(
    ("webhook", "slack", "teams", "discord"),
    "webhook",
    label="webhook",
    field="url",
    recorded=lambda channel: {"host": urlsplit(channel.target).hostname},
)


async def create(services: Services, caller: Caller, body: WebhookCreate) -> WebhookCreated:
    """Create a webhook and return its secret, which cannot be read again.

    Raises:
        ServiceError: VALIDATION_ERROR for a URL that is not allowed or used twice; PLAN_RESTRICTION; RATE_LIMITED.
    """
    kind, target = "webhook" if body.format == "standard" else body.format, _parsed(services, body.url)
    async with services.storage.read() as session:
        await _require_room(session, caller)
    await _require_public(services, caller, target)
    now, types = services.clock.now(), channels.stored_types(body.types)
    values = {"target": target.url, "description": body.description, "types": types, "confirmed_at": now}
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await _require_room(session, caller)
        channel = await WEBHOOKS.add(services, session, caller, digest_of(target.url), kind=kind, **values)
    return WebhookCreated(
        **_entry(channel, now).model_dump(),
        secret=_secret(services, channel.nonce) if kind == "webhook" else None,
        warning=SECRET_WARNING if kind == "webhook" else "The URL is the secret of the chat: keep it to yourself.",
    )


async def list_all(services: Services, caller: Caller) -> WebhookList:
    """Return the webhooks of the caller."""
    rows, now = await WEBHOOKS.listing(services, caller), services.clock.now()
    return WebhookList(webhooks=[_entry(row, now) for row in rows], limit=caller.plan.webhooks)


async def get(services: Services, caller: Caller, webhook_id: str) -> WebhookEntry:
    """Return a webhook of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return _entry(await WEBHOOKS.get(services, caller, webhook_id), services.clock.now())


async def change(services: Services, caller: Caller, webhook_id: str, body: WebhookChange) -> WebhookEntry:
    """Change a webhook. To enable it starts a new time of failing.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND; RATE_LIMITED.
    """
    number, now = WEBHOOKS.number(webhook_id), services.clock.now()
    target = None if body.url is None else await _new_target(services, caller, number, body.url)
    values: dict[str, object] = {}
    if body.description is not None:
        values["description"] = body.description
    if body.types is not None:
        values["types"] = channels.stored_types(body.types)
    if body.enabled is not None:
        values |= switched(None) if body.enabled else switched(now, "owner")
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await WEBHOOKS.own(session, caller, number)
        if target is not None:
            digest = digest_of(target.url)
            if await channels.uses(session, caller.owner_id, digest, except_for=number):
                raise WEBHOOKS.used()
            values |= {"target": target.url, "target_digest": digest, "failing_since": None}
        return _entry(await WEBHOOKS.change(services, session, caller, number, body, **values), now)


async def disable(services: Services, session: AsyncSession, channel: Channel, reason: str) -> bool:
    """Disable a channel that fails; return False if it is disabled, or was changed since these calls started.

    The owner of a webhook hears of it by e-mail.
    """
    owner_id, now = channel.owner_id, services.clock.now()
    if not await channels.disable_failing(session, channel, now, reason):
        return False
    user = await users.user(session, owner_id)
    if channel.kind in WEBHOOKS.kinds and user is not None:
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
    return WebhookDeleted(id=await WEBHOOKS.delete(services, caller, webhook_id))


async def roll(services: Services, caller: Caller, webhook_id: str) -> WebhookRolled:
    """Give a webhook a new secret. The previous one signs too for 24 hours.

    Raises:
        ServiceError: NOT_FOUND, also for a chat, which has no secret.
    """
    number, now = WEBHOOKS.number(webhook_id), services.clock.now()
    nonce = new_nonce(services)
    async with services.storage.write() as session:
        channel = await WEBHOOKS.own(session, caller, number)
        if channel.kind != "webhook":
            raise missing("webhook with a secret")
        previous = {"previous_nonce": channel.nonce, "previous_until": now + webhooks.OVERLAP}
        await channels.change(session, caller.owner_id, number, nonce=nonce, **previous)
        await WEBHOOKS.record(services, session, "rolled", channel)
    return WebhookRolled(
        id=number,
        secret=_secret(services, nonce),
        rolled_at=iso(now),
        previous_secret_expires_at=iso(now + webhooks.OVERLAP),
        warning=SECRET_WARNING,
    )


async def _require_room(session: Executor, caller: Caller) -> None:
    limit = caller.plan.webhooks
    if await channels.count(session, caller.owner_id, WEBHOOKS.kinds) >= limit:
        raise ServiceError(
            PLAN_RESTRICTION,
            f"The {caller.plan.display_name} plan includes {limit} webhooks. Delete one first, or change the plan.",
            plan=caller.plan.name,
            limit=limit,
        )


def _parsed(services: Services, url: str) -> Target:
    try:
        return parse_target(url, allow_private=services.settings.webhooks.allow_private)
    except ValueError as error:
        raise invalid("body", "url", str(error)) from None


async def _new_target(services: Services, caller: Caller, number: int, url: str) -> Target | None:
    """Return the accepted URL of a webhook; None if it is the present one."""
    target = _parsed(services, url)
    async with services.storage.read() as session:
        present = await WEBHOOKS.own(session, caller, number)
    if target.url == present.target:
        return None
    await _require_public(services, caller, target)
    return target


async def _require_public(services: Services, caller: Caller, target: Target) -> None:
    """Look up the host, which counts as a call. One without an address is accepted, because it may get one later."""
    if services.settings.webhooks.allow_private:
        return
    await services.limiter.count("calls-per-user", caller.owner_id)
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            addresses = await resolver_of(services)(caller.owner_id, target.host)
    except OSError:  # also TimeoutError
        return
    if not all(map(is_public, addresses)):
        raise invalid("body", "url", "must not lead to a private address")


def _secret(services: Services, nonce: str) -> str:
    return webhooks.shown_secret(webhooks.secret(services.pepper, nonce))


def _entry(channel: Channel, now: int) -> WebhookEntry:
    until = channel.previous_until
    return as_stored(
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
