"""The provider's change feed: each push of Pub/Sub names what has changed (docs/notifications.md).

A push is answered at once. What it names is marked, so that no cache returns it, and read again in the background
(`operations/feed/feed.py`).
"""

import base64
import json
import logging
import re
from collections.abc import Collection
from typing import Literal, NamedTuple

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import SECOND
from profilesvc.provider.port import Provider, ProviderError
from profilesvc.services.access import invalid_token
from profilesvc.services.context import Services
from profilesvc.services.provider_logins import provider_of
from profilesvc.storage import feed, locations
from profilesvc.storage.locations import What
from profilesvc.storage.provider_logins import ProviderLogin
from profilesvc.tokens.signer import TokenRejected

log = logging.getLogger("profilesvc")
Result = Literal["received", "repeated", "unknown", "ignored", "malformed", "rejected"]
TYPES = ["GOOGLE_UPDATE", "NEW_REVIEW", "UPDATED_REVIEW", "DUPLICATE_LOCATION", "VOICE_OF_MERCHANT_UPDATED"]
_ALL: tuple[What, ...] = ("profile", "reviews")
_NAMED: dict[str, tuple[What, ...]] = {
    "GOOGLE_UPDATE": ("profile",),
    "DUPLICATE_LOCATION": ("profile",),
    "VOICE_OF_MERCHANT_UPDATED": ("profile",),
    "NEW_REVIEW": ("reviews",),
    "UPDATED_REVIEW": ("reviews",),
}
_OTHERS = re.compile(r"NEW_|UPDATED_|LOSS_OF_")  # media, questions and answers, which are not cached
_LOCATION = re.compile(r"(?:\A|/)(locations/[A-Za-z0-9_-]{1,70})(?:/|\Z)")
_MESSAGE_ID = re.compile(r"[!-~]{1,64}\Z")
# Reading starts only when no process, whatever its clock says, can have read what was there before the change.
_MARGIN = 2 * SECOND


class _Message(NamedTuple):
    id: str
    location: str
    named: tuple[What, ...]


async def turn_on(services: Services, remote: Provider, account: str) -> JsonObject:
    """Let the provider publish the changes of an account to the topic, and return the setting there.

    Raises:
        ProviderError: It could not be set.
    """
    return await remote.set_notifications(account, services.settings.notifications.topic, TYPES)


async def turn_on_all(services: Services, row: ProviderLogin, accounts: Collection[str]) -> None:
    """Let the provider publish the changes of accounts from which locations were imported."""
    for account in accounts:
        try:
            await turn_on(services, provider_of(services, row), account)
        except ProviderError as error:
            log.warning("the change feed of %s could not be enabled: %s", account, error)


async def authenticate(services: Services, token: str) -> None:
    """Require the token of the configured push subscription. Nothing is read or written for another one.

    Raises:
        ServiceError: NOT_FOUND without a change feed, AUTH_INVALID_TOKEN, RATE_LIMITED, SERVICE_UNAVAILABLE.
    """
    if services.push_tokens is None:
        raise ServiceError(NOT_FOUND, "There is no such path.")
    try:
        await services.push_tokens.verify(token, services.clock.now())
    except TokenRejected:
        services.metrics.notification("rejected")
        await services.limiter.by_address()
        raise invalid_token("invalid") from None


async def receive(services: Services, raw: bytes) -> None:
    """Mark what an authentic push names.

    A malformed one is acknowledged like any other, because Pub/Sub would repeat it for days, and it would not improve.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; Pub/Sub repeats the push.
    """
    try:
        message = _read(raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("a notification of the provider is malformed: %s", type(error).__name__)
        services.metrics.notification("malformed")
        return
    services.metrics.notification(await _receive(services, message))


async def _receive(services: Services, message: _Message) -> Result:
    if not message.named:
        return "ignored"
    at = services.clock.now() + _MARGIN
    async with services.storage.write() as session:
        if not await feed.receive(session, message.id, services.clock.now()):
            return "repeated"
        owner_id = (await locations.owners_of(session, [message.location])).get(message.location)
        if owner_id is None:
            return "unknown"
        for what in message.named:
            await locations.expire(session, owner_id, message.location, what, at)
            await feed.mark(session, owner_id, message.location, what, at)
    return "received"


def _read(raw: bytes) -> _Message:
    """Return what a push of Pub/Sub says. A type that is not known may mean anything."""
    message = json.loads(raw)["message"]
    ident = message.get("messageId") or message["message_id"]
    if not (isinstance(ident, str) and _MESSAGE_ID.match(ident)):
        raise ValueError("messageId")
    data: JsonObject = json.loads(base64.b64decode(message.get("data") or "e30=", validate=True))
    named_values = {**(message.get("attributes") or {}), **data}
    # The provider documents both `locationName` and `location_name`.
    fields = {name.replace("_", "").lower(): value for name, value in named_values.items()}
    kind = str(fields.get("notificationtype") or fields.get("type") or "")
    matches = [match for value in fields.values() if isinstance(value, str) and (match := _LOCATION.search(value))]
    named = _NAMED.get(kind, () if _OTHERS.match(kind) else _ALL)
    if not matches:
        raise ValueError("location")
    return _Message(ident, matches[0][1], named)
