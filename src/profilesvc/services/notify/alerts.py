"""E-mail alerts of owners: which address receives what, and when (docs/events.md)."""

import hmac
from typing import NamedTuple

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.alerts import (
    DOWN,
    MAX_ALERTS,
    AlertChange,
    AlertCreate,
    AlertDeleted,
    AlertEntry,
    AlertList,
    AlertSettings,
    AlertTested,
    QuietTime,
)
from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.events import EventType
from profilesvc.contract.json import JsonObject
from profilesvc.contract.stored import acting, as_stored, stored_list, stored_object
from profilesvc.domain.alerts import next_time, quiet_until
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.hosts import mailbox
from profilesvc.domain.time import DAY, iso
from profilesvc.domain.webhooks import derived
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify.channels import OwnChannels, digest_of, new_nonce, switched
from profilesvc.storage import users
from profilesvc.storage.notify import alerts as stored
from profilesvc.storage.notify import channels, deliveries
from profilesvc.storage.notify.channels import Channel
from profilesvc.storage.tables.columns import number_of

CONFIRM_WITHIN = 3 * DAY
ALERTS = OwnChannels(
    ("email",), "alert", label="address", field="address", recorded=lambda channel: {"address": channel.target}
)
_UNKNOWN_LINK = "link; it may be of an address that was deleted"


class Failure(NamedTuple):
    """Since when no message to an address could be sent, and the last error."""

    since: int
    error: str | None


async def create(services: Services, caller: Caller, body: AlertCreate) -> AlertEntry:
    """Add an address. One that is not that of the login gets a message with a link, and nothing else until it is used.

    Raises:
        ServiceError: VALIDATION_ERROR for an address that is used or not accepted everywhere; CONFLICT for too many, or
            if no mail is sent here.
    """
    if not services.settings.mail.sends(services.settings.production):
        raise ServiceError(CONFLICT, "This service sends no e-mail. Ask its operator to set PROFILESVC_MAIL__URL.")
    if body.address is not None:
        _require_mailbox(body.address)
        await _count_mail(services, caller, body.address, is_link=True)
    now = services.clock.now()
    settings = AlertSettings.model_validate(body.model_dump(exclude={"address"}))
    async with services.storage.write() as session:
        user = await users.lock_user(session, caller.owner_id)
        address = body.address or user.email
        _require_mailbox(address)
        is_own = address.lower() == user.email.lower()
        if await channels.count(session, caller.owner_id, ALERTS.kinds) >= MAX_ALERTS:
            raise ServiceError(CONFLICT, f"You have {MAX_ALERTS} addresses. Delete one first.", limit=MAX_ALERTS)
        values = {"target": address, "confirmed_at": now if is_own else None, **_columns(settings, {})}
        row = await ALERTS.add(services, session, caller, _target_digest(address), kind="email", **values)
        if not is_own:
            await deliveries.add(session, caller.owner_id, row.id, None, now)
            services.due.set()
        return _entry(row)


def _require_mailbox(address: str) -> None:
    try:
        mailbox(address)
    except ValueError as error:
        raise invalid("body", "address", str(error)) from None


async def list_all(services: Services, caller: Caller) -> AlertList:
    """Return the addresses of the caller, oldest first."""
    return AlertList(alerts=[_entry(row) for row in await ALERTS.listing(services, caller)])


async def failures(services: Services, caller: Caller) -> dict[int, Failure]:
    """Return the addresses of the caller to which no message can be sent, by their ids."""
    by_channel: dict[int, Failure] = {}
    async with services.storage.read() as session:
        for row in await channels.listing(session, caller.owner_id, ALERTS.kinds):
            if row.failing_since is not None:
                attempts = stored_list(await deliveries.last_attempts(session, caller.owner_id, row.id))
                by_channel[row.id] = Failure(row.failing_since, attempts[-1]["error"] if attempts else None)
    return by_channel


