"""Claim what is due, send it by the kind of its channel, and record how it ended.

Every process runs a worker. It claims deliveries with a lease, so that a killed process costs a repeat after 60 s,
never a loss (docs/events.md).
"""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import Mapping

import orjson

from profilesvc.contract.events import PublishedEvent
from profilesvc.database.batches import Batches
from profilesvc.delivery.senders import Attempt, Delivered, Due, Failed, Outcome, Postponed, Retry, Sender, Skipped
from profilesvc.domain import webhooks
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import SECOND
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.services.jobs import Job, Where
from profilesvc.services.notify.webhooks import WEBHOOKS, disable
from profilesvc.storage import events as stored_events
from profilesvc.storage.events import Subject
from profilesvc.storage.notify import channels, deliveries
from profilesvc.storage.notify.deliveries import Claimed, DueRow, Finished

log = logging.getLogger("profilesvc")
LEASE = 60 * SECOND
_PAGE = 200  # due rows that are read at once
_PAGES = 3  # in a round
_POLL_SECONDS = 1.0
_CHANCE_BYTES = 3  # a length of its own, so that seeded tests make the same secrets as without attempts


class Worker:
    """The deliveries of one process. `calls` is how many it sends at a time.

    An owner may have as many calls as are free. So one owner has half of them at most, several busy owners come to
    equal shares, and some calls are free for an owner who has none (D-131).
    """

    def __init__(self, services: Services, senders: Mapping[str, Sender], calls: int = 500) -> None:
        self._services, self._senders = services, senders
        self._limit = calls
        self._calls: dict[asyncio.Task[None], Claimed] = {}  # the first delivery of each
        self._recording = set[asyncio.Task[None] | None]()  # the calls that have ended and are recorded
        self._finished = Batches(services.storage, deliveries.finishing)
        self._crowded: set[int] = set()  # channels that have more due deliveries than room
        self._served: set[int] = set()  # owners that have their share of the calls, and perhaps more due deliveries

    async def run_round(self) -> int:
        """Start the calls that are due now, and return how many deliveries they have."""
        services, started = self._services, 0
        now = services.clock.now()
        of_channels = Counter(each.channel for each in self._calls.values())
        self._crowded = {channel.id for channel, count in of_channels.items() if count >= channel.room}
        self._served, pages = set(), 0
        while (room := self._limit - len(self._calls)) > 0:
            if pages == _PAGES:  # what has become due meanwhile is in the next round
                services.due.set()
                break
            pages += 1
            services.storage.renew()
            limit, of_owners = min(room, _PAGE), Counter(each.owner_id for each in self._calls.values())
            self._served |= {owner for owner, count in of_owners.items() if count >= room}
            async with services.storage.read() as session:
                rows = await deliveries.due(session, now, self._served, self._crowded, limit)
            if not rows:
                break
            chosen = _shared(rows, of_owners, room)
            claimed = await self._claim(chosen, now)
            started += len(claimed)
            numbers = {each.id for each in claimed}
            self._crowded |= {row.channel_id for row in chosen if row.id not in numbers}
            for batch in _batches(claimed):
                # An empty context gives each call its own time for the database, not that of the job.
                task = asyncio.get_running_loop().create_task(self._deliver(batch, now), context=contextvars.Context())
                self._calls[task] = batch[0]
                task.add_done_callback(self._ended)
            if len(rows) < limit and len(rows) == len(chosen):
                break
        return started

    async def _claim(self, rows: list[DueRow], now: int) -> list[Claimed]:
        storage = self._services.storage
        return await storage.transact(lambda by: deliveries.claim(by, storage.dialect, rows, now, now + LEASE))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._recording.discard(task)
        call = self._calls.pop(task)
        is_awaited = call.channel.id in self._crowded or call.owner_id in self._served
        if is_awaited or len(self._calls) + 1 >= self._limit:
            self._services.due.set()

    async def settle(self) -> None:
        """Wait for the calls that have started."""
        while self._calls:
            await asyncio.wait(list(self._calls))

    async def stop(self) -> None:
        """End the calls, but record how those ended that were made. Another process repeats the others at once."""
        for task in self._calls:
            if task not in self._recording:
                task.cancel()
        await self.settle()

    async def _deliver(self, batch: list[Claimed], now: int) -> None:
        ended: dict[int, Outcome] = {}
        try:
            rest = await self._send(batch, now, ended)
        except asyncio.CancelledError:
            rest = Postponed(now)
        self._recording.add(asyncio.current_task())
        for outcome, its in _by_outcome(batch, ended, rest):
            try:
                await self._record(its, outcome)
            except ServiceError as error:  # the lease ends by itself, and the delivery is repeated
                self._services.failed_in_background("deliveries", error)
            except Exception:
                log.exception("deliveries: unexpected")

    async def _send(self, batch: list[Claimed], now: int, ended: dict[int, Outcome]) -> Outcome:
        """Send deliveries. Add the outcomes of some to `ended` at once, and return that of all others."""
        channel, gone = batch[0].channel, Skipped("the event is older than 30 days")
        if channel.disabled_at is not None:
            return Skipped("disabled")
        if batch[0].is_suspended and channel.kind != "notice":  # a notice is about the end of the account itself
            return Skipped("the account is suspended")
        if channel.kind not in self._senders:
            return Skipped("unknown kind")
        ended.update({each.id: gone for each in batch if each.event is None and each.event_id is not None})
        current = [each for each in batch if each.id not in ended]
        if not current:
            return gone
        try:
            due = await self._due(current, now)
            return await self._senders[channel.kind](self._services, due, ended)
        except Exception:  # a defect must not end the worker
            log.exception("deliveries: unexpected")
            return Retry(Attempt(now, error="internal error"), blames_receiver=False)

    async def _due(self, batch: list[Claimed], now: int) -> list[Due]:
        channel, subjects = batch[0].channel, dict[int, Subject]()
        if channel.kind != "webhook":  # its document has no names
            numbers = [each.event_id for each in batch if each.event_id is not None]
            async with self._services.storage.read() as session:
                subjects = await stored_events.subjects(session, channel.owner_id, numbers)
        pairs = [(each, subjects.get(each.event_id or 0, Subject())) for each in batch]
        return [
            Due(each.owner_id, each.id, channel, _event(each), each.created_at, now, each.tries, subject)
            for each, subject in pairs
        ]

    async def _record(self, batch: list[Claimed], outcome: Outcome) -> None:
        now = self._services.clock.now()
        disabled = await self._judge_channel(batch[0], outcome, now)
        self._services.metrics.delivery(batch[0].channel.kind, type(outcome).__name__.lower())
        chance = 0.0
        if isinstance(outcome, Retry):  # one for all, because the deliveries of a digest are repeated together
            chance = int.from_bytes(self._services.entropy.token_bytes(_CHANCE_BYTES)) / 256**_CHANCE_BYTES
        ended = [_finish(each, outcome, now, chance, final=disabled) for each in batch]
        await asyncio.gather(*(self._finished.add(each) for each in ended))

    async def _judge_channel(self, claimed: Claimed, outcome: Outcome, now: int) -> bool:
        """Record whether the channel fails, disable it if it does for too long, and return whether it was disabled."""
        channel, is_disabled = claimed.channel, False
        failing = channel.failing_since
        if isinstance(outcome, Delivered) and failing is not None:
            async with self._services.storage.write() as session:
                await channels.stop_failing(session, channel)
        if not isinstance(outcome, Failed) and not (isinstance(outcome, Retry) and outcome.blames_receiver):
            return False
        reason = outcome.disable if isinstance(outcome, Failed) else None
        if channel.kind in WEBHOOKS.kinds and failing is not None and now - failing >= webhooks.FAILING_FOR:
            reason = reason or "failing"
        if failing is None or reason is not None:
            async with self._services.storage.write() as session:
                await channels.start_failing(session, channel, now)
                is_disabled = reason is not None and await disable(self._services, session, channel, reason)
        if is_disabled:
            log.warning("channel %d of owner %d is disabled: %s", channel.id, channel.owner_id, reason)
        return is_disabled


