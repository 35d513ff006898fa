"""The adapter on bad days, against answers that are scripted call by call."""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import pytest

from profilesvc.domain.time import Clock, FrozenClock, SystemClock
from profilesvc.provider.breaker import FAILURES
from profilesvc.provider.port import ProviderError
from profilesvc.provider.remote import RemoteProvider
from support.provider.rig import _adapter
from support.work import counted

PIER, ALICE = "locations/111", "accounts/1"
POST = {"topicType": "STANDARD", "summary": "once"}
GOOD = httpx.Response(200, json={"name": "x"})
Script = list[httpx.Response | Exception]


class Scripted:
    """Responds to one call after the other as scripted, forever with the last response; tokens are always issued."""

    def __init__(self, clock: Clock, *script: httpx.Response | Exception, **settings: Any) -> None:
        self.script, self.tokens, self.revoked = list(script), 0, ""
        self.calls: list[httpx.Request] = []
        self.gate = asyncio.Event()
        self.gate.set()
        transport = httpx.MockTransport(self._answer)
        client = httpx.AsyncClient(transport=transport, base_url="http://provider")
        self.provider: RemoteProvider = _adapter(client, clock, **settings)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            self.tokens += 1
            await asyncio.sleep(0)
            return httpx.Response(200, json={"access_token": f"t{self.tokens}", "expires_in": 3599})
        self.calls.append(request)
        await self.gate.wait()
        if request.headers["Authorization"] == f"Bearer {self.revoked}":
            return status(401)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


async def refused(call: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


def status(code: int, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(code, headers=names, json={"error": {"code": code, "message": "words"}})


async def test_endless_paging_is_an_error(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.Response(200, json={"accounts": [], "nextPageToken": "again"}))
    assert "paging" in str(await refused(scripted.provider.accounts()))
    assert len(scripted.calls) == 2


@pytest.mark.parametrize("item", [{}, {"name": None}, {"name": 7}, {"name": "x/1"}, {"name": "accounts/1/locations/2"}])
async def test_an_item_without_a_resource_name_is_an_error(clock: FrozenClock, item: dict[str, Any]) -> None:
    scripted = Scripted(clock, httpx.Response(200, json={"accounts": [item], "locations": [item]}))
    assert "invalid name" in str(await refused(scripted.provider.accounts()))
    assert "invalid name" in str(await refused(scripted.provider.locations(ALICE)))


async def test_a_name_that_no_column_can_store_is_an_error(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.Response(200, json={"locations": [{"name": f"locations/{'9' * 80}"}]}))
    assert "invalid name" in str(await refused(scripted.provider.locations(ALICE)))


@pytest.mark.parametrize(
    ("failure", "attempts"),
    [
        (httpx.ConnectError("down"), 2),
        (httpx.ConnectTimeout("down"), 2),
        (status(429), 2),
        (httpx.ReadError("reset"), 1),
        (httpx.RemoteProtocolError("cut"), 1),
        (status(500), 1),
        (status(503), 1),
        (httpx.Response(200, content=b"{"), 1),
    ],
    ids=str,
)
async def test_a_post_is_repeated_only_where_the_provider_did_nothing(
    clock: FrozenClock, failure: httpx.Response | Exception, attempts: int
) -> None:
    scripted = Scripted(clock, failure, GOOD)
    call = scripted.provider.create_post(ALICE, PIER, POST)
    if attempts == 2:
        await call
    else:
        assert (await refused(call)).retryable
    assert len(scripted.calls) == attempts


@pytest.mark.parametrize("code", [400, 403, 404, 409, 412, 501])
async def test_rejections_are_not_repeated(clock: FrozenClock, code: int) -> None:
    scripted = Scripted(clock, status(code), GOOD)
    assert not (await refused(scripted.provider.location(PIER))).retryable
    assert len(scripted.calls) == 1


async def test_deletion_whose_response_was_lost_has_succeeded(clock: FrozenClock) -> None:
    gone = httpx.Response(404, json={"error": {"code": 404, "status": "NOT_FOUND"}})
    await Scripted(clock, httpx.ReadError("reset"), gone).provider.delete_post(ALICE, PIER, "1")
    assert (await refused(Scripted(clock, gone).provider.delete_post(ALICE, PIER, "1"))).not_found


class Sleeping(SystemClock):
    """A clock that notes how long the client sleeps, and does not."""

    seconds = 0.0

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


async def test_short_retry_after_is_waited_for() -> None:
    clock = Sleeping()
    await Scripted(clock, status(503, Retry_After="1"), GOOD).provider.location(PIER)
    assert clock.seconds >= 1


def _date(clock: FrozenClock) -> str:
    return formatdate(clock.now() / 1000 + 30, usegmt=True)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (lambda _: "30", 30),
        (_date, pytest.approx(30, abs=1)),
        (lambda _: "soon", None),
        (lambda _: "-1", None),
        (lambda _: "9" * 40, 86_400),
        (lambda _: "Thu, 01 Jan 2026 00:00:00 GMT", 0),
    ],
)
async def test_long_retry_after_is_returned_and_not_waited_for(
    clock: FrozenClock, said: Callable[[FrozenClock], str], seconds: float | None
) -> None:
    scripted = Scripted(clock, status(429, Retry_After=said(clock)))
    error = await refused(scripted.provider.location(PIER))
    assert (error.reason, error.retry_after) == ("rate_limited", seconds)
    assert len(scripted.calls) == (3 if seconds in (None, 0) else 1)


