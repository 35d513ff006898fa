"""The provider's change feed: what a push does, and what is read because of it."""

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from quart import Quart
from sqlalchemy import func, select

from conftest import ON_ONE_DATABASE, Dial
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock, iso
from profilesvc.emulator.state import Emulator
from profilesvc.operations.feed import feed
from profilesvc.services.context import Services
from profilesvc.services.feed import feed as receiving
from profilesvc.services.jobs import run_once
from profilesvc.settings import Settings
from profilesvc.storage import tables
from support.api import assert_error, assert_ok
from support.browser.dashboard import Browser
from support.effort import effort
from support.jobs import job_named
from support.provider.consent import BAKERY, CONNECTIONS, add_dana, connected
from support.provider.drive import calls, drift, fail, forget_calls, heal
from support.provider.feed import FEED, PATH, connect, message, push

ALICE, PIER = "accounts/1", "locations/111"
REVIEWS = "/api/v1/reviews"
pytestmark = pytest.mark.in_process("runs the rounds itself")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"notifications": FEED})


@pytest.fixture
async def pushing(app: Quart, world: Runtime, services: Services) -> Emulator:
    return await connect(app, world, services, ALICE)


async def pushes(emulator: httpx.AsyncClient) -> list[dict[str, Any]]:
    """What the emulator has published; its deliveries are over."""
    found: list[dict[str, Any]] = (await emulator.get("/__emulator/pushes")).json()["pushes"]
    return found


async def pass_time(services: Services, clock: FrozenClock, seconds: int = 60) -> None:
    """As the background does: a round every five seconds."""
    for _ in range(0, seconds, 5):
        clock.advance(seconds=5)
        await feed.run_once(services)


async def published(services: Services) -> list[tuple[str, str]]:
    query = select(tables.events).where(tables.events.c.owner_id == 1).order_by(tables.events.c.id)
    async with services.storage.read() as session:
        return [(row.type, row.location_name) for row in (await session.execute(query)).all()]


async def count(services: Services, table: Any) -> int:
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(table))).scalar_one())


async def google_edits(emulator: httpx.AsyncClient, title: str, location: str = PIER) -> None:
    await drift(emulator, google_updated={location: {"title": title}})


async def customer_writes(emulator: httpx.AsyncClient, ident: str, at: int) -> None:
    review = {"starRating": "FIVE", "createTime": iso(at), "updateTime": iso(at)}
    await drift(emulator, reviews={f"{ALICE}/{PIER}/reviews/{ident}": review})


