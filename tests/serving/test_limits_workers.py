"""Rate limits over several processes: PostgreSQL, a Redis, four workers."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from redis import Redis

from support.database.redis_server import RedisServer
from support.program import Server, caller, command, serving

if TYPE_CHECKING:
    from conftest import Postgres

pytestmark = [pytest.mark.thorough, pytest.mark.postgres]
BUSINESSES = "/api/v1/businesses"
LIMIT, BURST, WINDOW = 150, 50, 80
REQUESTS = 500
CONNECTIONS = 40


@pytest.fixture
def database_url(postgres: "Postgres") -> Iterator[str]:
    """An empty database."""
    postgres.create("limited")
    yield postgres.url("limited")
    postgres.drop("limited")


@pytest.fixture
def service(tmp_path: Path, database_url: str, redis_server: RedisServer) -> Iterator[Server]:
    """Four workers with the demo data."""
    assert command(tmp_path, "db", "upgrade", DATABASE_URL=database_url).returncode == 0
    settings = {
        "DATABASE_URL": database_url,
        "LIMITS__STORAGE_URL": redis_server.url,
        "LIMITS__READS_PER_USER": f"{LIMIT}/minute burst {BURST}",
    }
    with serving(tmp_path, "serve", "--demo", "--workers", "4", "--port", "0", **settings) as server:
        yield server


async def parallel(url: str, token: str, count: int) -> list[httpx.Response]:
    """Send that many requests, as many at once as there are connections: enough for every worker to have some.

    They queue here, because httpx searches its whole queue for each request that ends.
    """
    place = asyncio.Semaphore(CONNECTIONS)
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60, limits=limits) as http:

        async def one() -> httpx.Response:
            async with place:
                return await http.get(BUSINESSES)

        return await asyncio.gather(*(one() for _ in range(count)))


def seconds_left(redis: Redis) -> float:
    """Until the bucket has room again, by what the server holds."""
    (key,) = redis.keys("profilesvc:*reads-per-user:*")
    seconds, micros = redis.time()
    return float(redis.lindex(key, LIMIT + BURST - 1) or 0) + WINDOW - seconds - micros / 1e6


def test_A150_four_workers_grant_the_limit_and_the_burst_together(
    service: Server, tmp_path: Path, database_url: str, redis_server: RedisServer
) -> None:
    token = command(tmp_path, "users", "token", "alice@example.com", DATABASE_URL=database_url).stdout.strip()
    answers = asyncio.run(parallel(service.url, token, REQUESTS))
    codes = Counter(answer.status_code for answer in answers)
    assert set(codes) == {200, 429}
    assert 0.98 * LIMIT <= codes[200] <= LIMIT + BURST
    assert codes[200] == LIMIT + BURST, "nothing has left the window yet: exactly"
    left = [re.match(r'"reads-per-user";r=(\d+);', answer.headers["RateLimit"]) for answer in answers]
    assert {int(match[1]) for match in left if match} <= set(range(LIMIT + BURST))
    assert (
        sum(match is not None and match[1] == "0" for match in left) > REQUESTS - LIMIT - BURST
    )  # every refusal, and the last one granted
    with Redis.from_url(redis_server.url) as redis, caller(service, token) as alice:
        before = seconds_left(redis)
        refused = alice.get(BUSINESSES)
        assert refused.status_code == 429
        assert seconds_left(redis) - 1 <= int(refused.headers["Retry-After"]) <= before + 1
        assert refused.headers["RateLimit"] == f'"reads-per-user";r=0;t={refused.headers["Retry-After"]}'
    assert service.stop() == 0