async def get(services: Services, caller: Caller, alert_id: str) -> AlertEntry:
    """Return an address of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return _entry(await ALERTS.get(services, caller, alert_id))


async def change(services: Services, caller: Caller, alert_id: str, body: AlertChange) -> AlertEntry:
    """Change the fields of the body; the others, and those that are null, keep their values.

    An address whose reader unsubscribed has to confirm itself again: to enable it sends a new link.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND; RATE_LIMITED for too many links.
    """
    number = ALERTS.number(alert_id)
    if body.enabled:
        row = await ALERTS.get(services, caller, alert_id)
        if _has_unsubscribed(row):
            await _count_mail(services, caller, row.target, is_link=True)
    async with services.storage.write() as session:
        user = await users.lock_user(session, caller.owner_id)
        row = await ALERTS.own(session, caller, number, locked=True)
        body_fields = {name: getattr(body, name) for name in body.model_fields_set - {"enabled"}}
        fields = {name: value for name, value in body_fields.items() if value is not None or name == "quiet_time"}
        values: dict[str, object] = dict(_columns(settings_of(row).model_copy(update=fields), _unread(row, fields)))
        if body.enabled:
            values |= switched(None)
            values |= await _confirmation(services, session, row, user.email)
        elif body.enabled is False and row.disabled_at is None:  # another reason is more important
            values |= switched(services.clock.now(), "owner")
        if fields and values.get("disabled_at", row.disabled_at) is None:
            # What waits by the present settings may be sent at another time by the new ones.
            settings, now = settings_of(row), services.clock.now()
            times = next_time(settings.digest_at, settings.time_zone, now), quiet_end(settings, now)
            await stored.end_wait(session, row.owner_id, [until for until in times if until is not None], now)
            services.due.set()
        return _entry(await ALERTS.change(services, session, caller, number, body, **values))


def _has_unsubscribed(row: Channel) -> bool:
    return row.disabled_at is not None and row.confirmed_at is None


async def _confirmation(services: Services, session: AsyncSession, row: Channel, email: str) -> dict[str, object]:
    """Return what to change when an address is enabled. Only that of the login needs no new confirmation.

    Links that were sent before no longer confirm; those that unsubscribe do.
    """
    if not _has_unsubscribed(row):
        return {}
    now = services.clock.now()
    if row.target.lower() == email.lower():
        return {"confirmed_at": now}
    await deliveries.add(session, row.owner_id, row.id, None, now)
    services.due.set()
    return {"nonce": new_nonce(services), "previous_nonce": row.previous_nonce or row.nonce}


async def delete(services: Services, caller: Caller, alert_id: str) -> AlertDeleted:
    """Delete an address.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return AlertDeleted(id=await ALERTS.delete(services, caller, alert_id))


async def test(services: Services, caller: Caller, alert_id: str) -> AlertTested:
    """Send a test message, or to an unconfirmed address the link again.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT if the address is disabled; RATE_LIMITED for too many messages.
    """
    row = await ALERTS.get(services, caller, alert_id)
    await _count_mail(services, caller, row.target, is_link=row.confirmed_at is None)
    async with services.storage.write() as session:
        await ALERTS.enabled(session, caller, row.id)
        await deliveries.add(session, caller.owner_id, row.id, None, services.clock.now())
        services.due.set()
    return AlertTested(id=row.id)


async def _count_mail(services: Services, caller: Caller, address: str, *, is_link: bool) -> None:
    """Count a message that the caller requests; links also by their address, whose reader cannot unsubscribe yet."""
    await services.limiter.count("mails-per-user", caller.owner_id)
    if is_link:
        await services.limiter.count("links-per-address", f"{caller.owner_id}:{_target_digest(address)}")


def settings_of(row: Channel) -> AlertSettings:
    """Return the settings of an address that act; one that is no longer valid has its default."""
    return acting(AlertSettings, stored_object(row.settings))


def _unread(row: Channel, changed: JsonObject) -> JsonObject:
    """Return the stored values that do not act, except those of `changed`. A change of the others leaves them."""
    active = settings_of(row).model_dump(by_alias=True)
    stored_values = stored_object(row.settings)
    return {name: value for name, value in stored_values.items() if name not in changed and active.get(name) != value}


def _unread_shown(row: Channel) -> JsonObject:
    """Return the stored values that do not act, as fields of an entry."""
    values = {name: value for name, value in _unread(row, {}).items() if name in AlertSettings.model_fields}
    if "quiet_time" in values:
        quiet = values["quiet_time"]
        parts = (str(quiet.get("from", "")), str(quiet.get("to", ""))) if isinstance(quiet, dict) else None
        values["quiet_time"] = None if parts is None else QuietTime.model_construct(from_=parts[0], to=parts[1])
    return values


def quiet_end(settings: AlertSettings, now: int) -> int | None:
    """Return when the quiet time ends, or None outside of it."""
    quiet = settings.quiet_time
    return None if quiet is None else quiet_until(quiet.from_, quiet.to, settings.time_zone, now)


def confirming_link(services: Services, row: Channel, now: int) -> str:
    """Return the last part of a link that confirms an address, for three days."""
    return f"{row.owner_id}-{row.id}-{now}-{_digest(services, row.nonce, f'confirm {now}')}"


