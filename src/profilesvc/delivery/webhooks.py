"""Webhooks by Standard Webhooks: signed, with one attempt for each call (docs/events.md)."""

import time
from functools import lru_cache

import orjson

from profilesvc import __version__
from profilesvc.contract.json import JsonObject
from profilesvc.contract.retry_after import retry_after
from profilesvc.delivery.chats import message
from profilesvc.delivery.messages import story
from profilesvc.delivery.senders import Attempt, Delivered, Due, Failed, Outcome, Retry
from profilesvc.delivery.transport import Transport, Unreachable
from profilesvc.domain import webhooks
from profilesvc.domain.addresses import parse_target
from profilesvc.domain.time import SECOND, iso
from profilesvc.services.context import Services

_SLOW_DOWN = (429, 503)
_GONE = {"webhook": (410,), "slack": (404, 410), "teams": (404, 410), "discord": (404, 410)}
_DRIPS = "the body of the response did not end within 5 seconds"
_USER_AGENT = f"profilesvc/{__version__} (+https://www.standardwebhooks.com)"


_target = lru_cache(4096)(parse_target)  # which keeps what it accepts, and raises again for anything else


class WebhookSender:
    """Sends to webhooks, and to the incoming webhooks of chats."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __call__(self, services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        """Send one delivery. See senders.Sender."""
        (one,) = due
        started = time.monotonic()
        try:
            target = _target(one.channel.target, allow_private=services.settings.webhooks.allow_private)
            response = await self._transport.post(one.owner_id, target, *request_of(services, one))
        except (Unreachable, ValueError) as error:
            return Retry(Attempt(one.now, None, str(error), _since(started)))
        problem = _problem(response.status) or (_DRIPS if response.drips else None)
        attempt = Attempt(one.now, response.status, problem, _since(started), response.text)
        if problem is None:
            return Delivered(attempt)
        if response.status in _GONE[one.channel.kind]:
            return Failed(attempt, disable="gone")
        now = services.clock.now()
        wait = retry_after(response.retry_after, now / SECOND) if response.status in _SLOW_DOWN else None
        return Retry(attempt) if wait is None else Retry(attempt, now + round(wait * SECOND))


def request_of(services: Services, due: Due) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a delivery; the same ones for the same time."""
    headers = {"Content-Type": "application/json", "User-Agent": _USER_AGENT}
    document = document_of(due)
    if due.channel.kind != "webhook":
        title = "This is a test" if due.event is None else story(due.event, due.subject).title
        return headers, orjson.dumps(message(due.channel.kind, title, document))
    body = orjson.dumps(document)
    keys = [webhooks.secret(services.pepper, due.channel.nonce)]
    if due.channel.previous_nonce is not None and (due.channel.previous_until or 0) > due.now:
        keys.append(webhooks.secret(services.pepper, due.channel.previous_nonce))
    timestamp = due.now // SECOND
    signed = webhooks.signature(keys, document["id"], timestamp, body)
    own = {"webhook-id": document["id"], "webhook-timestamp": str(timestamp), "webhook-signature": signed}
    return headers | own, body


def document_of(due: Due) -> JsonObject:
    """Return the event as JSON, or that of a test; the same one for each attempt, because its id is the same."""
    event = due.event
    if event is not None:
        owner = {"id": event.owner.id}
        return {"id": event.id, "type": event.type, "created_at": event.created_at, "owner": owner, "data": event.data}
    return {
        "id": f"test_{due.owner_id}_{due.id}",
        "type": "webhook.test",
        "created_at": iso(due.created_at),
        "owner": {"id": due.owner_id},
        "data": {},
    }


def _problem(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirects are not followed" if 300 <= status < 400 else f"the receiver responded with {status}"


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
