"""Files to download: one for each user at a time, made off the event loop, and an error without a stack trace."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE
from dashboard.readers import Reader, reading
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.services import audit
from profilesvc.services.accounts import export as account_export
from profilesvc.services.accounts import exporting
from profilesvc.services.accounts.exporting import Exports
from profilesvc.services.context import Services
from support.api import ALICE, BOB, CAROL
from support.browser.dashboard import Browser, SignIn
from support.waiting import until_async

FILES = ("account/data.zip", "audit.csv", "sites.csv", "keys.csv")
pytestmark = pytest.mark.in_process("looks at the threads of the process")


@pytest.mark.parametrize("name", FILES)
async def test_a_second_file_of_a_user_is_refused_until_the_first_has_ended(
    alice_there: Browser, signed_in: SignIn, services: Services, name: str
) -> None:
    answers = await asyncio.gather(*(alice_there.http.get(f"/dashboard/{name}") for _ in range(6)))
    assert sorted({answer.status_code for answer in answers}) == [200, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "Another file of your account is being made." in refused.text
    assert int(refused.headers["retry-after"]) >= 1
    assert set(services.part(Exports).users) == set()
    assert (await alice_there.http.get(f"/dashboard/{name}")).status_code == 200


@ON_ONE_DATABASE
async def test_users_share_a_few_threads(
    signed_in: SignIn, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "MOST", 2)
    browsers = [await signed_in(email) for email in (ALICE, BOB, CAROL)]
    answers = await asyncio.gather(*(browser.http.get("/dashboard/account/data.zip") for browser in browsers))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503]
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert "Too many files are being made." in refused.text
    assert refused.headers["retry-after"] == "30"


@ON_ONE_DATABASE
async def test_a_file_that_fails_ends_without_a_stack_trace(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_given: Any) -> Any:
        raise ServiceError(SERVICE_UNAVAILABLE)

    monkeypatch.setattr(audit, "search", fail)
    answer = await alice_there.http.get("/dashboard/audit.csv")  # before it has started: an error page
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")

    async def begins(*_given: Any, **_named: Any) -> AsyncIterator[bytes]:
        yield b"PK"
        raise ServiceError(SERVICE_UNAVAILABLE)

    monkeypatch.setattr(account_export, "archive", begins)
    caplog.clear()
    with pytest.raises(AssertionError):  # of the client: the response has no end
        await alice_there.http.get("/dashboard/account/data.zip")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "a response ended early: SERVICE_UNAVAILABLE"
    ]
    assert not any(record.exc_info for record in caplog.records)
    assert set(services.part(Exports).users) == set()


@ON_ONE_DATABASE
async def test_a_file_is_not_made_any_further_for_a_client_that_has_left(
    app: Quart, alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ended = list[int](), list[bool]()

    async def endless(*_given: Any, **_named: Any) -> AsyncIterator[bytes]:
        try:
            while True:
                made.append(len(made))
                yield b"x" * 1000
        finally:
            ended.append(True)

    monkeypatch.setattr(account_export, "archive", endless)
    cookie = "; ".join(f"{cookie.name}={cookie.value}" for cookie in alice_there.http.cookies.jar)
    reader = Reader(app, "/dashboard/account/data.zip", "192.0.2.1", cookie=cookie)
    async with reading(reader):
        before = len(made)
        assert before < 10  # the thread waits for the reader
        assert set(services.part(Exports).users) == {1}
        reader.has_left = True
    await until_async(lambda: ended == [True], "the end of the file")
    assert len(made) < before + 10
    assert set(services.part(Exports).users) == set()


@ON_ONE_DATABASE
async def test_slow_readers_do_not_keep_the_threads_from_others(
    app: Quart, signed_in: SignIn, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that reads just fast enough for the server would have its thread for hours."""
    ended, whole = list[bool](), account_export.archive

    async def endless(*_given: Any, **_named: Any) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1000
        finally:
            ended.append(True)

    monkeypatch.setattr(exporting, "MOST", 1)
    alice, bob = await signed_in(ALICE), await signed_in(BOB)
    monkeypatch.setattr(account_export, "archive", endless)
    cookie = "; ".join(f"{cookie.name}={cookie.value}" for cookie in alice.http.cookies.jar)
    reader = Reader(app, "/dashboard/account/data.zip", "192.0.2.1", cookie=cookie)
    async with reading(reader):
        monkeypatch.setattr(account_export, "archive", whole)
        assert (await bob.http.get("/dashboard/account/data.zip")).status_code == 503
        monkeypatch.setattr(exporting, "PATIENCE_SECONDS", 0.0)
        assert (await bob.http.get("/dashboard/account/data.zip")).status_code == 200
        await until_async(lambda: ended == [True], "the end of the file")
        reader.goes_on.set()
        await until_async(reader.task.done, "the reader")
    assert sum(reader.sizes) < 100_000  # what the thread had made for it before
    assert set(services.part(Exports).users) == set()
