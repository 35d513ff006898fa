"""Hundreds of sites for two weeks of a moved clock: no false alarm, and no clone or thief that goes unnoticed."""

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from benchmarks import generate
from sqlalchemy import event

from conftest import AsUser
from profilesvc.domain.time import DAY, HOUR, SECOND, FrozenClock
from profilesvc.fixtures import load_world
from profilesvc.operations import housekeeping
from profilesvc.operations.demo_data import GENERATED
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import Site, assert_error, assert_ok
from support.effort import FULL, effort
from support.fleet.simulated import GRACE, KEYS, Clone, Owner, Process, SimulatedSite, Simulation, exchange
from support.tokens import LOCATIONS

SITES, HOURS = effort((12, 36), (500, 14 * 24))
CLONES, KEYS_PER_LOCATION = max(2, SITES * 5 // 1000), 19  # one more of each location is the generated one
CLOCK_ERRORS = (-400 * DAY, 13 * HOUR)  # two of twelve, and more than a thousandth of five hundred
LIFETIMES = {"access_ttl_seconds": 6 * HOUR // SECOND, "user_ttl_seconds": 30 * DAY // SECOND}


@pytest.fixture
def database() -> str:
    """These tests check rules over time; other tests check each database."""
    return "sqlite"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Four refreshes a day."""
    return settings.model_copy(update={"tokens": settings.tokens.model_copy(update=LIFETIMES)})


@dataclass
class Fleet:
    """The sites, each with its owner, on one clock."""

    simulation: Simulation
    chance: random.Random
    sites: list[tuple[SimulatedSite, Owner]]


@pytest.fixture
async def simulated(services: Services, http: httpx.AsyncClient, as_user: AsUser, clock: FrozenClock) -> Fleet:
    world = load_world()
    first = max(business["id"] for business in world["businesses"]) + 1
    await generate.load(services, generate.Amounts(-(-SITES // KEYS_PER_LOCATION), 0, 0), seed=1)
    made = Fleet(Simulation(clock), random.Random(20), [])
    for number in range(SITES):
        owner, place = divmod(number // KEYS_PER_LOCATION, generate.KEYS_PER_USER)
        user = await as_user(f"user{first + owner}@{GENERATED}")
        location = assert_ok(await user.get(LOCATIONS))["locations"][place]
        host = f"site{number}.fleet.example"
        body = {"name": "Fleet", "business_id": location["businessId"], "assigned_location_id": location["name"]}
        key = assert_ok(await user.post(KEYS, json=body | ({"primary_domain": host} if number % 2 else {})), 201)
        site = SimulatedSite(http, clock, made.chance, key, host)
        await site.restart()
        made.sites.append((site, Owner(user)))
        made.simulation.start(site.live(), made.chance.randrange(HOUR))
    return made


def _do_not_wait_for_the_disk(services: Services) -> None:
    """Nothing here outlives the test."""

    @event.listens_for(services.storage.engine.sync_engine, "checkout")
    def checkout(connection: Any, _record: Any, _proxy: Any) -> None:
        connection.cursor().execute("PRAGMA synchronous=OFF")


async def kept_up(services: Services) -> Process:
    """The service's hourly work, once a simulated day."""
    while True:
        await housekeeping.run_once(services)
        yield DAY


@pytest.mark.slow
@pytest.mark.fuzz
async def test_a_fleet_has_no_false_alarms_and_every_clone_is_reported(simulated: Fleet, services: Services) -> None:
    simulation, chance = simulated.simulation, simulated.chance
    chosen = [simulated.sites[index] for index in chance.sample(range(1, SITES), CLONES + len(CLOCK_ERRORS))]
    cloned, wrong = chosen[:CLONES], chosen[CLONES:]
    asleep = simulated.sites[0][0]
    asleep.away = simulation.clock.now() + 3 * HOUR, simulation.clock.now() + 31 * HOUR
    for error, (site, _) in zip(CLOCK_ERRORS, wrong, strict=True):
        site.clock_error = error
    # A staging copy names its own address; a copy that was moved names the original's.
    hosts = itertools.cycle(["staging.copies.example", ""])
    clones = [Clone(site, owner, host or site.host) for (site, owner), host in zip(cloned, hosts, strict=False)]
    for clone in clones:
        simulation.start(clone.life(simulation), chance.randrange((HOURS - 24) * HOUR))
    simulation.start(kept_up(services), 0)
    await simulation.run(HOURS * HOUR)

    assert [clone for clone in clones if clone.flagged_after is None] == []
    alarms: list[tuple[Any, ...]] = []
    total = Counter[str]()
    for site, owner in simulated.sites:
        total += site.log
        status = await owner.status(site)
        states = [period["state"] for period in status["history"]][1:]  # the first is from before the first heartbeat
        if states != (["online"] if site is not asleep else ["online", "idle", "offline", "online"]):
            alarms.append((site.host, states))
        if all(site is not clone.original for clone in clones):
            events = await owner.events(site)
            assert events["token.refreshed"] == site.log["refreshed"]
            if (
                site.log["granted"] != 1
                or site.log["another pair"]
                or events["token.refresh_reuse"]
                or "warnings" in status
            ):
                alarms.append((site.host, site.log, events))
    assert alarms == []
    assert wrong[0][0].log["expired"] >= HOURS // 8, "a clock that is behind asks too late"
    assert wrong[1][0].log["refreshed"] > HOURS * 0.7, "a clock that is ahead asks each time"
    assert total["lost beat"] > SITES * HOURS * 0.03
    assert total["repeated"] > SITES * HOURS / 6 * 0.003
    print(f"{SITES} sites, {HOURS} hours: {dict(total)}, clones found after", [c.flagged_after for c in clones])


Step = tuple[str, int]  # who exchanges the newest refresh token that they have, and after which pause


def scripts() -> list[tuple[Step, ...]]:
    """Every course that a theft can take in a few exchanges, each soon after the one before or much later."""
    steps = list(itertools.product(("owner", "thief"), (10 * SECOND, GRACE + 1, HOUR)))
    every = list(itertools.product(steps, repeat=effort(3, 5)))
    return every if FULL else random.Random(20).sample(every, 60)


@pytest.mark.slow
@pytest.mark.fuzz
async def test_a_stolen_refresh_token_is_detected_at_the_next_exchange(
    plugin: Site, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """If one uses a token that the other has exchanged, after the grace period, the tokens of both end."""
    noticed = 0
    for script in scripts():
        site = SimulatedSite(http, clock, random.Random(0), plugin.key, "site.fleet.example")
        await site.restart()
        noticed += await _play(site, script)
    assert noticed > len(scripts()) / 3


async def _play(site: SimulatedSite, script: tuple[Step, ...]) -> bool:
    """Whether the theft came out; AssertionError where it should have and did not, or the other way round."""
    holds = dict.fromkeys(("owner", "thief"), site.tokens)
    exchanged: dict[str, tuple[int, dict[str, Any]]] = {}  # refresh token -> when first, and for which pair
    for who, pause in script:
        site.clock.advance(milliseconds=pause)
        presented, now = holds[who]["refresh_token"], site.clock.now()
        answer = await exchange(site.http, presented)
        at, pair = exchanged.get(presented, (now, None))
        if pair is not None and (now - at > GRACE or pair["refresh_token"] in exchanged):
            await _assert_nobody_has_anything(site, answer, list(holds.values()))
            return True
        holds[who] = assert_ok(answer)
        assert pair is None or pair["access_token"] == holds[who]["access_token"]
        exchanged.setdefault(presented, (now, holds[who]))
    return False


async def _assert_nobody_has_anything(site: SimulatedSite, answer: httpx.Response, held: list[dict[str, Any]]) -> None:
    assert_error(answer, 401, "AUTH_INVALID_TOKEN")
    for tokens in held:
        assert_error(await exchange(site.http, tokens["refresh_token"]), 401, "AUTH_INVALID_TOKEN")
        details = assert_error(await site.heartbeat(tokens["access_token"]), 401, "AUTH_INVALID_TOKEN")
        assert details == {"reason": "revoked"}
