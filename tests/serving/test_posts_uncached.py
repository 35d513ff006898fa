"""A list of posts whose cache cannot be written: the response has what was just read at the provider."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from conftest import ON_POSTGRES, Postgres
from profilesvc.domain.time import FrozenClock
from support.api import Site, assert_error, assert_ok
from support.waiting import deadline

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.in_process("moves the clock and changes the database's server"),
    ON_POSTGRES,
]
POSTS = "/api/v1/posts?locationId=111"
# A server that only reads, and one whose synchronous standby does not confirm any commit.
UNWRITABLE = {
    "read-only": ("default_transaction_read_only", "on"),
    "frozen standby": ("synchronous_standby_names", "x"),
}


@pytest.fixture
def patient_database() -> None:
    """None: these tests measure how long the service waits for the database."""


@pytest.fixture(params=UNWRITABLE)
async def unwritable(request: pytest.FixtureRequest, postgres: Postgres, plugin: Site) -> AsyncIterator[str]:
    """The site is logged in before."""
    name, value = UNWRITABLE[request.param]
    on, off = f"ALTER SYSTEM SET {name} = '{value}'", f"ALTER SYSTEM RESET {name}"
    assert (await plugin.http.get(POSTS)).status_code == 200
    await _apply(postgres, on)
    yield request.param
    await _apply(postgres, off)


async def _apply(postgres: Postgres, statement: str) -> None:
    for each in (statement, "SELECT pg_reload_conf()"):
        await asyncio.to_thread(postgres.run, each)
    await asyncio.sleep(0.3)  # until the server's processes have heard of it


async def test_it_has_what_the_provider_returned(plugin: Site, clock: FrozenClock, unwritable: str) -> None:
    whole = assert_ok(await plugin.http.get(POSTS))["localPosts"]
    clock.advance(minutes=10)
    async with deadline(6.5, "the posts"):
        response = await plugin.http.get(f"{POSTS}&pageSize=2")
    page = assert_ok(response)
    assert page["localPosts"] == whole[:2]
    assert "x-data-age" not in response.headers, "it is fresh"
    following = assert_ok(await plugin.http.get(f"{POSTS}&pageSize=2&pageToken={page['nextPageToken']}"))
    assert following["localPosts"] == whole[2:4]
    several = await asyncio.gather(*(plugin.http.get(POSTS) for _ in range(5)))
    assert [assert_ok(each)["localPosts"] for each in several] == [whole] * 5
    assert_error(await plugin.http.post(POSTS, json={"summary": "Not now"}), 503, "SERVICE_UNAVAILABLE")


async def test_a_post_that_is_not_cached_cannot_be_changed(plugin: Site, unwritable: str) -> None:
    """Reading it from the provider is not enough: the change could not be stored."""
    response = await plugin.http.patch(POSTS.replace("?", "/unknown?"), json={"summary": "Changed"})
    assert_error(response, 503, "SERVICE_UNAVAILABLE")
