"""Tests wait by `support/waiting.py`, and do not measure time, so that a busy machine does not fail them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
HELPER = "support/waiting.py"
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
LIMITS = {"timeout", "timeout_at", "wait_for"}
LOADS = "callers that pause between requests"
PEERS = "a peer that is slow on purpose"
MOMENT = "a moment in the middle of work, which differs each time"
MEASURED = "marked `long`"
# What each file does that others must not do, and why.
ALLOWED = {
    "loop": {
        "dashboard/test_cost_of_size.py": MEASURED,
        "serving/test_races.py": MOMENT,
        "serving/test_unfinished.py": PEERS,
        "storage/test_leases.py": MOMENT,
        "storage/test_windows_failover.py": LOADS,
        "support/systemd/backups.py": LOADS,
        "failover/callers.py": "`make failover` measures how long the service is away",
        "support/systemd/plain_units.py": "a program of its own, which replaces systemd",
        "support/network/receivers.py": PEERS,
        "support/systemd/systemctl.py": "a program of its own, which replaces systemd",
        "support/provider/toxic.py": PEERS,
        "unit/test_quota.py": "simulated time",
    },
    "limit": {
        "api/test_posts_followed.py": "whether a step happens before another one is not known",
        "serving/test_raw_socket.py": PEERS,
        "storage/test_windows.py": "the deadline of a caller",
        "support/fleet/worker.py": "the deadline of a caller",
        "support/wire.py": "a response that does not arrive is a result",
    },
    "clock": {
        "api/test_timing.py": MEASURED,
        "dashboard/test_cost_of_size.py": "only in `make fuzz`",
        "dashboard/test_sites.py": MEASURED,
        "serving/test_database_lost.py": "the clock of the service, which the test moves",
        "serving/test_workers.py": "a connection that was idle may be closed",
        "storage/test_windows_failover.py": MEASURED,
        "failover/callers.py": "`make failover` measures how long the service is away",
        "support/watchdog.py": "it ends a run that hangs",
    },
}


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def body(loop: ast.AST) -> Iterator[ast.AST]:
    """Everything in a loop but the functions that are defined in it."""
    for node in ast.iter_child_nodes(loop):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from body(node)


def pauses(loop: ast.AST) -> bool:
    """Return whether a loop sleeps. `sleep(0)` only gives other tasks a turn."""
    sleeps = [node for node in body(loop) if isinstance(node, ast.Call) and name_of(node) == "sleep"]
    return any(not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0) for call in sleeps)


def found_in(source: str) -> Iterator[tuple[str, int]]:
    """The kind and the line of each place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and pauses(node):
            yield "loop", node.lineno
        if isinstance(node, ast.Call) and name_of(node) in LIMITS and ast.unparse(node.func).startswith("asyncio."):
            yield "limit", node.lineno
        if isinstance(node, ast.Call) and name_of(node).removesuffix("_ns") in CLOCKS:
            yield "clock", node.lineno


def test_no_test_waits_or_measures_by_itself() -> None:
    places = {
        (kind, str(path.relative_to(TESTS)), line)
        for path in TESTS.rglob("*.py")
        if "stories" not in path.parts and path != TESTS / HELPER
        for kind, line in found_in(path.read_text("utf-8"))
    }
    assert sorted(place for place in places if place[1] not in ALLOWED[place[0]]) == []
    used = {(kind, file) for kind, file, _ in places}
    assert {(kind, file) for kind, files in ALLOWED.items() for file in files} - used == set()


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("while not ready():\n    time.sleep(0.1)", ["loop"]),
        ("for _ in range(9):\n    if ready():\n        break\n    await asyncio.sleep(pause)", ["loop"]),
        ("for _ in range(9):\n    await asyncio.sleep(0)", []),
        ("async with asyncio.timeout(3):\n    pass", ["limit"]),
        ("page.get_by_text('x').wait_for()", []),
        ("assert time.perf_counter_ns() - before < 9", ["clock"]),
    ],
)
def test_a_wait_or_a_measurement_is_found(source: str, kinds: list[str]) -> None:
    code = f"async def test() -> None:\n    {source.replace(chr(10), chr(10) + '    ')}"
    assert [kind for kind, _ in found_in(code)] == kinds
