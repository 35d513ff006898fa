"""E-mail alerts of owners: which address receives what, and when (docs/events.md)."""

import hashlib
import hmac
from typing import NamedTuple

import orjson

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
)
from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.events import EventType
from profilesvc.database.statements import Executor
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.time import DAY, iso, parse_iso
from profilesvc.domain.webhooks import derived
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.storage import channels, deliveries, users
from profilesvc.storage.channels import Channel

KINDS = ("email",)
CONFIRM_WITHIN = 3 * DAY
_NONCE_BYTES = 24
_LARGEST = 2**63 - 1


class Failure(NamedTuple):
    """Since when no message to an address could be sent, and the last error."""

    since: int
    error: str | None


async def create(services: Services, caller: Caller, body: AlertCreate) -> AlertEntry:
    """Add an address. One that is not that of the login gets a message with a link, and nothing else until it is used.

    Raises:
        ServiceError: VALIDATION_ERROR for an address that is used; CONFLICT for too many, or if no mail is sent here.
    """
    if not services.settings.mail.sends(services.settings.production):
        raise ServiceError(CONFLICT, "This service sends no e-mail. Ask its operator to set PROFILESVC_MAIL__URL.")
    if body.address is not None:
        await services.limiter.mail(caller.owner_id)
    now, nonce = services.clock.now(), services.entropy.token_bytes(_NONCE_BYTES).hex()
    settings = AlertSettings.model_validate(body.model_dump(exclude={"address"}))
    async with services.storage.write() as session:
        user = await users.lock_user(session, caller.owner_id)
        address = body.address or user.email
        is_own = address.lower() == user.email.lower()
        if await channels.count(session, caller.owner_id, KINDS) >= MAX_ALERTS:
            raise ServiceError(CONFLICT, f"You have {MAX_ALERTS} addresses. Delete one first.", limit=MAX_ALERTS)
        number = await channels.add(
            session,
            caller.owner_id,
            _target_digest(address),
            kind="email",
            target=address,
            nonce=nonce,
            created_at=now,
            confirmed_at=now if is_own else None,
            **_columns(settings),
        )
        if number is None:
            raise invalid("body", "address", "is used by another of your alerts")
        if not is_own:
            await deliveries.add(session, caller.owner_id, number, None, now)
            services.due.set()
        return _entry(await _own(session, caller, str(number)))


async def list_all(services: Services, caller: Caller) -> AlertList:
    """Return the addresses of the caller, oldest first."""
    async with services.storage.read() as session:
        rows = await channels.listing(session, caller.owner_id, KINDS)
    return AlertList(alerts=[_entry(row) for row in rows])


async def failures(services: Services, caller: Caller) -> dict[int, Failure]:
    """Return the addresses of the caller to which no message can be sent, by their ids."""
    found: dict[int, Failure] = {}
    async with services.storage.read() as session:
        for row in await channels.listing(session, caller.owner_id, KINDS):
            if row.failing_since is not None:
                attempts = orjson.loads(await deliveries.last_attempts(session, caller.owner_id, row.id))
                found[row.id] = Failure(row.failing_since, attempts[-1]["error"] if attempts else None)
    return found


def has_expired(entry: AlertEntry, now: int) -> bool:
    """Return whether an address can no longer be confirmed by a link."""
    return entry.status == "unconfirmed" and now > parse_iso(entry.created_at) + CONFIRM_WITHIN


async def get(services: Services, caller: Caller, alert_id: str) -> AlertEntry:
    """Return an address of the caller.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        return _entry(await _own(session, caller, alert_id))


async def change(services: Services, caller: Caller, alert_id: str, body: AlertChange) -> AlertEntry:
    """Change the fields of the body; the others, and those that are null, keep their values.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND.
    """
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        row = await _own(session, caller, alert_id)
        sent = {name: getattr(body, name) for name in body.model_fields_set - {"enabled"}}
        fields = {name: value for name, value in sent.items() if value is not None or name == "quiet_time"}
        values: dict[str, object] = dict(_columns(settings_of(row).model_copy(update=fields)))
        if body.enabled is not None:
            at, reason = (None, None) if body.enabled else (services.clock.now(), "owner")
            values |= {"disabled_at": at, "disabled_reason": reason, "failing_since": None}
        await channels.change(session, caller.owner_id, row.id, **values)
        return _entry(await _own(session, caller, alert_id))


async def delete(services: Services, caller: Caller, alert_id: str) -> AlertDeleted:
    """Delete an address.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        row = await _own(session, caller, alert_id)
        await channels.remove(session, caller.owner_id, row.id)
    return AlertDeleted(id=row.id)