def _finish(claimed: Claimed, outcome: Outcome, now: int, chance: float, *, final: bool) -> Finished:
    tries, attempts = claimed.tries, claimed.attempts
    next_at = None
    state: deliveries.State = "failed"
    if isinstance(outcome, Postponed):
        state, next_at = "pending", outcome.until
    elif isinstance(outcome, Skipped):
        state, attempts = "skipped", _with(attempts, Attempt(now, error=outcome.reason))
    else:
        tries, attempts = tries + 1, _with(attempts, outcome.attempt)
        if isinstance(outcome, Delivered):
            state = "delivered"
        elif isinstance(outcome, Retry) and not final and (wait := webhooks.next_wait(tries, chance)) is not None:
            state, next_at = "pending", max(now + wait, min(outcome.not_before, now + webhooks.MAX_WAIT))
    finished_at = None if state == "pending" else now
    return Finished(claimed.owner_id, claimed.id, claimed.claimed_until, state, next_at, tries, attempts, finished_at)


def _shared(rows: list[DueRow], of_owners: Counter[int], room: int) -> list[DueRow]:
    """Return the deliveries that their owners may have, who have some calls already, while `room` calls are free."""
    chosen = list[DueRow]()
    for row in rows:
        if of_owners[row.owner_id] < room - len(chosen):
            of_owners[row.owner_id] += 1
            chosen.append(row)
    return chosen


def _batches(claimed: list[Claimed]) -> list[list[Claimed]]:
    """Return the deliveries of each e-mail address together, and all others one by one."""
    batches: dict[tuple[int, ...], list[Claimed]] = {}
    for each in claimed:
        own = () if each.channel.kind == "email" else (each.id,)
        batches.setdefault((each.owner_id, each.channel.id, *own), []).append(each)
    return list(batches.values())


def _by_outcome(
    batch: list[Claimed], ended: Mapping[int, Outcome], rest: Outcome
) -> list[tuple[Outcome, list[Claimed]]]:
    """Return the outcomes with their deliveries; `rest` is that of all that are not in `ended`."""
    by_outcome: dict[int, tuple[Outcome, list[Claimed]]] = {}
    for each in batch:
        its = ended.get(each.id, rest)
        by_outcome.setdefault(id(its), (its, []))[1].append(each)
    return list(by_outcome.values())


def _event(claimed: Claimed) -> PublishedEvent | None:
    return None if claimed.event is None else events.published(claimed.owner_id, claimed.event)


def _with(attempts: str, attempt: Attempt) -> str:
    return orjson.dumps([*orjson.loads(attempts), attempt]).decode()


def job(services: Services, senders: Mapping[str, Sender]) -> Job:
    worker = Worker(services, senders, services.settings.webhooks.calls)
    run, end = (lambda _: worker.run_round()), (lambda _: worker.stop())
    return Job("deliveries", run, 0, _POLL_SECONDS, Where.EVERY, wake=services.due, end=end)


async def deliver_due(services: Services, senders: Mapping[str, Sender]) -> int:
    """Deliver what is due now, and return how many deliveries that were: for programs that move the clock."""
    worker, count = Worker(services, senders), 0
    while started := await worker.run_round():
        count += started
        await worker.settle()
    return count
