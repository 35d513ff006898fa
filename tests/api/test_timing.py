"""A refusal takes as long whether what was asked for exists or not.

Only `make fuzz` measures time; here the work is compared, call by call.
"""

import collections
import inspect
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any

import httpx
import pytest

from conftest import AsService, AsUser
from support.api import BOB, Site, assert_error

TOKEN = "/api/v1/auth/token"
VALIDATE = "/api/v1/auth/validate-service-credentials"
KEYS = "/api/v1/developer/credentials"
LOCATIONS = "/api/v1/external-business/locations"
SAMPLES = 10_000
# A failure is noted for the owner of a key, who is the one to know; it is written after the answer.
NOTING = {"services/audit.py", "domain/request.py", "domain/entropy.py", "domain/time.py"}
OPENING = {"_opened", "connect"}  # a connection more, while such a note is written on the one that there was
MEASURED: ContextVar[Any] = ContextVar("measured", default=None)
Pair = tuple[Callable[[], Awaitable[httpx.Response]], Callable[[], Awaitable[httpx.Response]]]


@pytest.fixture
async def pairs(http: httpx.AsyncClient, plugin: Site, as_user: AsUser, as_service: AsService) -> dict[str, Pair]:
    """Requests that must look alike: for an existing and for a missing resource."""
    bob, site = await as_user(BOB), await as_service("locations/211")
    known, unknown = plugin.key["client_id"], plugin.key["client_id"][:-1] + "x"
    wrong = {"client_secret": "x" * 64}

    def grant(client_id: str) -> Callable[[], Awaitable[httpx.Response]]:
        body = {"grant_type": "client_credentials", "client_id": client_id, **wrong}
        return lambda: http.post(TOKEN, json=body)

    def validate(client_id: str) -> Callable[[], Awaitable[httpx.Response]]:
        return lambda: http.post(VALIDATE, json={"client_id": client_id, **wrong})

    def read(client: httpx.AsyncClient, path: str) -> Callable[[], Awaitable[httpx.Response]]:
        return lambda: client.get(path)

    def change(method: str, client_id: str, action: str = "") -> Callable[[], Awaitable[httpx.Response]]:
        return lambda: bob.request(method, f"{KEYS}/{client_id}{action}", json={})

    def create(location: str) -> Callable[[], Awaitable[httpx.Response]]:
        body = {"name": "Site", "business_id": 20, "assigned_location_id": location}
        return lambda: bob.post(KEYS, json=body)

    changes = [
        ("GET", "/audit"),
        ("GET", "/requests"),
        ("DELETE", ""),
        *(("POST", f"/{name}") for name in ("roll", "deactivate")),
    ]
    return {
        **{
            f"{method} {path} of another's key": (change(method, known, path), change(method, unknown, path))
            for method, path in changes
        },
        "a key for the location of another, for an unknown one": (create("111"), create("999")),
        "token: wrong secret, unknown id": (grant(known), grant(unknown)),
        "validate: wrong secret, unknown id": (validate(known), validate(unknown)),
        "location of another, unknown one": (read(bob, f"{LOCATIONS}/111"), read(bob, f"{LOCATIONS}/999")),
        "the same by a key": (read(site.http, f"{LOCATIONS}/111"), read(site.http, f"{LOCATIONS}/999")),
        "key of another, unknown one": (
            read(bob, f"/api/v1/api-keys/{known}/status"),
            read(bob, f"/api/v1/api-keys/{unknown}/status"),
        ),
    }


async def work(request: Callable[[], Awaitable[httpx.Response]]) -> collections.Counter[str]:
    """Which functions of the service a request calls, and how often each; a coroutine that waits counts once."""
    calls: collections.Counter[str] = collections.Counter()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        file = code.co_filename.rpartition("/profilesvc/")[2]
        if event != "call" or MEASURED.get() is not calls:  # what an earlier request left to be done
            return
        if code.co_name in OPENING:
            return
        if file != code.co_filename and file not in NOTING and "<" not in code.co_name:
            name = f"{file}:{code.co_name}"
            calls[name] = 1 if code.co_flags & inspect.CO_COROUTINE else calls[name] + 1

    MEASURED.set(calls)
    sys.setprofile(note)
    try:
        await request()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.in_process("counts the calls of functions")
async def test_A004_A005_a_missing_resource_costs_the_same_work(pairs: dict[str, Pair]) -> None:
    for name, (there, missing) in pairs.items():
        for request in (there, missing):
            await request()
        answers = [await request() for request in (there, missing)]
        assert answers[0].content == answers[1].content, name
        first, second = await work(there), await work(missing)
        assert first == second, (name, first - second, second - first)
        assert sum(first.values()) > 20
    assert_error(answers[0], 404, "NOT_FOUND")


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite"])
async def test_a_missing_resource_takes_the_same_time(pairs: dict[str, Pair]) -> None:
    for name, pair in pairs.items():
        good = [alike(*await measured(pair)) for _ in range(3)]
        assert sum(good) >= 2, (name, good)


async def measured(pair: Pair) -> tuple[list[int], list[int]]:
    """Nanoseconds of each of the two requests, in an order that is mixed."""
    taken: tuple[list[int], list[int]] = ([], [])
    order = [0, 1] * SAMPLES
    random.shuffle(order)
    for which in order:
        begun = time.perf_counter_ns()
        await pair[which]()
        taken[which].append(time.perf_counter_ns() - begun)
    return taken


def alike(first: list[int], second: list[int]) -> bool:
    """Medians within 5 % or 50 µs, and no difference of rank (Mann-Whitney, p > 0.01)."""
    one, other = statistics.median(first), statistics.median(second)
    near = abs(one - other) <= max(0.05 * one, 50_000)
    return near and mann_whitney(first, second) > 0.01


def mann_whitney(first: list[int], second: list[int]) -> float:
    """The two-sided p of the U test, by its normal approximation; ties get their mean rank."""
    places: dict[int, list[int]] = collections.defaultdict(list)
    for rank, value in enumerate(sorted(first + second), 1):
        places[value].append(rank)
    mean_rank = {value: statistics.fmean((ranks[0], ranks[-1])) for value, ranks in places.items()}
    n, m = len(first), len(second)
    u = sum(mean_rank[value] for value in first) - n * (n + 1) / 2
    deviation = (n * m * (n + m + 1) / 12) ** 0.5
    return 2 * statistics.NormalDist().cdf(-abs(u - n * m / 2) / deviation)


def test_the_rank_test_detects_shifted_samples() -> None:
    chance = random.Random(10)
    one, same = ([round(chance.gauss(1_000_000, 50_000)) for _ in range(2_000)] for _ in range(2))
    assert alike(one, same)
    assert not alike(one, [value + 100_000 for value in one])
    assert mann_whitney(one, [value + 10_000 for value in same]) < 0.01