async def test(services: Services, caller: Caller, alert_id: str) -> AlertTested:
    """Send a test message, or to an unconfirmed address the link again.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT if the address is disabled.
    """
    await services.limiter.mail(caller.owner_id)
    async with services.storage.write() as session:
        row = await _own(session, caller, alert_id)
        if row.disabled_at is not None:
            raise ServiceError(CONFLICT, "The address is disabled. Enable it first.")
        await deliveries.add(session, caller.owner_id, row.id, None, services.clock.now())
        services.due.set()
    return AlertTested(id=row.id)


def settings_of(row: Channel) -> AlertSettings:
    """Return the settings of an address."""
    return AlertSettings.model_validate_json(row.settings)


def link(services: Services, row: Channel, purpose: str) -> str:
    """Return the last part of a link, for the purpose `confirm` or `unsubscribe`."""
    return f"{row.owner_id}-{row.id}-{_digest(services, row, purpose)}"


async def of_link(services: Services, text: str, purpose: str) -> Channel:
    """Return the address that a link names.

    Raises:
        ServiceError: NOT_FOUND.
    """
    owner, _, rest = text.partition("-")
    number, _, digest = rest.partition("-")
    if owner.isdecimal() and number.isdecimal() and max(int(owner), int(number)) <= _LARGEST:
        async with services.storage.read() as session:
            row = await channels.find(session, int(owner), int(number), KINDS)
        if row is not None and hmac.compare_digest(_digest(services, row, purpose).encode(), digest.encode()):
            return row
    raise missing("link; it may be of an address that was deleted")


async def confirm(services: Services, row: Channel) -> None:
    """Confirm an address, which receives events from now on.

    Raises:
        ServiceError: NOT_FOUND if the link is older than three days.
    """
    if row.confirmed_at is None and services.clock.now() > row.created_at + CONFIRM_WITHIN:
        raise missing("link; it has expired")
    async with services.storage.write() as session:
        await channels.change(session, row.owner_id, row.id, confirmed_at=row.confirmed_at or services.clock.now())


async def unsubscribe(services: Services, row: Channel) -> None:
    """Stop all mail to an address. The link in a message is enough."""
    async with services.storage.write() as session:
        await channels.disable(session, row.owner_id, row.id, services.clock.now(), "unsubscribed")


def _digest(services: Services, row: Channel, purpose: str) -> str:
    return derived(services.pepper, purpose, row.nonce).hex()[:40]


def _target_digest(address: str) -> str:
    return hashlib.sha256(f"mailto:{address.lower()}".encode()).hexdigest()


def _columns(settings: AlertSettings) -> dict[str, str]:
    """Return the columns of settings. An address that hears of a silent site also hears when it is back."""
    types: set[EventType] = {*settings.immediate, *settings.daily}
    if types.intersection(DOWN):
        types.add("connection.online")
    stored = channels.stored_types(sorted(types)) or ",none,"
    return {"types": stored, "settings": settings.model_dump_json(by_alias=True)}


async def _own(session: Executor, caller: Caller, alert_id: str) -> Channel:
    number = int(alert_id) if alert_id.isascii() and alert_id.isdecimal() and len(alert_id) < 19 else 0
    row = await channels.find(session, caller.owner_id, number, KINDS)
    if row is None:
        raise missing("alert")
    return row


def _entry(row: Channel) -> AlertEntry:
    status = "active" if row.confirmed_at is not None else "unconfirmed"
    return AlertEntry.model_validate(
        {
            **settings_of(row).model_dump(),
            "id": row.id,
            "address": row.target,
            "status": status if row.disabled_at is None else "disabled",
            "disabled_reason": row.disabled_reason,
            "created_at": iso(row.created_at),
        }
    )
