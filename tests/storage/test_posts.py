"""Queries on posts: the cache under changes from both sides, keyset pages, the quota."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Storage
from profilesvc.settings import Settings
from profilesvc.storage import post_usage, posts
from profilesvc.storage.posts import StoredPost

HERE, ELSEWHERE = "locations/111", "locations/112"


def post(ident: str, created_at: int = 1, text: str = "{}", state: str = "LIVE") -> StoredPost:
    return StoredPost(ident, created_at, state, text)


@pytest.fixture
async def storage(settings: Settings) -> AsyncIterator[Storage]:
    opened = Storage(settings.effective_database_url)
    yield opened
    await opened.close()


async def put(storage: Storage, *items: StoredPost, location: str = HERE, now: int = 1) -> None:
    async with storage.write() as session:
        for item in items:
            await posts.put(session, 1, location, item, now)


async def held(storage: Storage, location: str = HERE) -> dict[str, str]:
    async with storage.read() as session:
        return await posts.documents(session, 1, location)


async def refresh(storage: Storage, before: dict[str, str], *found: StoredPost, now: int = 2) -> None:
    async with storage.write() as session:
        assert await posts.mark_read(session, 1, HERE, now)
        await posts.replace(session, 1, HERE, before, {item.post_id: item for item in found}, now)


async def test_the_cache_stores_the_posts_that_the_provider_lists(storage: Storage) -> None:
    await put(storage, post("kept"), post("changed"), post("gone"))
    await put(storage, post("gone"), location=ELSEWHERE)
    await refresh(storage, await held(storage), post("kept"), post("changed", text="[]"), post("new"))
    assert await held(storage) == {"kept": "{}", "changed": "[]", "new": "{}"}
    assert await held(storage, ELSEWHERE) == {"gone": "{}"}


async def test_the_cache_keeps_changes_made_while_the_provider_was_read(storage: Storage) -> None:
    await put(storage, post("changed"), post("deleted"))
    before = await held(storage)
    await put(storage, post("changed", text="[1]"), post("created"))
    async with storage.write() as session:
        await posts.remove(session, 1, HERE, "deleted")
    await refresh(storage, before, post("changed", text="[0]"), post("deleted"))
    assert await held(storage) == {"changed": "[1]", "created": "{}"}
    await refresh(storage, before)
    assert await held(storage) == {"changed": "[1]", "created": "{}"}


async def test_the_cache_has_the_age_of_the_last_reading(storage: Storage) -> None:
    async def ages() -> tuple[int | None, int | None]:
        async with storage.read() as session:
            age = await posts.cache_age(session, 1, HERE)
        return age.posts_read_at, age.processing_read_at

    assert await ages() == (None, None)
    await put(storage, post("late", state="PROCESSING"), now=9)
    await put(storage, post("early", state="PROCESSING"), now=4)
    await put(storage, post("live"), now=1)
    assert await ages() == (None, 4)
    await refresh(storage, await held(storage), now=12)
    assert await ages() == (12, None)


async def test_pages_go_from_new_to_old_and_then_by_id(storage: Storage) -> None:
    await put(storage, post("b", 5), post("a", 5), post("c", 5), post("z", 1), post("new", 9))
    await put(storage, post("other", 5), location=ELSEWHERE)
    seen: list[str] = []
    async with storage.read() as session:
        age, page = await posts.first_page(session, 1, HERE, 2)
        assert age == await posts.cache_age(session, 1, HERE)
        seen.append(page.documents)
        while page.last:
            at, _, ident = page.last.partition(".")
            page = await posts.page(session, 1, HERE, 2, (int(at), ident))
            seen.append(page.documents)
    assert seen == [",".join(post(ident).document for ident in pair) for pair in (("new", "c"), ("b", "a"), ("z",))]


async def test_the_last_page_ends_with_the_last_post_even_if_it_is_full(storage: Storage) -> None:
    await put(storage, post("a", 5), post("b", 6))
    async with storage.read() as session:
        assert (await posts.first_page(session, 1, HERE, 2))[1].last == ""
        assert (await posts.first_page(session, 1, HERE, 1))[1].last == "6.b"
        assert (await posts.page(session, 1, HERE, 1, (6, "b"))) == (post("a", 5).document, "")


async def test_a_page_without_posts_has_the_age_of_the_cache(storage: Storage) -> None:
    await refresh(storage, {}, now=12)
    async with storage.read() as session:
        assert await posts.first_page(session, 1, HERE, 2) == ((12, None), ("", ""))


TIMES = 0, 1


async def hold(session: AsyncSession, owner_id: int, month: int, limit: int) -> bool:
    return await post_usage.hold(session, owner_id, month, limit, TIMES)


async def test_the_quota_is_exact_in_a_race(storage: Storage) -> None:
    async def reserve() -> bool:
        async with storage.write() as session:
            return await hold(session, 1, month=7, limit=5)

    assert sum(await asyncio.gather(*[reserve() for _ in range(50)])) == 5


async def test_the_quota_counts_months_and_users_apart_and_never_below_zero(storage: Storage) -> None:
    async with storage.write() as session:
        assert await hold(session, 1, month=7, limit=1)
        assert not await hold(session, 1, month=7, limit=1)
        assert await hold(session, 1, month=8, limit=1)
        assert await hold(session, 2, month=7, limit=1)
        await post_usage.settle(session, 1, 7, released=1, given_back=1)
        await post_usage.settle(session, 1, 7, released=1, given_back=1)
        found = [await post_usage.find(session, *place) for place in ((1, 7), (1, 8), (2, 7), (3, 7))]
    assert [(usage.used, usage.held_at(0)) for usage in found] == [(0, 0), (1, 1), (1, 1), (0, 0)]


async def test_holds_that_have_ended_are_not_counted_with_later_ones(storage: Storage) -> None:
    async with storage.write() as session:
        for times in ((0, 10), (5, 15), (20, 30)):
            assert await post_usage.hold(session, 1, 7, 9, times)
        usage = await post_usage.find(session, 1, 7)
    assert (usage.used, usage.held_at(29), usage.held_at(30)) == (3, 1, 0)


async def test_a_quota_of_zero_allows_nothing(storage: Storage) -> None:
    async with storage.write() as session:
        assert not await hold(session, 1, month=7, limit=0)
