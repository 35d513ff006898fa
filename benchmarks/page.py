"""What was measured as a page: a table for each work and database, the distance to the limits, a plot, the how."""

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import load
from benchmarks.work import TITLES

NAMES = {
    "service": "**this service**",
    "fastapi": "FastAPI + SQLModel, template style (`def`)",
    "litestar": "Litestar + SQLAlchemy + msgspec",
    "quart": "Quart + quart-schema + SQLModel, idiomatic",
    "signing": "limit: two RSA-2048 signatures, nothing else",
}
DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
# (work, database, peer, ratio to reach); the grant is held against the raw signatures, `signing`.
REACH = (
    ("list", "sqlite", "fastapi", 9.0),
    ("list", "postgresql", "fastapi", 9.0),
    ("list", "postgresql", "litestar", 5.0),
    ("heartbeat", "sqlite", "fastapi", 7.0),
    ("heartbeat", "postgresql", "fastapi", 6.0),
    ("status", "sqlite", "fastapi", 6.0),
    ("status", "postgresql", "fastapi", 6.0),
)
GRANT_REACH = 0.58
_PACKAGES = ("quart", "uvicorn", "sqlmodel", "sqlalchemy", "asyncpg", "fastapi", "litestar", "msgspec", "quart-schema")
_HEAD = """# Performance

Written by `make bench`; do not edit. The service beside its peers (`benchmarks/peers/`: small programs that do the same
work on the same data, written as their own documentation advises), all in one run: each server on one core, the load
generator and PostgreSQL on another, {rounds} rounds of {seconds:g} s in turn with {connections} connections, medians;
ratios are medians of those of each round. Answers are checked before and after. Every heartbeat is durable when it is
answered (SQLite: WAL, synchronous=FULL). Rate limits are off, as the peers have none.

**CPU per request** is that of the server's processes (database server not counted): it holds on a busy machine, where
requests/s say more about the neighbours. `×` says how many times less CPU, or more requests/s, the service has.

"""


def tables(results: dict[str, Any]) -> str:
    """All tables in Markdown."""
    parts = [_reached(results), _limits(results)]
    if "own" in results:
        parts.append(_own(results["own"], results["large"]))
    for database, works in results["databases"].items():
        for work, found in works.items():
            parts.append(f"## {TITLES[work][0].upper()}{TITLES[work][1:]}, {DATABASES[database]}\n\n{_table(found)}")
    return "\n\n".join(parts) + "\n"


def _ratio(found: dict[str, Any], peer: str) -> tuple[float, float]:
    """(by CPU, by requests/s): how many times the service is ahead of a peer."""
    return found[peer]["times_cpu"], found[peer]["times_rate"]


def _reached(results: dict[str, Any]) -> str:
    lines = ["## Ratios", "", "| Work | Against | by CPU | by requests/s | to reach |", "|---|---|---|---|---|"]
    for work, database, peer, goal in REACH:
        found = results["databases"].get(database, {}).get(work, {})
        if "service" in found and peer in found:
            by_cpu, by_rate = _ratio(found, peer)
            where = f"{TITLES[work]}, {DATABASES[database]}"
            lines.append(f"| {where} | {NAMES[peer]} | {by_cpu:.1f} × | {by_rate:.1f} × | {goal:g} × |")
    for database, works in results["databases"].items():
        if "service" in works.get("token", {}):
            by_cpu, by_rate = _ratio(works["token"], "signing")
            shares = f"{by_cpu:.0%} | {by_rate:.0%}"
            lines.append(f"| {TITLES['token']}, {DATABASES[database]} | raw signing | {shares} | {GRANT_REACH:.0%} |")
    return "\n".join(lines)


def _limits(results: dict[str, Any]) -> str:
    bare = results["bare ASGI"]
    lines = ["## Limits", "", "| | requests/s | CPU, µs |", "|---|---|---|"]
    lines.append(f"| bare ASGI function on uvicorn | {bare['rate']:,.0f} | {bare['cpu']:.0f} |")
    lines.append("")
    for database, works in results["databases"].items():
        for work, found in works.items():
            if "service" in found:
                over = found["service"]["cpu"] - bare["cpu"] - found.get("signing", {"cpu": 0})["cpu"]
                lines.append(f"- {TITLES[work]}, {DATABASES[database]}: {over:.0f} µs above its limit")
    return "\n".join(lines)


_CALLERS = {"same": "as many callers", "twice": "as many callers each"}


