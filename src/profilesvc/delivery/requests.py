"""The requests of deliveries, as their owner sees them afterwards."""

from dataclasses import dataclass

import orjson

from profilesvc.contract.webhooks import DeliveryEntry
from profilesvc.delivery.senders import Due
from profilesvc.delivery.webhooks import request_of
from profilesvc.domain.time import parse_iso
from profilesvc.domain.webhooks import OVERLAP
from profilesvc.services.context import Caller, Services
from profilesvc.services.events import number_of
from profilesvc.services.notify.webhooks import WEBHOOKS
from profilesvc.storage import events
from profilesvc.storage.events import Subject

_SIGNATURE = "webhook-signature"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request to a webhook. `body` is indented. `is_signed` is false if the secret of the signature was replaced."""

    headers: dict[str, str]
    body: str
    is_signed: bool


async def sent_request(services: Services, caller: Caller, webhook_id: int, entry: DeliveryEntry) -> SentRequest | None:
    """Return the request of the last attempt of a delivery, or None if nothing was sent.

    It is built again from the event, the time of the attempt and the secret, so that it need not be stored. The
    URL is left out, because the owner may have changed it since.

    Raises:
        ServiceError: NOT_FOUND.
    """
    if not entry.attempts or entry.state == "skipped":
        return None
    async with services.storage.read() as session:
        channel = await WEBHOOKS.own(session, caller, webhook_id)
        numbers = [] if entry.event is None else [number_of(entry.event)]
        subjects = await events.subjects(session, caller.owner_id, numbers)
    at = parse_iso(entry.attempts[-1].at)
    subject = next(iter(subjects.values()), Subject())
    due = Due(caller.owner_id, entry.id, channel, entry.event, parse_iso(entry.created_at), at, 0, subject)
    headers, body = request_of(services, due)
    is_of_this_secret = channel.previous_until is None or at >= channel.previous_until - OVERLAP
    is_signed = channel.kind == "webhook" and is_of_this_secret
    if not is_signed:
        headers.pop(_SIGNATURE, None)
    indented = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    return SentRequest(headers, indented, is_signed or channel.kind != "webhook")
