"""A link between the service and PostgreSQL that goes wrong in eight ways: in time, whole, well again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from conftest import Postgres
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import Site, assert_error
from support.effort import effort
from support.provider.toxic import Toxic, ToxicLink
from support.tokens import PATH, grant, refresh
from support.waiting import deadline, until_async

pytestmark = [pytest.mark.thorough, pytest.mark.postgres]
IN_SECONDS, WELL_AGAIN_SECONDS = 6, 10
KEYS, PIER, SWITCH = "/api/v1/developer/credentials", "/api/v1/posts?locationId=111", "/api/v1/external-business"
NEW_KEY = {"name": "Link", "business_id": 10, "assigned_location_id": "locations/112"}
ONCE = {"Idempotency-Key": "link"}


@dataclass
class Parties:
    """The callers: the owner, a plugin, and an anonymous client."""

    alice: httpx.AsyncClient
    plugin: Site
    http: httpx.AsyncClient
    services: Services

    @property
    def key(self) -> str:
        """The path of the plugin's key."""
        return f"{KEYS}/{self.plugin.key['client_id']}"


Operation = Callable[[Parties], Awaitable[httpx.Response]]
OPERATIONS: dict[str, Operation] = {
    "heartbeat": lambda by: by.plugin.http.post("/api/v1/api-keys/heartbeat", json={"wp_version": "2"}),
    "posts": lambda by: by.plugin.http.get(PIER),
    "new key": lambda by: by.alice.post(KEYS, json=NEW_KEY),
    "refresh": lambda by: by.http.post(PATH, json=refresh(by.plugin)),
    "new post": lambda by: by.plugin.http.post(PIER, json={"summary": "Link"}, headers=ONCE),
}
MORE: dict[str, Operation] = {
    "status": lambda by: by.alice.get(f"{by.key.replace('developer/credentials', 'api-keys')}/status?history=true"),
    "grant": lambda by: by.http.post(PATH, json=grant(by.plugin)),
    "validate": lambda by: by.http.post("/api/v1/auth/validate-service-credentials", json=by.plugin.credentials),
    "keys": lambda by: by.alice.get(KEYS),
    "events": lambda by: by.alice.get(f"{by.key}/audit"),
    "businesses": lambda by: by.alice.get("/api/v1/businesses"),
    "locations": lambda by: by.alice.get(f"{SWITCH}/locations"),
    "location": lambda by: by.plugin.http.get(f"{SWITCH}/locations/111"),
    "switch": lambda by: by.alice.patch(f"{SWITCH}/locations/112/sync", json={"syncEnabled": False}),
    "verify": lambda by: by.alice.post(f"{SWITCH}/locations/112/refresh-verification"),
    "sync": lambda by: by.plugin.http.post("/api/v1/sync/111", json={"title": "Link"}, headers=ONCE),
    "comparison": lambda by: by.plugin.http.get("/api/v1/sync/comparison/111"),
    "history": lambda by: by.plugin.http.get("/api/v1/sync/history/111"),
}
TRIED = effort(OPERATIONS, OPERATIONS | MORE)
HARMLESS: tuple[Toxic, ...] = ("slicer", "slow_close")
SLOW: tuple[Toxic, ...] = ("bandwidth",)  # some get through in time
HARMFUL: tuple[Toxic, ...] = ("down", "reset_peer", "limit_data", "timeout", "latency")


@pytest.fixture
def patient_database() -> None:
    """None: these tests measure how long the service waits for the database."""


@pytest.fixture
def database() -> str:
    return "postgres"


@pytest.fixture
async def link(postgres: Postgres) -> AsyncIterator[ToxicLink]:
    async with ToxicLink(Path(postgres.host) / ".s.PGSQL.5432") as link:
        yield link


@pytest.fixture
async def settings(settings: Settings, link: ToxicLink) -> Settings:
    # Without TLS, where the driver forgets the failure of a connection that is given up while it is made.
    url = f"postgresql+asyncpg://postgres@127.0.0.1:{link.port}/work?ssl=disable"
    return settings.model_copy(update={"database_url": url})


@pytest.fixture
async def parties(alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient, services: Services) -> Parties:
    """With connections that are open and in use."""
    made = Parties(alice, plugin, http, services)
    await asyncio.gather(*(TRIED[name](made) for name in ("heartbeat", "posts") * 5))
    return made


async def together(parties: Parties, names: list[str], seconds: float = 60) -> dict[str, httpx.Response]:
    """The responses to the operations at once."""

    async def timed(name: str) -> httpx.Response:
        async with deadline(seconds, name):
            return await TRIED[name](parties)

    return dict(zip(names, await asyncio.gather(*map(timed, names)), strict=True))


async def assert_well_again(parties: Parties, clock: FrozenClock) -> None:
    """Without a restart, whatever was going on when the link was healed.

    An attempt that could not even be given back stays open for a minute, by the service's clock.
    """
    left = dict.fromkeys(TRIED, "")

    async def is_well() -> bool:
        outcomes = await together(parties, list(left))
        failed = {name: answer for name, answer in outcomes.items() if not answer.is_success}
        left.clear()
        left.update({name: answer.text for name, answer in failed.items()})
        if any(answer.status_code == 409 for answer in failed.values()):
            clock.advance(minutes=1)
        return not left

    await until_async(is_well, lambda: f"success: {left}", WELL_AGAIN_SECONDS, every=0)


async def assert_whole(services: Services, emulator: httpx.AsyncClient) -> None:
    """Every key with its secret and its event, one post whatever was tried, and no quota lost."""
    half = text(
        "SELECT count(*) FROM keys WHERE NOT EXISTS (SELECT FROM secrets WHERE key_id = keys.id)"
        " OR 1 <> (SELECT count(*) FROM audit WHERE key_id = keys.id AND event = 'key.created')"
    )
    async with services.storage.read() as session:
        assert (await session.execute(half)).scalar_one() == 0
        used = (await session.execute(text("SELECT coalesce(sum(used), 0) FROM post_usage"))).scalar_one()
    posts: dict[str, Any] = (await emulator.get("/__emulator/state")).json()["posts"]
    assert sum(post["summary"] == "Link" for post in posts.values()) == used == 1


# Which toxic, after how many answers of the database: in the middle of what is under way when there are some.
SHORT = [("down", 0), ("reset_peer", 0), ("reset_peer", 12), ("limit_data", 7), ("timeout", 9), ("slicer", 0)]
FULL_COURSE = [(toxic, after) for toxic in (*HARMFUL, *SLOW, *HARMLESS) for after in (0, 1, 3, 7, 12, 20, 40, 80)]


@pytest.mark.fuzz
@pytest.mark.parametrize(("toxic", "after"), effort(SHORT, FULL_COURSE))
async def test_A104_a_link_to_the_database_that_goes_wrong(
    toxic: Toxic, after: int, parties: Parties, link: ToxicLink, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await link.go_wrong(toxic, cut=False, after=after)
    outcomes = await together(parties, list(TRIED), IN_SECONDS)
    for name, answer in outcomes.items():
        if not answer.is_success:
            assert toxic not in HARMLESS, (name, answer.text)
            assert_error(answer, 503, "SERVICE_UNAVAILABLE")
            assert int(answer.headers["retry-after"]) >= 1
    assert toxic not in HARMFUL or after or not any(answer.is_success for answer in outcomes.values())
    await link.go_wrong("", cut=False)
    await assert_well_again(parties, clock)
    await assert_whole(parties.services, emulator)
