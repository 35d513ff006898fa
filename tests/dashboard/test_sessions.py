"""The sessions on the page of the account: which there are, and their end in every process."""

import httpx
import pytest
from sqlalchemy import func, select

from conftest import Dial
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import HOUR, FrozenClock
from profilesvc.operations import operator
from profilesvc.services import sessions
from profilesvc.services.context import Caller, Services
from profilesvc.storage import tables, users
from support.api import ALICE, BOB, assert_error, assert_ok
from support.browser.dashboard import Browser, SignIn

PATH = "/dashboard/account"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0"


@pytest.fixture
async def two(dial: Dial) -> tuple[Browser, Browser]:
    """Alice at her desk and with her phone."""
    desk, phone = Browser(dial()), Browser(dial())
    desk.http.headers["User-Agent"], phone.http.headers["User-Agent"] = FIREFOX, PHONE
    await desk.sign_in(ALICE)
    await phone.sign_in(ALICE)
    return desk, phone


def bearer(browser: Browser) -> dict[str, str]:
    return {"Authorization": f"Bearer {browser.token}"}


async def stored(services: Services) -> list[tuple[int, int]]:
    await services.background.settle()
    async with services.storage.read() as session:
        query = select(tables.sessions.c.created_at, tables.sessions.c.used_at).order_by(tables.sessions.c.created_at)
        return [(row.created_at, row.used_at) for row in await session.execute(query)]


async def test_each_session_is_listed_with_its_browser(two: tuple[Browser, Browser], signed_in: SignIn) -> None:
    desk, _ = two
    await signed_in(BOB)
    page = await desk.open(PATH)
    assert "Firefox on Windows this one" in page.text
    assert "Chrome on iPhone" in page.text
    ends = [form for form in page.forms if form["action"].endswith("/end")]
    assert len(ends) == 1


async def test_one_session_is_ended(two: tuple[Browser, Browser], http: httpx.AsyncClient) -> None:
    desk, phone = two
    assert_ok(await http.get("/api/v1/businesses", headers=bearer(phone)))
    await desk.open(PATH)
    page = await desk.send("/end")
    assert "The session is ended." in page.text
    assert "iPhone" not in page.text
    assert_error(await http.get("/api/v1/businesses", headers=bearer(phone)), 401, "AUTH_INVALID_TOKEN")
    await phone.open(PATH)
    assert phone.answer.url.path == "/dashboard/sign-in"
    await desk.open("/dashboard/audit")
    assert "Session ended" in desk.page.text


async def test_all_others_are_ended_and_this_one_continues(
    two: tuple[Browser, Browser], http: httpx.AsyncClient, services: Services
) -> None:
    desk, phone = two
    before = bearer(desk)
    await desk.open(PATH)
    async with services.storage.write() as session:  # as if it was issued before sessions were stored
        await session.execute(tables.sessions.delete().where(tables.sessions.c.system == "iPhone"))
    page = await desk.send("/end-others")
    assert "All other sessions are ended." in page.text
    assert "Firefox on Windows this one" in page.text
    assert "End all other sessions" not in page.text
    for ended in (before, bearer(phone)):
        assert_error(await http.get("/api/v1/businesses", headers=ended), 401, "AUTH_INVALID_TOKEN")
    assert_ok(await http.get("/api/v1/businesses", headers=bearer(desk)))


@pytest.mark.in_process("calls the use case itself")
async def test_a_session_that_has_ended_meanwhile_does_not_continue(
    two: tuple[Browser, Browser], services: Services
) -> None:
    owner = Caller(1, services.plans["pro"], frozenset())
    desk, phone = (bearer(each)["Authorization"].removeprefix("Bearer ") for each in two)
    await sessions.end_others(services, owner, desk)
    for ended in (desk, phone):
        with pytest.raises(ServiceError, match="This session has ended"):
            await sessions.end_others(services, owner, ended)


async def test_a_session_that_continues_ends_at_its_time(two: tuple[Browser, Browser], clock: FrozenClock) -> None:
    desk, _ = two
    clock.advance(days=6)
    await desk.open(PATH)
    await desk.send("/end-others")
    clock.advance(hours=23)
    await desk.open(PATH)
    assert "2026-01-02 03:04 UTC" in desk.page.text
    clock.advance(hours=2)
    await desk.open(PATH)
    assert desk.answer.url.path == "/dashboard/sign-in"


async def test_another_users_session_cannot_be_ended(
    two: tuple[Browser, Browser], signed_in: SignIn, http: httpx.AsyncClient, services: Services
) -> None:
    _, phone = two
    bob = await signed_in(BOB)
    async with services.storage.read() as session:
        ids = (await session.execute(select(tables.sessions.c.id).where(tables.sessions.c.owner_id == 1))).scalars()
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    for session_id in (*ids, "x" * 22, "x"):
        answer = await bob.http.post(f"{PATH}/sessions/{session_id}/end", data={"csrf": csrf})
        assert answer.status_code == 404, session_id
    assert_ok(await http.get("/api/v1/businesses", headers=bearer(phone)))


async def test_the_last_use_is_written_once_an_hour(
    alice_there: Browser, services: Services, clock: FrozenClock
) -> None:
    start = clock.now()
    clock.advance(minutes=59)
    await alice_there.open("/dashboard")
    assert await stored(services) == [(start, start)]
    clock.advance(minutes=1)
    for _ in range(3):
        await alice_there.open("/dashboard")
    assert await stored(services) == [(start, start + HOUR)]


async def test_a_token_without_a_session_gets_one(alice_there: Browser, services: Services, clock: FrozenClock) -> None:
    start = clock.now()
    async with services.storage.write() as session:
        await session.execute(tables.sessions.delete())
    clock.advance(minutes=10)
    page = await alice_there.open(PATH)
    assert "Unknown browser this one" in page.text
    second = start // 1000 * 1000
    assert await stored(services) == [(second, clock.now())]


async def test_the_operators_logout_and_a_sign_out_leave_the_list(
    two: tuple[Browser, Browser], services: Services, signed_in: SignIn
) -> None:
    desk, phone = two
    await phone.open(PATH)
    await phone.send("/sign-out")
    assert "iPhone" not in (await desk.open(PATH)).text
    await operator.logout(services, ALICE)
    page = await (await signed_in(ALICE)).open(PATH)
    assert "Firefox" not in page.text


@pytest.mark.in_process("makes the list of the process shorter")
async def test_a_program_with_many_sessions_does_not_fill_the_page(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 3)
    async with services.storage.read() as session:
        user = await users.user_by_email(session, ALICE)
    assert user is not None
    async with services.storage.write() as session:
        for _ in range(5):
            await sessions.start(services, session, user, "python-httpx/0.28")
    page = await alice_there.open(PATH)
    assert "These are the 3 that were used last, of 6." in page.text
    assert "this one" in page.text
    async with services.storage.read() as session:
        assert (await session.execute(select(func.count()).select_from(tables.sessions))).scalar_one() == 6
