"""Lookups of names that owners choose: their answers, their deadlines, and what an owner can use of them."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from profilesvc.services.notify import resolving
from profilesvc.services.notify.resolving import Lookups, Resolved, SystemNames
from support.network.name_servers import names_by, serving_names
from support.waiting import turns


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_the_addresses_of_both_families(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    known = {"both.example": ["2606:4700::1111", "8.8.8.8"], "four.example": ["8.8.4.4"], "none.example": []}

    async def story() -> None:
        async with serving_names(known) as server:
            lookups = Lookups(names_by(server).query)
            assert await lookups(1, "both.example") == ["8.8.8.8", "2606:4700::1111"]
            assert await lookups(1, "four.example") == ["8.8.4.4"]
            with pytest.raises(OSError, match="has no address"):
                await lookups(1, "none.example")

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())


async def test_a_name_server_that_is_silent_about_one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_QUESTION_SECONDS", 0.2)
    async with serving_names({"hooks.example": ["8.8.8.8", "2606:4700::1111"]}, ("A",)) as server:
        assert await Lookups(names_by(server).query)(1, "hooks.example") == ["8.8.8.8"]


async def test_an_address_is_not_looked_up() -> None:
    async with serving_names({}) as server:
        lookups = Lookups(names_by(server).query)
        assert await lookups(1, "8.8.8.8") == ["8.8.8.8"]
        assert await lookups(1, "2606:4700::1111") == ["2606:4700::1111"]
        assert server.asked == []


async def test_the_search_list_of_the_system_is_used() -> None:
    known: dict[str, list[str]] = {"receiver": [], "receiver.corp.example": ["10.0.0.7"]}
    async with serving_names(known) as server:
        assert await Lookups(names_by(server, "corp.example").query)(1, "receiver") == ["10.0.0.7"]


async def test_the_hosts_file_comes_first_and_is_read_again(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# 1.1.1.1 hooks.example\n10.0.0.9\tA.example HOOKS.example # two\n::1 hooks.example\nx hooks.example\n"
    )
    async with serving_names({"hooks.example": ["8.8.8.8"]}) as server:
        servers = names_by(server)._servers
        lookups = Lookups(SystemNames(hosts, servers).query)
        assert await lookups(1, "hooks.example") == ["10.0.0.9", "::1"]
        hosts.unlink()
        assert await lookups(1, "hooks.example") == ["8.8.8.8"]


async def test_localhost_needs_no_name_server() -> None:
    lookups = Lookups(SystemNames(Path("/nonexistent"), lambda: pytest.fail("asked")).query)
    assert await lookups(1, "localhost") == await lookups(1, "a.localhost") == ["127.0.0.1", "::1"]


async def test_a_machine_without_name_servers(tmp_path: Path) -> None:
    assert resolving._parsed_servers(tmp_path / "resolv.conf").nameservers == ["127.0.0.1"]


class Clock:
    """Seconds that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_failures_are_remembered_for_a_minute_and_addresses_for_their_time() -> None:
    clock, asked = Clock(), list[str]()
    known = {"short.example": Resolved(["8.8.8.8"], 10), "long.example": Resolved(["8.8.4.4"], 86_400)}

    async def query(host: str) -> Resolved:
        asked.append(host)
        if host not in known:
            raise OSError
        return known[host]

    lookups = Lookups(query, clock)
    for seconds, expected in [(0, 3), (9.9, 0), (0.2, 1), (49.8, 1), (0.2, 2)]:
        clock.now += seconds
        asked.clear()
        for host in (*known, "none.example"):
            with contextlib.suppress(OSError):
                await lookups(1, host)
        assert len(asked) == expected, clock.now


async def test_names_are_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_MOST_NAMES", 2)

    async def query(host: str) -> Resolved:
        return Resolved([f"8.8.8.{host[0]}"] * 40, 60)

    lookups = Lookups(query)
    for number in range(9):
        assert len(await lookups(1, f"{number}.example")) == 16
    assert list(lookups._cache) == ["7.example", "8.example"]


class Held:
    """Queries that do not end before the test lets them; `running` are the hosts."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.most = 0
        self.released = asyncio.Event()

    async def __call__(self, host: str) -> Resolved:
        self.running.append(host)
        self.most = max(self.most, len(self.running))
        try:
            await self.released.wait()
        finally:
            self.running.remove(host)
        return Resolved(["8.8.8.8"], 0)


async def test_an_owner_has_one_lookup_at_a_time_and_some_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_WAITING", 16)
    held = Held()
    lookups = Lookups(held)
    calls = [asyncio.create_task(lookups(1, f"{number}.example")) for number in range(30)]
    other = asyncio.create_task(lookups(2, "other.example"))
    await turns(20)
    assert sorted(held.running) == ["0.example", "other.example"]
    assert sum(call.done() for call in calls) == 30 - 17, "those beyond 16 that wait fail at once"
    held.released.set()
    assert await other == ["8.8.8.8"]
    await asyncio.wait(calls)
    assert sum(call.exception() is None for call in calls) == 17
    assert held.most == 2
    assert lookups._turns == {}


async def test_a_caller_that_leaves_frees_its_turn() -> None:
    held = Held()
    lookups = Lookups(held)
    calls = [asyncio.create_task(lookups(1, f"{number}.example")) for number in range(3)]
    await turns(20)
    calls[1].cancel()
    calls[0].cancel()
    await turns(20)
    assert held.running == ["2.example"]
    calls[2].cancel()
    await turns(20)
    assert lookups._turns == {}


async def test_owners_get_a_free_slot_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_AT_A_TIME", 2)
    held = Held()
    lookups = Lookups(held)
    calls = [
        asyncio.create_task(lookups(owner, f"{owner}-{number}.example")) for owner in (1, 2, 3) for number in range(5)
    ]
    await turns(20)
    assert held.running == ["1-0.example", "2-0.example"]
    calls[0].cancel()
    await turns(20)
    assert held.running == ["2-0.example", "3-0.example"], "not the second one of an owner that had its turn"
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


async def test_a_silent_name_server_stops_neither_another_owner_nor_the_resolver_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the resolver of the loop, 30 names hold its threads, and no other name is resolved for minutes."""
    monkeypatch.setattr(resolving, "SECONDS", 60.0)
    monkeypatch.setattr(resolving, "_QUESTION_SECONDS", 60.0)
    loop = asyncio.get_running_loop()
    async with serving_names({"good.example": ["8.8.8.8"]}) as server:
        lookups = Lookups(names_by(server).query)
        silent = [asyncio.create_task(lookups(1, f"{number}.silent.example")) for number in range(30)]
        await server.was_asked.wait()
        assert await lookups(2, "good.example") == ["8.8.8.8"]
        assert await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
        assert len({name for name, _ in server.asked if name.endswith("silent.example")}) == 1
        for task in silent:
            task.cancel()
        await asyncio.wait(silent)


async def test_a_silent_name_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "SECONDS", 0.2)
    async with serving_names({}) as server:
        lookups = Lookups(names_by(server).query)
        for _ in range(3):
            with pytest.raises(OSError, match="has no address"):
                await lookups(1, "silent.example")
        assert sorted(server.asked) == [("silent.example", "A"), ("silent.example", "AAAA")], "remembered"