async def test_a_change_by_google_becomes_one_event_within_a_minute(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    await google_edits(emulator, "Harbour Coffee")
    assert len(await pushes(emulator)) == 1
    await pass_time(services, clock)
    assert await published(services) == [("profile.drifted", PIER)]
    await pass_time(services, clock, 120)
    for _ in range(2):
        await google_edits(emulator, "Harbour Coffee")
        await pushes(emulator)
        await pass_time(services, clock)
    assert len(await published(services)) == 1
    event = assert_ok(await alice.get("/api/v1/events"))["events"][0]
    assert event["data"]["differences"] == [
        {"field": "title", "source": "Harbour Coffee, Pier", "provider": "Harbour Coffee"}
    ]
    await google_edits(emulator, "Harbour")
    await pushes(emulator)
    await pass_time(services, clock)
    assert len(await published(services)) == 2


async def test_a_new_review_becomes_one_event(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    assert_ok(await alice.get(REVIEWS, params={"locationId": "111"}))
    clock.advance(seconds=10)
    await customer_writes(emulator, "7001", clock.now())
    await pushes(emulator)
    await pass_time(services, clock)
    await pass_time(services, clock)
    assert await published(services) == [("review.created", PIER)]


@pytest.mark.slow
@pytest.mark.fuzz
async def test_a_change_of_the_verification_becomes_one_event(
    services: Services,
    http: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    pushing: Emulator,
) -> None:
    """Of each, also of the sync that cannot go on."""
    headers = {"Authorization": await genuine(emulator)}
    await pass_time(services, clock)
    before = len(await published(services))
    verified = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
    for ident, state in enumerate(({"complyWithGuidelines": {}}, {"complyWithGuidelines": {}}, verified)):
        await drift(emulator, voice_of_merchant={PIER: state})
        body = message(str(ident), "VOICE_OF_MERCHANT_UPDATED")
        assert (await http.post(PATH, json=body, headers=headers)).status_code == 204
        await pass_time(services, clock)
    changed = ("location.verification_changed", PIER)
    assert (await published(services))[before:] == [("location.sync_switched", PIER), changed, changed]


async def test_a_change_that_is_announced_often_and_out_of_order_becomes_one_event(
    services: Services,
    http: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    pushing: Emulator,
    alice: Any,
) -> None:
    """10,000 deliveries of 5,000 messages in `make fuzz`."""
    assert_ok(await alice.get(REVIEWS, params={"locationId": "111"}))
    pushing.push_transport = httpx.MockTransport(lambda _: httpx.Response(204))
    wanted = effort(60, 5_000)
    number = random.Random(7)
    places = [PIER, "locations/112", "locations/119"]
    expected: Counter[tuple[str, str]] = Counter()
    batch = 20
    for start in range(0, wanted, batch):
        clock.advance(seconds=10)
        await emulator.delete("/__emulator/pushes")
        written = {}
        for step in range(start, start + batch - len(places)):
            at = iso(clock.now() + step - start)
            written[f"{ALICE}/{PIER}/reviews/r{step}"] = {"starRating": "ONE", "createTime": at, "updateTime": at}
            expected["review.created", PIER] += 1
        for place in places:
            expected["profile.drifted", place] += 1
        edits = {place: {"title": f"Title {start}"} for place in places}
        await drift(emulator, reviews=written, google_updated=edits)
        deliveries = [sent for sent in await pushes(emulator) for _ in range(2)]
        number.shuffle(deliveries)
        for sent in deliveries[: len(deliveries) // 2]:
            assert (await push(http, sent)).status_code == 204
        await pass_time(services, clock, 5)
        for sent in deliveries[len(deliveries) // 2 :]:
            assert (await push(http, sent)).status_code == 204
        await pass_time(services, clock, 15)
    assert Counter(await published(services)) == expected
    assert await count(services, tables.notifications) == wanted
    assert await count(services, tables.changed_locations) == 0


async def test_a_change_is_handled_once_by_several_processes(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, database: str
) -> None:
    """Each message reaches all of them at once, and all of them run rounds."""
    async with contextlib.AsyncExitStack() as stack:
        processes = [services]
        if database == "postgres":
            for number in range(2):
                runtime = Runtime(clock, SeededEntropy(f"other {number}"))
                other = await stack.enter_async_context(open_services(services.settings, runtime))
                processes.append(replace(other, provider=services.provider))
        await forget_calls(emulator)
        for number in range(10):
            await google_edits(emulator, f"Title {number}")
            sent = (await pushes(emulator))[-1]
            raw = json.dumps(sent["body"]).encode()
            await asyncio.gather(*(receiving.receive(process, raw) for process in processes * 3))
            clock.advance(seconds=10)
            await asyncio.gather(*(run_once(process, job_named("feed")) for process in processes * 2))
    assert await published(services) == [("profile.drifted", PIER)] * 10
    read = [call["path"] for call in await calls(emulator, "GET") if call["path"] == f"/v1/{PIER}"]
    assert len(read) == 10


async def test_a_change_is_read_later_if_the_provider_fails(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator
) -> None:
    await google_edits(emulator, "Harbour Coffee")
    await pushes(emulator)
    await fail(emulator, status=503)
    await pass_time(services, clock, 10)
    await heal(emulator)
    await forget_calls(emulator)
    await pass_time(services, clock, 45)
    assert await calls(emulator) == []
    await pass_time(services, clock, 30)
    assert await published(services) == [("profile.drifted", PIER)]


@pytest.mark.slow
@pytest.mark.fuzz
@ON_ONE_DATABASE
async def test_many_notifications_in_a_second_do_not_exceed_the_budget_of_calls(
    services: Services,
    http: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    pushing: Emulator,
) -> None:
    """Of as many locations: 300 calls in any minute, and in the end all are read."""
    wanted = effort(320, 1000)
    await _many_locations(services, emulator, wanted)
    await google_edits(emulator, "x")
    (sent,) = await pushes(emulator)
    for number in range(wanted):
        body = message(str(number), location=f"locations/9{number:04}")
        assert (await push(http, {**sent, "body": body})).status_code == 204
    assert await count(services, tables.changed_locations) == wanted + 1
    await forget_calls(emulator)
    per_round = []
    while await count(services, tables.changed_locations):
        before = len(await calls(emulator, "GET"))
        await pass_time(services, clock, 5)
        per_round.append(len(await calls(emulator, "GET")) - before)
        if len(per_round) % 12 == 0:
            await forget_calls(emulator)
        assert len(per_round) < 100
    assert max(sum(per_round[start : start + 12]) for start in range(len(per_round))) <= 300
    assert sum(per_round) == wanted + 2, "one each, and two of the location that has changed"


async def _many_locations(services: Services, emulator: httpx.AsyncClient, amount: int) -> None:
    names = [f"locations/9{number:04}" for number in range(amount)]
    await drift(emulator, new_locations={name: {"account": ALICE, "profile": {"title": name}} for name in names})
    row = {"owner_id": 1, "account": ALICE, "title": "", "profile": "{}", "profile_read_at": 0, "is_verified": True}
    row |= {"verification_state": "VERIFIED", "sync_enabled": False}
    async with services.storage.write() as session:
        await session.execute(tables.locations.insert(), [{**row, "name": name} for name in names])
        await session.execute(tables.location_owners.insert(), [{"name": name, "owner_id": 1} for name in names])


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 50_000, b'{"message": []}', b'{"message": {}}',
        b'{"message": {"messageId": 7}}', b'{"message": {"messageId": ""}}', b'{"message": {"messageId": "a b"}}',
        b'{"message": {"messageId": "1", "data": "*"}}', b'{"message": {"messageId": "1", "data": "W10="}}',
        b'{"message": {"messageId": "1"}}', b'{"message": {"messageId": "1", "attributes": {"a": "b"}}}',
        b"x" * 100_000,
    ],
)  # fmt: skip
@ON_ONE_DATABASE
async def test_a_push_without_sense_is_acknowledged_and_does_nothing(
    services: Services, http: httpx.AsyncClient, emulator: httpx.AsyncClient, pushing: Emulator, body: bytes
) -> None:
    """Pub/Sub would repeat it for days."""
    token = await genuine(emulator)
    answer = await http.post(PATH, content=body, headers={"Authorization": token})
    assert (answer.status_code, answer.content) == (204, b"")
    assert await count(services, tables.notifications) == 1, "that of the token"


async def test_a_push_of_an_unknown_location_or_another_type_reads_nothing(
    services: Services,
    http: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    pushing: Emulator,
    clock: FrozenClock,
) -> None:
    token = await genuine(emulator)
    await pass_time(services, clock, 10)
    await forget_calls(emulator)
    for body in (message("1", location="locations/999"), message("2", "NEW_CUSTOMER_MEDIA")):
        assert (await http.post(PATH, json=body, headers={"Authorization": token})).status_code == 204
    await pass_time(services, clock, 10)
    assert await calls(emulator) == []
    text = services.metrics.exposition().decode()
    for result in ("unknown", "ignored", "received"):
        assert f'profilesvc_provider_notifications_total{{result="{result}"}} 1.0' in text


async def test_a_push_of_an_unknown_type_or_in_the_other_spelling_is_read(
    services: Services,
    http: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    pushing: Emulator,
    clock: FrozenClock,
) -> None:
    token = await genuine(emulator)
    await pass_time(services, clock, 10)
    await forget_calls(emulator)
    plain = {"message_id": "9", "attributes": {"location_name": f"{ALICE}/{PIER}"}}
    for body in (message("8", "SOMETHING"), {"message": plain}):
        assert (await http.post(PATH, json=body, headers={"Authorization": token})).status_code == 204
    await pass_time(services, clock, 10)
    paths = {call["path"].rpartition("/")[2] for call in await calls(emulator, "GET")}
    assert paths == {"111", "111:getGoogleUpdated", "reviews"}


async def genuine(emulator: httpx.AsyncClient) -> str:
    """A token of the emulator, with a push that was delivered."""
    await google_edits(emulator, "Genuine")
    return str((await pushes(emulator))[0]["authorization"])


@pytest.mark.fuzz
@ON_ONE_DATABASE
async def test_mirrors_are_read_without_calls_for_a_day(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    """100,000 reads in `make fuzz`."""
    reads: list[Callable[[], Awaitable[httpx.Response]]] = [
        lambda: alice.get(f"/api/v1/external-business/{PIER}"),
        lambda: alice.get(REVIEWS, params={"locationId": "111"}),
        lambda: alice.get(REVIEWS, params={"locationId": "111", "pageSize": 2, "orderBy": "rating"}),
        lambda: alice.get(f"{REVIEWS}/111002", params={"locationId": "111"}),
    ]
    first = [assert_ok(await read()) for read in reads]
    clock.advance(hours=1)
    await services.background.drain()
    await forget_calls(emulator)
    for number in range(effort(200, 100_000)):
        assert assert_ok(await reads[number % 4]()) == first[number % 4]
    assert await calls(emulator) == []
    clock.advance(hours=24)
    for read in reads:
        assert_ok(await read())
    assert len(await calls(emulator, "GET")) == 4


async def test_a_mirror_ends_when_a_notification_arrives(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    listed = {"locationId": "111"}
    assert len(assert_ok(await alice.get(REVIEWS, params=listed))["reviews"]) == 5
    clock.advance(minutes=10)
    await customer_writes(emulator, "7001", clock.now())
    await drift(emulator, locations={PIER: {"websiteUri": "https://new.example"}})
    await google_edits(emulator, "Harbour Coffee")
    await pushes(emulator)
    assert len(assert_ok(await alice.get(REVIEWS, params=listed))["reviews"]) == 6
    await pass_time(services, clock, 10)
    await forget_calls(emulator)
    assert len(assert_ok(await alice.get(REVIEWS, params=listed))["reviews"]) == 6
    assert await calls(emulator) == [], "the reading has stored the page"


async def test_a_mirror_ends_when_the_owner_replies(
    emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    query = {"locationId": "111"}
    for comment in ("Thanks", "Thank you"):
        assert_ok(await alice.get(f"{REVIEWS}/111002", params=query))
        clock.advance(minutes=1)
        assert_ok(await alice.put(f"{REVIEWS}/111002/reply", params=query, json={"comment": comment}))
        seen = assert_ok(await alice.get(f"{REVIEWS}/111002", params=query))["reviewReply"]
        assert (seen["comment"], seen["reviewReplyState"]) == (comment, "PENDING")
        clock.advance(seconds=30)
        seen = assert_ok(await alice.get(f"{REVIEWS}/111002", params=query))["reviewReply"]
        assert seen["reviewReplyState"] == "APPROVED", "no notification says so"


async def test_a_mirror_is_read_again_while_an_edit_is_in_review(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, pushing: Emulator, alice: Any
) -> None:
    await drift(emulator, switches={"edit_review_seconds": 100_000})
    await services.provider.patch_location(PIER, {"title": "In review"}, ["title"])
    clock.advance(hours=25)
    assert_ok(await alice.get(f"/api/v1/external-business/{PIER}"))
    for _ in range(2):
        clock.advance(minutes=2)
        await forget_calls(emulator)
        assert_ok(await alice.get(f"/api/v1/external-business/{PIER}"))
        assert len(await calls(emulator, "GET")) == 1


async def test_a_connection_has_the_feed_from_its_import_until_it_is_disconnected(
    services: Services,
    dial: Dial,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    pushing: Emulator,
    alice: Any,
) -> None:
    """Without an operator, and nothing of its locations is left."""
    await add_dana(emulator)
    async with dial() as client:
        browser = Browser(client)
        await browser.sign_in("alice@example.com")
        number = await connected(browser, alice)
    assert_ok(await alice.post(f"{CONNECTIONS}/{number}/import", json={"locations": [BAKERY]}))
    await services.background.drain()
    assert_ok(await alice.get(REVIEWS, params={"locationId": "411"}))
    clock.advance(minutes=1)
    await google_edits(emulator, "Roy & Sons", BAKERY)
    await pushes(emulator)
    await pass_time(services, clock)
    assert ("profile.drifted", BAKERY) in await published(services)
    await google_edits(emulator, "Roy & Daughters", BAKERY)
    await pushes(emulator)
    assert (await count(services, tables.mirrors), await count(services, tables.changed_locations)) == (1, 1)
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    assert (await count(services, tables.mirrors), await count(services, tables.changed_locations)) == (0, 0)
    await google_edits(emulator, "Roy", BAKERY)
    await pushes(emulator)
    await pass_time(services, clock)
    assert await count(services, tables.changed_locations) == 0


async def test_endpoint_does_not_exist_without_a_feed(http: httpx.AsyncClient, services: Services, change: Any) -> None:
    change(push_tokens=None)
    assert_error(await http.post(PATH, json={}), 404, "NOT_FOUND")