async def test_throttled_field_is_for_hours_later(clock: FrozenClock) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "THROTTLED"}
    answer = httpx.Response(400, json={"error": {"code": 400, "details": [info]}})
    scripted = Scripted(clock, answer)
    error = await refused(scripted.provider.patch_location(PIER, {"title": "x"}, ["title"]))
    assert (error.reason, error.retryable, error.retry_after) == ("rejected", True, 3600)
    assert len(scripted.calls) == 1


async def test_redirects_are_not_followed(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.Response(302, headers={"Location": "http://elsewhere/v1"}))
    assert not (await refused(scripted.provider.location(PIER))).retryable
    assert len(scripted.calls) == 1


async def test_one_refresh_serves_many_whose_token_was_rejected(clock: FrozenClock) -> None:
    scripted = Scripted(clock, GOOD)
    await scripted.provider.location(PIER)
    scripted.revoked = "t1"
    await asyncio.gather(*(scripted.provider.location(PIER) for _ in range(20)))
    assert scripted.tokens == 2


async def test_edits_beyond_the_limit_are_not_sent(clock: FrozenClock) -> None:
    scripted = Scripted(clock, GOOD, edits_per_minute=10)
    provider = scripted.provider
    for _ in range(4):
        await provider.patch_location(PIER, {"title": "x"}, ["title"])
        clock.advance(seconds=5)
    await provider.create_post(ALICE, PIER, POST)
    await provider.patch_post(ALICE, PIER, "1", POST, ["summary"])
    await provider.delete_post(ALICE, PIER, "1")
    for _ in range(3):
        await provider.create_post(ALICE, PIER, POST)
    error = await refused(provider.create_post(ALICE, PIER, POST))
    assert (error.reason, error.retryable, error.reached, error.retry_after) == ("rate_limited", True, False, 40)
    assert len(scripted.calls) == 10
    await provider.location(PIER)
    await provider.patch_location("locations/112", {"title": "x"}, ["title"])
    clock.advance(seconds=40)
    await provider.create_post(ALICE, PIER, POST)


async def _kill(scripted: Scripted) -> None:
    for _ in range(FAILURES):
        assert (await refused(scripted.provider.location(PIER))).http_status is None


@pytest.mark.parametrize("failure", [httpx.ConnectError("down"), httpx.ReadTimeout("slow")], ids=str)
async def test_dead_provider_costs_little_until_a_probe_finds_it_alive(clock: FrozenClock, failure: Exception) -> None:
    scripted = Scripted(clock, failure)
    await _kill(scripted)
    scripted.calls.clear()
    with counted() as work:
        error = await refused(scripted.provider.location(PIER))
    assert (error.reason, error.retryable, error.reached, error.retry_after) == ("unavailable", True, False, 10)
    assert work.calls < 500
    assert scripted.calls == []
    clock.advance(seconds=10)
    assert (await refused(scripted.provider.location(PIER))).http_status is None  # the probe finds it dead
    asked = len(scripted.calls)
    assert asked
    assert not (await refused(scripted.provider.location(PIER))).reached
    clock.advance(seconds=10)
    scripted.script = [GOOD]
    await scripted.provider.location(PIER)
    await scripted.provider.location(PIER)
    assert len(scripted.calls) == asked + 2


async def test_one_probe_at_a_time_and_a_cancelled_one_is_no_verdict(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.ConnectError("down"))
    await _kill(scripted)
    clock.advance(seconds=10)
    scripted.script = [GOOD]
    scripted.gate.clear()
    probe = asyncio.create_task(scripted.provider.location(PIER))
    await asyncio.sleep(0.01)
    assert not (await refused(scripted.provider.location(PIER))).reached
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    scripted.gate.set()
    await scripted.provider.location(PIER)


async def test_breakers_are_independent_and_rejections_count_as_responses(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.ConnectError("down"))
    await _kill(scripted)
    scripted.script = [status(503)]
    for _ in range(FAILURES + 1):
        assert (await refused(scripted.provider.posts(ALICE, PIER))).http_status == 503


async def test_clock_set_back_does_not_keep_the_breaker_open(clock: FrozenClock) -> None:
    scripted = Scripted(clock, httpx.ConnectError("down"))
    await _kill(scripted)
    clock.advance(hours=-1)
    scripted.script = [GOOD]
    await scripted.provider.location(PIER)
