"""The settings of a channel, which are the same for webhooks and for addresses of alerts."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import Event
from profilesvc.contract.common import Body
from profilesvc.contract.errors import CONFLICT
from profilesvc.database.statements import Executor
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.services import audit
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.storage.notify import channels
from profilesvc.storage.notify.channels import Channel
from profilesvc.storage.tables.columns import number_of


@dataclass(frozen=True, slots=True)
class OwnChannels:
    """The channels of some kinds, as their owner sees them. A channel that the caller does not have is NOT_FOUND.

    `noun` names one in the audit trail and in a 404, and `label` in other errors. `field` is that of its target in a
    body. `recorded` returns what the audit trail has of a channel.
    """

    kinds: tuple[str, ...]
    noun: Literal["alert", "webhook"]
    label: str
    field: str
    recorded: Callable[[Channel], dict[str, str | None]]

    def number(self, text: str) -> int:
        """Return the number of a channel in a path."""
        if not (number := number_of(text)):
            raise missing(self.noun)
        return number

    async def own(self, session: Executor, caller: Caller, number: int, *, locked: bool = False) -> Channel:
        """Return a channel of the caller."""
        channel = await channels.find(session, caller.owner_id, number, self.kinds, locked=locked)
        if channel is None:
            raise missing(self.noun)
        return channel

    async def enabled(self, session: Executor, caller: Caller, number: int, *, locked: bool = True) -> Channel:
        """Return a channel to which deliveries can be added. If it is disabled, raise CONFLICT."""
        channel = await self.own(session, caller, number, locked=locked)
        if channel.disabled_at is not None:
            raise ServiceError(CONFLICT, f"The {self.label} is disabled. Enable it first.")
        return channel

    async def get(self, services: Services, caller: Caller, text: str) -> Channel:
        """Return a channel of the caller by its number in a path."""
        async with services.storage.read() as session:
            return await self.own(session, caller, self.number(text))

    async def listing(self, services: Services, caller: Caller) -> list[Channel]:
        """Return the channels of the caller, oldest first."""
        async with services.storage.read() as session:
            return await channels.listing(session, caller.owner_id, self.kinds)

    async def add(
        self, services: Services, session: AsyncSession, caller: Caller, digest: str, **values: object
    ) -> Channel:
        """Add a channel, whose owner is locked. If its target is used, raise VALIDATION_ERROR."""
        values |= {"nonce": new_nonce(services), "created_at": services.clock.now()}
        number = await channels.add(session, caller.owner_id, digest, **values)
        if number is None:
            raise self.used()
        channel = await self.own(session, caller, number)
        await self.record(services, session, "created", channel)
        return channel

    async def change(
        self, services: Services, session: AsyncSession, caller: Caller, number: int, body: Body, **values: object
    ) -> Channel:
        """Change columns, record the fields of the body, and return the changed channel."""
        if values:
            await channels.change(session, caller.owner_id, number, **values)
        channel = await self.own(session, caller, number)
        await self.record(services, session, "changed", channel, fields=sorted(body.model_fields_set))
        return channel

    async def delete(self, services: Services, caller: Caller, text: str) -> int:
        """Delete a channel with its deliveries, and return its number."""
        number = self.number(text)
        async with services.storage.write() as session:
            channel = await self.own(session, caller, number)
            await channels.remove(session, caller.owner_id, number)
            await self.record(services, session, "deleted", channel)
        return number

    async def record(
        self, services: Services, session: AsyncSession, happened: str, channel: Channel, **more: object
    ) -> None:
        """Add to the audit trail what happened to a channel."""
        event, more[f"{self.noun}_id"] = cast(Event, f"{self.noun}.{happened}"), channel.id
        await audit.record(services, session, event, channel.owner_id, None, **self.recorded(channel), **more)

    def used(self) -> ServiceError:
        """Return the error for a target of another channel."""
        return invalid("body", self.field, f"is used by another of your {self.noun}s")


def new_nonce(services: Services) -> str:
    """Return random bits, from which the secret of a channel is derived."""
    return services.entropy.token_bytes(24).hex()


def switched(disabled_at: int | None, reason: str | None = None) -> dict[str, object]:
    """Return the columns of a channel that is disabled for a reason, or enabled."""
    return {"disabled_at": disabled_at, "disabled_reason": reason, "failing_since": None}


def digest_of(target: str) -> str:
    """Return the digest of a target. An owner may have one channel with it."""
    return hashlib.sha256(target.encode()).hexdigest()