def unsubscribing_link(services: Services, row: Channel) -> str:
    """Return the last part of a link that stops all mail to an address.

    It is the same in all messages, because it is by the first nonce; a link that confirms is by the newest one.
    """
    return f"{row.owner_id}-{row.id}-{_digest(services, row.previous_nonce or row.nonce, 'unsubscribe')}"


async def to_confirm(services: Services, link: str) -> Channel:
    """Return the address that a link confirms.

    Raises:
        ServiceError: NOT_FOUND, also if the link is older than three days or the address is disabled.
    """
    named, _, digest = link.rpartition("-")
    address, _, sent_at = named.rpartition("-")
    row = await _named(services, address)
    if row is None or not _is_equal(digest, _digest(services, row.nonce, f"confirm {sent_at}")):
        raise missing(_UNKNOWN_LINK)
    if row.disabled_at is not None:
        raise missing("link; alerts to the address are off")
    if row.confirmed_at is None and services.clock.now() > int(sent_at) + CONFIRM_WITHIN:
        raise missing("link; it has expired")
    return row


async def confirm(services: Services, row: Channel) -> None:
    """Confirm an address, which receives events from now on.

    Raises:
        ServiceError: NOT_FOUND if its reader unsubscribed or its owner deleted it since `row` was read.
    """
    if row.confirmed_at is not None:
        return
    async with services.storage.write() as session:
        if not await channels.confirm(session, row, services.clock.now()):
            raise missing(_UNKNOWN_LINK)
        await ALERTS.record(services, session, "confirmed", row)


async def to_unsubscribe(services: Services, link: str) -> Channel:
    """Return the address that a link unsubscribes.

    Raises:
        ServiceError: NOT_FOUND.
    """
    address, _, digest = link.rpartition("-")
    row = await _named(services, address)
    # An earlier version sent links by the newest nonce.
    nonces = [] if row is None else [row.previous_nonce or row.nonce, row.nonce]
    if row is None or not any(_is_equal(digest, _digest(services, nonce, "unsubscribe")) for nonce in nonces):
        raise missing(_UNKNOWN_LINK)
    return row


async def unsubscribe(services: Services, row: Channel) -> None:
    """Stop all mail to an address, and withdraw its confirmation. The link in a message is enough."""
    at = row.disabled_at or services.clock.now()
    values = {"disabled_at": at, "disabled_reason": "unsubscribed", "confirmed_at": None}
    async with services.storage.write() as session:
        await channels.change(session, row.owner_id, row.id, **values)
        if row.disabled_reason != "unsubscribed":  # mail programs request the link more than once
            await ALERTS.record(services, session, "unsubscribed", row)


async def _named(services: Services, address: str) -> Channel | None:
    """Return the address with an owner and a number such as 1-2."""
    owner, _, place = address.partition("-")
    owner_id, number = number_of(owner), number_of(place)
    if not (owner_id and number):  # no statement for a link that was never sent
        return None
    async with services.storage.read() as session:
        return await channels.find(session, owner_id, number, ALERTS.kinds)


def _is_equal(token: str, digest: str) -> bool:
    return hmac.compare_digest(token.encode(), digest.encode())


def _digest(services: Services, nonce: str, purpose: str) -> str:
    return derived(services.pepper, purpose, nonce).hex()[:40]


def _target_digest(address: str) -> str:
    return digest_of(f"mailto:{address.lower()}")


def _columns(settings: AlertSettings, unread: JsonObject) -> dict[str, str]:
    """Return the columns of settings, with stored values that do not act.

    An address that hears of a silent site also hears when it is back.
    """
    types: set[EventType] = {*settings.immediate, *settings.daily}
    if types.intersection(DOWN):
        types.add("connection.online")
    return {
        "types": channels.stored_types(sorted(types)) or ",none,",
        "settings": orjson.dumps({**settings.model_dump(by_alias=True), **unread}).decode(),
    }


def _entry(row: Channel) -> AlertEntry:
    status = "active" if row.confirmed_at is not None else "unconfirmed"
    settings = settings_of(row)
    return as_stored(
        AlertEntry,
        {
            **{name: getattr(settings, name) for name in AlertSettings.model_fields},
            **_unread_shown(row),
            "id": row.id,
            "address": row.target,
            "status": status if row.disabled_at is None else "disabled",
            "disabled_reason": row.disabled_reason,
            "created_at": iso(row.created_at),
        },
    )