def _own(own: dict[str, Any], large: dict[str, Any]) -> str:
    """What the service is held against itself for."""
    whole, parts = own["sync"]["sync"], {name: cost for name, cost in own["sync"].items() if name != "sync"}
    total, first = sum(parts.values()), own["first"]
    lines = ["## On its own", "", "| | measured | to reach |", "|---|---|---|"]
    lines.append(f"| sync (in-process emulator) beside the sum of its parts | {whole / total:.2f} × | ≤ 1.5 × |")
    for work, found in own["processes"].items():
        for callers in ("same", "twice"):
            share, title = found[callers]["times_cpu"], f"{TITLES[work]}, PostgreSQL"
            lines.append(
                f"| {title}: CPU per request of two processes, {_CALLERS[callers]} | {share:.2f} × one | ≤ 1.1 × |"
            )
    lines.append(f"| first answer of `profilesvc serve` | {first['serve']:.2f} s | < 1.5 s |")
    lines.append(f"| first answer of the server in a notebook, imports apart | {first['embedded']:.2f} s | < 0.3 s |")
    over = own["overload"]
    times = {
        name: f"{found['p99'] / found['p50']:.1f} × ({found['p50']:.1f} and {found['p99']:.1f} ms)"
        for name, found in over.items()
        if name in ("service", "busy")
    }
    lines.append(
        f"| connection status read, SQLite, at 80 % of its maximum: p99 beside p50 | {times['service']} | ≤ 4 × |"
    )
    lines.append(f"| the same of a function that only computes for as long, in turn with it | {times['busy']} | – |")
    full = f"{over['refused']} are refused with 503 and Retry-After, {over['answered']:,} requests of the rest answered"
    lines.append(f"| 200 callers at once where 100 requests are let in | {full} | refused, not queued |")
    much = large["many"]
    lines.append(
        f"| list, 1,000,000 posts and 100,000 keys in the tables, SQLite | {1 / much['times_cpu']:.2f} × by CPU, "
        f"{1 / much['times_rate']:.2f} × by requests/s of the same with 1,000 | ≥ 0.9 × |"
    )
    depth = large["last page"]["times_cpu"] / large["second page"]["times_cpu"]
    lines.append(f"| the last page of 100,000 posts beside the second, CPU | {depth:.2f} × | flat |")
    told = ", ".join(f"{name} {cost:,.0f}" for name, cost in parts.items())
    lines += ["", f"A sync takes {whole:,.0f} µs of CPU; its parts, measured apart: {told}."]
    halves = ", ".join(f"{found['half']['times_cpu']:.2f} × ({work})" for work, found in own["processes"].items())
    lines += [
        "Two processes share the core that one has: what each request costs is compared, scaling was not measured. "
        f"One process with half the callers, as many as each of two has, costs {halves} of what it costs with all: "
        "fewer heartbeats share a commit, fewer requests a turn of the loop."
    ]
    return "\n".join(lines)


def _table(found: dict[str, Any]) -> str:
    head = "| | CPU per request, µs | × | requests/s | × | p50, ms | p99, ms | not 200 |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, medians in found.items():
        by_cpu, by_rate = (f"{ratio:.1f}" for ratio in _ratio(found, name)) if "service" in found else ("", "")
        cells = f"{medians['cpu']:,.0f} | {by_cpu} | {medians['rate']:,.0f} | {by_rate}"
        times = f"{medians['p50']:.1f} | {medians['p99']:.1f} | {medians['bad']:.1%}"
        lines.append(f"| {NAMES[name]} | {cells} | {times} |")
    return "\n".join(lines)


def write(results: dict[str, Any], folder: Path) -> None:
    """`performance.md` and `performance.svg`."""
    _plot(results, folder / "performance.svg")
    how = {"rounds": results["rounds"], "seconds": results["seconds"], "connections": load.CONNECTIONS}
    plot = "![CPU per request of the service and its peers](performance.svg)\n\n"
    (folder / "performance.md").write_text(_HEAD.format(**how) + plot + tables(results) + "\n" + _foot(results))


def _foot(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    machine = f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    before = ", ".join(f"{load_:.1f}" for load_ in results["machine_load"])
    command = (
        f"python -m benchmarks --rounds {results['rounds']} --seconds {results['seconds']:g} --nice {results['nice']}"
    )
    return (
        f"## How\n\n- Machine: {machine}; load average before the run {before}\n"
        f"- Python {platform.python_version()}; {versions}; load by {load.tool()}\n"
        f"- Command: `make bench`, which is `{command}`; figures in `build/bench/results.json`\n"
        f"- Date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}\n"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "profilesvc"
    from matplotlib import pyplot

    bars = [(d, w, found) for d, works in results["databases"].items() for w, found in works.items()]
    figure, axes = pyplot.subplots(len(bars), 1, figsize=(8, 1.25 * len(bars)), layout="constrained", squeeze=False)
    for axis, (database, work, found) in zip(axes[:, 0], bars, strict=True):
        names = list(reversed(found))
        colours = ["tab:green" if name == "service" else "tab:grey" for name in names]
        drawn = axis.barh(names, [found[name]["cpu"] for name in names], color=colours)
        axis.bar_label(drawn, fmt="%.0f", padding=3, fontsize=7)
        axis.set_title(f"{TITLES[work]}, {DATABASES[database]}: CPU per request, µs", fontsize=8, loc="left")
        axis.tick_params(labelsize=7)
        axis.margins(x=0.1)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
