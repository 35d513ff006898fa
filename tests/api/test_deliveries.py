"""The worker: what it claims, when it repeats, and what it records, with senders of the test."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from benchmarks import bulk
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from conftest import ON_POSTGRES
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.contract.events import QuotaWarning
from profilesvc.delivery.senders import (
    Attempt,
    Delivered,
    Due,
    Failed,
    Outcome,
    Postponed,
    Retry,
    Sender,
    Skipped,
)
from profilesvc.delivery.worker import LEASE, Worker
from profilesvc.domain import webhooks
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, HOUR, SECOND, FrozenClock
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.storage import tables, users
from profilesvc.storage.notify import channels, deliveries
from support.waiting import until_async

pytestmark = pytest.mark.in_process("runs the rounds of the worker itself")
Channels = Callable[..., Any]


class Sending:
    """A sender that returns outcomes in turn, and the last one forever."""

    def __init__(self, *outcomes: Outcome | Callable[[Due], Outcome]) -> None:
        self._outcomes, self.sent = list(outcomes), list[list[Due]]()
        self.release = asyncio.Event()
        self.release.set()

    async def __call__(self, _services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        self.sent.append(due)
        await self.release.wait()
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        return outcome(due[0]) if callable(outcome) else outcome


def retry(due: Due) -> Outcome:
    return Retry(Attempt(due.now, 500, None, 12, "no"))


def delivered(due: Due) -> Outcome:
    return Delivered(Attempt(due.now, 200, None, 12, "ok"))


async def broken(_services: Services, _due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
    raise ZeroDivisionError


async def channel(services: Services, kind: str = "webhook", target: str = "https://a.example", **more: Any) -> int:
    async with services.storage.write() as session:
        number = await channels.add(
            session, 1, f"{kind} {target}", kind=kind, target=target, nonce="n", created_at=0, confirmed_at=0, **more
        )
    assert number is not None
    return number


async def happen(services: Services, count: int = 1) -> None:
    async with services.storage.write() as session:
        warned = QuotaWarning(used=8, limit=10, month="2026-01")
        events.publish(services, session, 1, *[events.new("quota.warning", warned) for _ in range(count)])


async def rows(services: Services) -> list[dict[str, Any]]:
    async with services.storage.read() as session:
        found = await session.execute(select(tables.deliveries).order_by(tables.deliveries.c.id))
        return [dict(row) for row in found.mappings()]


async def round_of(worker: Worker) -> int:
    started = await worker.run_round()
    await worker.settle()
    return started


async def test_sends_the_event_and_records_the_attempt(services: Services) -> None:
    await channel(services)
    await happen(services)
    sending = Sending(delivered)
    worker = Worker(services, {"webhook": sending})
    assert await round_of(worker) == 1
    [[due]] = sending.sent
    assert due.event is not None
    assert (due.event.type, due.event.data["used"], due.tries) == ("quota.warning", 8, 0)
    [row] = await rows(services)
    assert (row["state"], row["next_at"], row["claimed_until"], row["tries"]) == ("delivered", None, None, 1)
    now = services.clock.now()
    assert row["finished_at"] == now
    attempt = {"at": now, "status": 200, "error": None, "duration_ms": 12, "response": "ok"}
    assert orjson.loads(row["attempts"]) == [attempt]
    assert await round_of(worker) == 0


async def test_repeats_by_the_schedule_and_then_gives_up(services: Services, clock: FrozenClock) -> None:
    await channel(services)
    await happen(services)
    sending = Sending(retry)
    worker = Worker(services, {"webhook": sending})
    for wait in webhooks.SCHEDULE:
        assert await round_of(worker) == 1
        [row] = await rows(services)
        planned = row["next_at"] - clock.now()
        assert wait <= planned <= wait * 1.1
        clock.advance(milliseconds=planned - 1)
        assert await round_of(worker) == 0
        clock.advance(milliseconds=1)
    assert await round_of(worker) == 1
    [row] = await rows(services)
    assert (row["state"], row["next_at"], row["tries"]) == ("failed", None, 10)
    assert len(orjson.loads(row["attempts"])) == len(sending.sent) == 10


async def test_waits_as_long_as_the_receiver_wants_but_a_day_at_most(services: Services, clock: FrozenClock) -> None:
    await channel(services)
    await happen(services)
    now = clock.now()
    sending = Sending(
        lambda due: Retry(Attempt(due.now, 429), now + HOUR), lambda due: Retry(Attempt(due.now, 503), now + 90 * DAY)
    )
    worker = Worker(services, {"webhook": sending})
    await round_of(worker)
    assert (await rows(services))[0]["next_at"] == now + HOUR
    clock.advance(hours=1)
    await round_of(worker)
    assert (await rows(services))[0]["next_at"] == now + HOUR + DAY


async def test_a_channel_that_fails_for_five_days_is_disabled(services: Services, clock: FrozenClock) -> None:
    number = await channel(services)
    worker = Worker(services, {"webhook": Sending(retry, retry, delivered, retry)})
    await happen(services)
    await round_of(worker)
    async with services.storage.read() as session:
        [found] = await channels.listing(session, 1, ["webhook"])
    assert (found.id, found.failing_since) == (number, clock.now())
    clock.advance(days=4)
    await round_of(worker)
    clock.advance(days=1)
    await round_of(worker)  # succeeds, which ends the time of failing
    async with services.storage.read() as session:
        [found] = await channels.listing(session, 1, ["webhook"])
    assert (found.failing_since, found.disabled_at) == (None, None)
    await happen(services, 2)
    await round_of(worker)
    clock.advance(days=5)
    await round_of(worker)
    async with services.storage.read() as session:
        [found] = await channels.listing(session, 1, ["webhook"])
    assert (found.disabled_at, found.disabled_reason) == (clock.now(), "failing")
    await round_of(worker)
    assert "skipped" in {row["state"] for row in await rows(services)}
    await happen(services)
    to_it = [row for row in await rows(services) if row["channel_id"] == found.id]
    assert len(to_it) == 3, "a disabled channel gets nothing more"


async def test_a_failure_of_our_own_is_not_one_of_the_channel(services: Services, clock: FrozenClock) -> None:
    number = await channel(services)
    await happen(services)
    await round_of(Worker(services, {"webhook": broken}))
    clock.advance(days=5)
    await round_of(Worker(services, {"webhook": Sending(retry)}))
    async with services.storage.read() as session:
        found = await channels.find(session, 1, number, ["webhook"])
    assert found is not None
    assert (found.failing_since, found.disabled_at) == (clock.now(), None)


async def test_gone_disables_at_once(services: Services) -> None:
    await channel(services)
    await happen(services)
    await round_of(Worker(services, {"webhook": Sending(lambda due: Failed(Attempt(due.now, 410), "gone"))}))
    async with services.storage.read() as session:
        [found] = await channels.listing(session, 1, ["webhook"])
    assert found.disabled_reason == "gone"
    assert (await rows(services))[0]["state"] == "failed"


_MOVED = {"target": "https://b.example", "target_digest": "webhook https://b.example", "failing_since": None}
_ENABLED = {"disabled_at": None, "failing_since": None}


async def changed_while_sending(
    services: Services, number: int, outcome: Callable[[Due], Outcome], changed: dict[str, Any]
) -> channels.Channel:
    """The channel after a call to it, during which it was changed."""
    await happen(services)
    sending = Sending(outcome)
    sending.release.clear()
    worker = Worker(services, {"webhook": sending})
    await worker.run_round()
    async with services.storage.write() as session:
        await channels.change(session, 1, number, **changed)
    sending.release.set()
    await worker.settle()
    async with services.storage.read() as session:
        found = await channels.find(session, 1, number, ["webhook"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("outcome", "changed"),
    [(lambda due: Failed(Attempt(due.now, 410), "gone"), _MOVED), (retry, _MOVED), (retry, _ENABLED)],
    ids=["gone, of the old URL", "a failure of the old URL", "a failure from before it was enabled"],
)
async def test_a_late_response_does_not_disable_a_channel_that_was_changed(
    services: Services, outcome: Callable[[Due], Outcome], changed: dict[str, Any]
) -> None:
    number = await channel(services, failing_since=services.clock.now() - 6 * DAY)
    found = await changed_while_sending(services, number, outcome, changed)
    assert (found.disabled_at, found.disabled_reason) == (None, None)
    if changed is _MOVED:
        assert found.failing_since is None


async def test_a_late_success_of_the_old_url_says_nothing_about_the_new_one(services: Services) -> None:
    number = await channel(services, failing_since=services.clock.now() - DAY)
    found = await changed_while_sending(services, number, delivered, _MOVED | {"failing_since": 7})
    assert found.failing_since == 7


async def test_at_most_four_calls_at_a_time_to_a_channel_of_all_processes(services: Services) -> None:
    await channel(services)
    other = await channel(services, target="https://b.example")
    await happen(services, 9)
    sending = Sending(delivered)
    sending.release.clear()
    first, second = (Worker(services, {"webhook": sending}) for _ in range(2))
    assert await first.run_round() == 8
    assert await second.run_round() == 0
    await asyncio.sleep(0)
    assert sorted(due.channel.id for [due] in sending.sent).count(other) == 4
    sending.release.set()
    await first.settle()
    while await round_of(first) + await round_of(second):
        pass
    assert len({due.id for [due] in sending.sent}) == len(sending.sent) == 18


async def test_a_channel_that_fails_has_room_for_one_call(services: Services) -> None:
    await channel(services, failing_since=1)
    await happen(services, 9)
    assert await round_of(Worker(services, {"webhook": Sending(retry)})) == 1


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"])
async def test_100_of_1000_receivers_hang_and_the_others_do_not_wait(services: Services) -> None:
    now, hanging = services.clock.now(), asyncio.Event()
    channel_rows = ((1, number, "webhook", "https://a.example", str(number), "n", 0, 0) for number in range(1, 1_001))
    columns = "owner_id id kind target target_digest nonce created_at confirmed_at"
    await bulk.load(services.storage, tables.channels, columns.split(), channel_rows)
    # The backlog of those that hang is older, and larger than a page.
    due_rows = (
        (1, number, number % 1_000 + 1, now, now - (number % 1_000 < 100), "pending") for number in range(1, 10_001)
    )
    columns = "owner_id id channel_id created_at next_at state"
    await bulk.load(services.storage, tables.deliveries, columns.split(), due_rows)
    calls: Counter[int] = Counter()

    async def send(_services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        calls[due[0].channel.id] += 1
        if due[0].channel.id <= 100:
            await hanging.wait()
        return delivered(due[0])

    worker = Worker(services, {"webhook": send}, calls=1_000)  # an owner has half of them

    async def all_are_tried() -> bool:
        await worker.run_round()
        return sum(count for number, count in calls.items() if number > 100) == 9_000

    await until_async(all_are_tried, "10 attempts for each of 900 webhooks", seconds=60)
    assert {count for number, count in calls.items() if number > 100} == {10}
    assert {count for number, count in calls.items() if number <= 100} == {4}, "at most four calls at a time"
    await worker.stop()


async def of_owners(services: Services, counts: dict[int, int], each: int = 1) -> None:
    """Load webhooks of owners, with a number of due deliveries for each; those of the first owners are due first."""
    now, places = services.clock.now(), [owner for owner, count in counts.items() for _ in range(count)]
    channel_rows = (
        (owner, number, "webhook", f"https://{number}.example", str(number), "n", 0, 0)
        for number, owner in enumerate(places, 1)
    )
    columns = "owner_id id kind target target_digest nonce created_at confirmed_at"
    await bulk.load(services.storage, tables.channels, columns.split(), channel_rows)
    due_rows = (
        (owner, number * 100 + one, number, now, now - len(places) + number, "pending")
        for number, owner in enumerate(places, 1)
        for one in range(each)
    )
    columns = "owner_id id channel_id created_at next_at state"
    await bulk.load(services.storage, tables.deliveries, columns.split(), due_rows)


@pytest.mark.parametrize(
    ("counts", "calls", "expected"),
    [
        ({1: 40}, 20, {1: 10}),
        ({1: 40, 2: 40}, 20, {1: 7, 2: 7}),
        ({1: 40, 2: 1}, 20, {1: 10, 2: 1}),
        ({1: 3, 2: 40}, 20, {1: 3, 2: 9}),
        ({1: 40, 2: 40}, 2, {1: 1, 2: 1}),
        ({1: 40}, 1, {1: 1}),
    ],
    ids=str,
)
async def test_an_owner_has_as_many_calls_as_there_are_free_ones(
    services: Services, counts: dict[int, int], calls: int, expected: dict[int, int]
) -> None:
    await of_owners(services, counts)
    sending = Sending(delivered)
    sending.release.clear()
    worker = Worker(services, {"webhook": sending}, calls)
    await worker.run_round()
    await worker.run_round()
    assert Counter(due.owner_id for due in await started(worker, sending)) == expected
    sending.release.set()
    for _ in range(100):
        await round_of(worker)
    assert Counter(due.owner_id for due in await started(worker, sending)) == counts, "all are sent in the end"


async def test_owners_have_their_turn_before_an_older_backlog(services: Services) -> None:
    await of_owners(services, {1: 50, 3: 40, 2: 2})
    async with services.storage.read() as session:
        found = await deliveries.due(session, services.clock.now(), (), (), 8)
        assert [row.owner_id for row in found] == [1, 3, 2, 1, 3, 2, 1, 3]
        assert [row.channel_id for row in found if row.owner_id == 1] == [1, 2, 3], "the oldest of each owner first"
        others = await deliveries.due(session, services.clock.now(), (1,), (51, 52), 4)
        assert [(row.owner_id, row.channel_id) for row in others] == [(3, 53), (2, 91), (3, 54), (2, 92)]


async def started(worker: Worker, sending: Sending) -> list[Due]:
    await asyncio.sleep(0)
    return [due for [due] in sending.sent]


async def test_an_owner_whose_calls_hang_leaves_room_for_others(services: Services) -> None:
    """Four endpoints of each owner hang, with a backlog that is older and larger than a page."""
    hangs = asyncio.Event()
    await of_owners(services, {1: 300, 2: 1}, each=4)

    async def send(_services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        if due[0].owner_id == 1:
            await hangs.wait()
        return delivered(due[0])

    worker = Worker(services, {"webhook": send})
    await worker.run_round()
    assert sum(call.owner_id == 1 for call in worker._calls.values()) in range(240, 251), "half of the calls"
    await asyncio.gather(*(call for call, first in worker._calls.items() if first.owner_id == 2))
    await worker.stop()
    assert [row["state"] for row in await rows(services) if row["owner_id"] == 2] == ["delivered"] * 4


async def test_two_workers_at_once_claim_nothing_twice(services: Services) -> None:
    for number in range(10):
        await channel(services, target=f"https://{number}.example")
    await happen(services, 4)
    sending = Sending(delivered)
    workers = [Worker(services, {"webhook": sending}) for _ in range(4)]
    while any(await asyncio.gather(*(worker.run_round() for worker in workers))):
        await asyncio.gather(*(worker.settle() for worker in workers))
    assert len({due.id for [due] in sending.sent}) == len(sending.sent) == 40


@ON_POSTGRES
async def test_a_deletion_does_not_deadlock_with_a_claim(services: Services) -> None:
    """A claim locks the channel before its deliveries."""
    number = await channel(services)
    await happen(services)

    async def remove() -> None:
        async with services.storage.write() as session:
            await channels.remove(session, 1, number)

    async with services.storage.write() as session:
        await session.execute(select(tables.channels.c.id).with_for_update(key_share=True))
        removing = asyncio.create_task(remove())
        await asyncio.sleep(0.5)
        await session.execute(update(tables.deliveries).values(tries=1))
    await removing
    assert await rows(services) == []


async def test_a_killed_process_costs_a_repeat(services: Services, clock: FrozenClock) -> None:
    await channel(services)
    await happen(services)
    hanging = Sending(delivered)
    hanging.release.clear()
    killed, other = Worker(services, {"webhook": hanging}), Worker(services, {"webhook": Sending(delivered)})
    assert await killed.run_round() == 1
    clock.advance(milliseconds=LEASE - 1)
    assert await round_of(other) == 0
    clock.advance(milliseconds=1)
    assert await round_of(other) == 1
    assert (await rows(services))[0]["state"] == "delivered"
    hanging.release.set()  # it was not killed but slow: its result changes nothing
    await killed.settle()
    assert (await rows(services))[0]["tries"] == 1


async def test_a_stopped_process_gives_its_claims_back(services: Services) -> None:
    await channel(services)
    await happen(services)
    hanging = Sending(delivered)
    hanging.release.clear()
    worker = Worker(services, {"webhook": hanging})
    await worker.run_round()
    await asyncio.sleep(0)
    await worker.stop()
    [row] = await rows(services)
    assert (row["state"], row["next_at"], row["tries"]) == ("pending", services.clock.now(), 0)


async def one_by_one(_services: Services, due: list[Due], ended: dict[int, Outcome]) -> Outcome:
    """Deliver each with an outcome of its own."""
    ended.update({each.id: delivered(each) for each in due})
    return Skipped("none is left")


async def test_a_stopped_process_records_how_its_calls_ended(services: Services) -> None:
    await channel(services, "email")
    await happen(services, 3)
    worker = Worker(services, {"email": one_by_one})
    await worker.run_round()
    async with services.storage.write() as session:
        await session.execute(update(tables.deliveries).values(created_at=7))
        await asyncio.sleep(0.3)  # the first outcome waits for this transaction
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0.1)
    await stopping
    assert {row["state"] for row in await rows(services)} == {"delivered"}


async def test_an_outcome_that_cannot_be_recorded_prevents_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await channel(services, "email", failing_since=1)
    await happen(services, 3)
    stop_failing, failed = channels.stop_failing, list[int]()

    async def unavailable_once(session: AsyncSession, claimed: channels.Channel) -> None:
        if not failed:
            failed.append(claimed.id)
            raise ServiceError(SERVICE_UNAVAILABLE)
        await stop_failing(session, claimed)

    monkeypatch.setattr(channels, "stop_failing", unavailable_once)
    await round_of(Worker(services, {"email": one_by_one}))
    assert [row["state"] for row in await rows(services)] == ["pending", "delivered", "delivered"]


async def test_mail_of_an_address_is_sent_together_and_may_be_postponed(services: Services, clock: FrozenClock) -> None:
    await channel(services, "email", "a@example.com")
    await happen(services, 7)
    sending = Sending(lambda due: Postponed(due.now + HOUR), delivered)
    worker = Worker(services, {"email": sending})
    assert await round_of(worker) == 7
    assert {(row["state"], row["tries"], row["next_at"]) for row in await rows(services)} == {
        ("pending", 0, clock.now() + HOUR)
    }
    clock.advance(hours=1)
    await happen(services)
    assert await round_of(worker) == 8
    assert [len(due) for due in sending.sent] == [7, 8]
    assert {row["state"] for row in await rows(services)} == {"delivered"}


async def test_mail_of_two_addresses_of_an_owner_is_sent_together_for_each(services: Services) -> None:
    await channel(services, "email", "a@example.com")
    await channel(services, "email", "b@example.com")
    await happen(services, 4)
    sending = Sending(delivered)
    await round_of(Worker(services, {"email": sending}))
    assert [len(due) for due in sending.sent] == [4, 4]
    assert all(len({each.channel.target for each in due}) == 1 for due in sending.sent)


async def test_a_sender_that_raises_or_skips(services: Services, caplog: pytest.LogCaptureFixture) -> None:
    await channel(services, "slack")
    await channel(services, "discord")
    await channel(services, "teams")
    await happen(services)
    senders: dict[str, Sender] = {"slack": broken, "discord": Sending(Skipped("snoozed"))}
    await round_of(Worker(services, senders))
    states = {row["state"]: orjson.loads(row["attempts"])[0]["error"] for row in await rows(services)}
    assert states == {"pending": "internal error", "skipped": "unknown kind"}
    assert "ZeroDivisionError" in caplog.text


async def test_nothing_is_sent_for_a_suspended_owner_but_notices(services: Services) -> None:
    number = await channel(services)
    await channel(services, "email")
    await channel(services, "notice")
    await happen(services)
    async with services.storage.write() as session:
        await users.update_user(session, 1, suspended_at=services.clock.now())
    sending = Sending(delivered)
    worker = Worker(services, dict.fromkeys(("webhook", "email", "notice"), sending))
    await round_of(worker)
    assert [due.channel.kind for (due,) in sending.sent] == ["notice"]
    states = {row["channel_id"]: row["state"] for row in await rows(services)}
    assert sorted(states.values()) == ["delivered", "skipped", "skipped"]
    async with services.storage.write() as session:
        await users.update_user(session, 1, suspended_at=None)
        recovered = await channels.find(session, 1, number, ["webhook"])
        assert recovered is not None
        missed = await deliveries.missed(session, recovered, 0, 9)
        assert await deliveries.add_missed(session, recovered, missed, 0, 9, services.clock.now()) == 1
    await round_of(worker)
    assert [due.channel.kind for (due,) in sending.sent] == ["notice", "webhook"]


async def test_an_event_that_is_deleted_is_skipped(services: Services) -> None:
    number = await channel(services)
    async with services.storage.write() as session:
        await deliveries.add(session, 1, number, 99, services.clock.now())
    await round_of(Worker(services, {"webhook": Sending(delivered)}))
    assert (await rows(services))[0]["state"] == "skipped"


def test_the_waits_are_those_of_the_documentation() -> None:
    assert [wait // SECOND for wait in webhooks.SCHEDULE] == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert webhooks.next_wait(1, 0.0) == 5_000
    assert webhooks.next_wait(1, 1.0) == 5_500
    assert webhooks.next_wait(10, 0.5) is None
