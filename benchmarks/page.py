"""The page of results: a table for each task and database, the distance to the limits, a plot, and the method."""

import datetime
import math
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import anchors, load
from benchmarks.work import TITLES

NAMES = {
    "service": "**this service**",
    "fastapi": "FastAPI + SQLModel, template style (`def`)",
    "litestar": "Litestar + SQLAlchemy + msgspec",
    "quart": "Quart + quart-schema + SQLModel, idiomatic",
    "starlette": "anchor: Starlette + asyncpg + msgspec, by hand",
    "go": "anchor: Go, net/http + pgx, by hand",
    "signing": "limit: two RSA-2048 signatures, nothing else",
}
DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
# (work, database, peer, target ratio). The reference of the grant is `signing`, the signatures only.
TARGETS = (
    ("list", "sqlite", "fastapi", 9.0),
    ("list", "postgresql", "fastapi", 9.0),
    ("list", "postgresql", "litestar", 5.0),
    ("heartbeat", "sqlite", "fastapi", 7.0),
    ("heartbeat", "postgresql", "fastapi", 6.0),
    ("status", "sqlite", "fastapi", 6.0),
    ("status", "postgresql", "fastapi", 6.0),
)
GRANT_TARGET = 0.85
_PACKAGES = (
    "quart",
    "uvicorn",
    "sqlmodel",
    "sqlalchemy",
    "asyncpg",
    "fastapi",
    "litestar",
    "msgspec",
    "starlette",
    "quart-schema",
)
_ANCHORS = """## Distance to the limit

Two servers are written by hand for these four requests, as an upper limit without a target
(`benchmarks/peers/anchor/`). They run on the tables of the service, with the same statements in both. Like the service,
they verify RS256 and cache verified tokens, read revocation, key and owner in the statement of each request, commit
heartbeats in groups, and store the last use of a key and the counts of requests and grants. Before a run, the responses
to valid and to rejected requests and the stored rows are compared with those of the service. `×` is how many times as
much CPU the service needs."""
_WHY = """The difference is what the anchors leave out. They have no limits of their own for heads, bodies and slow
readers, no rate limits, no security headers, no metrics, no log of requests and no traces. Their errors have no code,
no field and no request id, and unknown fields and repeated parameters are not checked. They do not read a stale list
again from the provider, and they know three of the eight reasons of a status. Each request has code of its own. In the
service, routing, validation, the OpenAPI document and the clients follow from one declaration, and Quart makes objects
for each request and response. Go does the same work in compiled code, but its own RSA takes longer than OpenSSL's. In a
grant, the service and both anchors sign the access token by RSA and the refresh token by HMAC; the peers sign both by
RSA."""
_SHARES = "A profile in process on SQLite, without the server's HTTP, shows where the service spends its CPU:"
_HEAD = """# Performance

Written by `make bench`; do not edit. The page compares the service with its peers in one run. The peers
(`benchmarks/peers/`) are small programs that do the same work on the same data, written as their documentation
recommends. Each server runs on one core, the load generator and PostgreSQL on another. The figures are medians of
{rounds} rounds of {seconds:g} s in turn with {connections} connections, and the ratios are medians of each round's
ratio. Responses are checked before and after. Every heartbeat is durable before its response (SQLite: WAL,
synchronous=FULL). Rate limits are off, because the peers have none.

**CPU per request** is that of the server's processes, without the database server. It is reliable on a busy machine,
unlike requests/s. `×` is how many times less CPU, or more requests/s, the service has.

"""


def tables(results: dict[str, Any]) -> str:
    """Return all tables in Markdown."""
    parts = [_ratios(results), _limits(results), *distances(results)]
    if "own" in results:
        parts.append(_own(results["own"], results["large"]))
    for database, works in results["databases"].items():
        for work, figures in works.items():
            parts.append(f"## {TITLES[work][0].upper()}{TITLES[work][1:]}, {DATABASES[database]}\n\n{_table(figures)}")
    return re.sub(r"\bnan%?", "–", "\n\n".join(parts)) + "\n"  # of a subject that never responded


def _ratio(figures: dict[str, Any], peer: str) -> tuple[float, float]:
    """Return how many times the service is faster than a peer, by CPU and by requests/s."""
    return figures[peer]["times_cpu"], figures[peer]["times_rate"]


def _ratios(results: dict[str, Any]) -> str:
    lines = ["## Ratios", "", "| Task | Peer | by CPU | by requests/s | target |", "|---|---|---|---|---|"]
    for work, database, peer, target in TARGETS:
        figures = results["databases"].get(database, {}).get(work, {})
        if "service" in figures and peer in figures:
            by_cpu, by_rate = _ratio(figures, peer)
            title = f"{TITLES[work]}, {DATABASES[database]}"
            lines.append(f"| {title} | {NAMES[peer]} | {by_cpu:.1f} × | {by_rate:.1f} × | {target:g} × |")
    for database, works in results["databases"].items():
        if "service" in works.get("token", {}):
            by_cpu, by_rate = _ratio(works["token"], "signing")
            shares = f"{by_cpu:.0%} | {by_rate:.0%}"
            lines.append(f"| {TITLES['token']}, {DATABASES[database]} | raw signing | {shares} | {GRANT_TARGET:.0%} |")
    return "\n".join(lines)


def _limits(results: dict[str, Any]) -> str:
    bare = results["bare ASGI"]
    lines = ["## Limits", "", "| | requests/s | CPU, µs |", "|---|---|---|"]
    lines.append(f"| bare ASGI function on uvicorn | {bare['rate']:,.0f} | {bare['cpu']:.0f} |")
    lines.append("")
    for database, works in results["databases"].items():
        for work, figures in works.items():
            if "service" in figures:
                over = figures["service"]["cpu"] - bare["cpu"] - figures.get("signing", {"cpu": 0})["cpu"]
                lines.append(f"- {TITLES[work]}, {DATABASES[database]}: {over:.0f} µs above its limit")
    return "\n".join(lines)


def distances(results: dict[str, Any]) -> list[str]:
    """Return the section on the anchors, if they were measured."""
    works = results["databases"].get("postgresql", {})
    measured = [name for name in anchors.NAMES if any(name in figures for figures in works.values())]
    if not measured or not all("service" in figures for figures in works.values()):
        return []
    head = " | ".join(f"{NAMES[name]}, µs | ×" for name in measured)
    lines = [_ANCHORS, "", f"| Task, PostgreSQL | service, µs | {head} |", "|---|---|" + "---|---|" * len(measured)]
    for work, figures in works.items():
        cells = [f"{figures[name]['cpu']:,.0f} | {1 / figures[name]['times_cpu']:.1f}" for name in measured]
        lines.append(f"| {TITLES[work]} | {figures['service']['cpu']:,.0f} | {' | '.join(cells)} |")
    return ["\n".join(lines), _WHY, *_shares(results.get("own", {}).get("shares"))]


def _shares(shares: dict[str, dict[str, float]] | None) -> list[str]:
    """Return the table of what the service spends its CPU on."""
    if not shares:
        return []
    lines = [_SHARES, "", f"| Part | {' | '.join(TITLES[work] for work in shares)} |", "|---|" + "---|" * len(shares)]
    for part in next(iter(shares.values())):
        lines.append(f"| {part} | {' | '.join(f'{of_work.get(part, 0):.0%}' for of_work in shares.values())} |")
    return ["\n".join(lines)]


_CONTROL = "connection status read of Litestar + SQLAlchemy + msgspec, in the same minutes"
_CALLERS = {"same": "as many callers", "twice": "as many callers each"}


def _own(own: dict[str, Any], large: dict[str, Any]) -> str:
    """Return the table of the comparisons of the service with itself."""
    sync, parts = own["sync"]["sync"], {name: cost for name, cost in own["sync"].items() if name != "sync"}
    total, first = sum(parts.values()), own["first"]
    lines = ["## The service by itself", "", "| | measured | target |", "|---|---|---|"]
    lines.append(f"| sync (in-process emulator), relative to the sum of its parts | {sync / total:.2f} × | ≤ 1.2 × |")
    for work, figures in own["processes"].items():
        for callers in ("same", "twice"):
            share = figures[callers]["times_cpu"]
            title = _CONTROL if work == "control" else f"{TITLES[work]}, PostgreSQL"
            target = "–" if work == "control" else "≤ 1.1 ×"
            lines.append(
                f"| {title}: CPU per request of two processes, {_CALLERS[callers]} | {share:.2f} × one | {target} |"
            )
    lines.append(f"| first response of `profilesvc serve` | {first['serve']:.2f} s | ≤ 1.2 s |")
    lines.append(f"| first response in a notebook, without imports | {first['embedded']:.2f} s | < 0.3 s |")
    over = own["overload"]
    times = {
        name: f"{figures['p99'] / figures['p50']:.1f} × ({figures['p50']:.1f} and {figures['p99']:.1f} ms)"
        for name, figures in over.items()
        if name in ("service", "busy")
    }
    lines.append(
        f"| connection status read, SQLite, at 80 % of its maximum: p99 relative to p50 | {times['service']} | ≤ 4 × |"
    )
    lines.append(f"| the same for a function that computes for as long, in the same rounds | {times['busy']} | – |")
    full = f"{over['refused']} responses are 503 with Retry-After, {over['answered']:,} are 200"
    lines.append(f"| 200 callers at the same time with 100 permitted requests | {full} | rejected, not queued |")
    many = large["many"]
    lines.append(
        f"| list, 1,000,000 posts and 100,000 keys in the tables, SQLite | {1 / many['times_cpu']:.2f} × by CPU, "
        f"{1 / many['times_rate']:.2f} × by requests/s of the same with 1,000 | ≥ 0.9 × |"
    )
    depth = large["last page"]["times_cpu"] / large["second page"]["times_cpu"]
    lines.append(f"| the last page of 100,000 posts, relative to the second, CPU | {depth:.2f} × | flat |")
    costs = ", ".join(f"{name} {cost:,.0f}" for name, cost in parts.items())
    lines += ["", f"A sync takes {sync:,.0f} µs of CPU. Its parts, measured separately: {costs}."]
    halves = ", ".join(f"{figures['half']['times_cpu']:.2f} × ({work})" for work, figures in own["processes"].items())
    lines += [
        "Two processes share the core of one, so the table compares the cost of a request and not scaling. "
        f"One process with half the callers, as many as each of two has, costs {halves} of its cost with all of them, "
        "because fewer heartbeats share a commit, and fewer requests share an iteration of the event loop."
    ]
    return "\n".join(lines)


def _table(figures: dict[str, Any]) -> str:
    head = "| | CPU per request, µs | × | requests/s | × | p50, ms | p99, ms | not 200 |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, medians in figures.items():
        by_cpu, by_rate = (f"{ratio:.1f}" for ratio in _ratio(figures, name)) if "service" in figures else ("", "")
        cells = f"{medians['cpu']:,.0f} | {by_cpu} | {medians['rate']:,.0f} | {by_rate}"
        times = f"{medians['p50']:.1f} | {medians['p99']:.1f} | {medians['bad']:.1%}"
        lines.append(f"| {NAMES[name]} | {cells} | {times} |")
    silent = [f"{NAMES[name]}: {medians['silent']:.0f}" for name, medians in figures.items() if medians["silent"]]
    if silent:
        lines += [
            "",
            f"Rounds without any response, which the medians of CPU and times leave out: {', '.join(silent)}.",
        ]
    return "\n".join(lines)


def write(results: dict[str, Any], folder: Path) -> None:
    """Write `performance.md` and `performance.svg`."""
    _plot(results, folder / "performance.svg")
    parameters = {"rounds": results["rounds"], "seconds": results["seconds"], "connections": load.CONNECTIONS}
    plot = "![CPU per request of the service and its peers](performance.svg)\n\n"
    (folder / "performance.md").write_text(_HEAD.format(**parameters) + plot + tables(results) + "\n" + _foot(results))


def _foot(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    machine = f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    machine_load = ", ".join(f"{average:.1f}" for average in results["machine_load"])
    command = (
        f"python -m benchmarks --rounds {results['rounds']} --seconds {results['seconds']:g} --nice {results['nice']}"
    )
    return (
        f"## Method\n\n- Machine: {machine}; load average before the run {machine_load}\n"
        f"- Python {platform.python_version()}; {versions}; load by {load.tool()}\n"
        f"- Command: `make bench`, which runs `{command}`; figures in `build/bench/results.json`\n"
        f"- Date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}\n"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _drawable(value: float) -> float:
    """Return 0 for a subject that never responded."""
    return 0 if math.isnan(value) else value


def _plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "profilesvc"
    from matplotlib import pyplot

    bars = [(name, work, figures) for name, works in results["databases"].items() for work, figures in works.items()]
    figure, axes = pyplot.subplots(len(bars), 1, figsize=(8, 1.25 * len(bars)), layout="constrained", squeeze=False)
    for axis, (database, work, figures) in zip(axes[:, 0], bars, strict=True):
        names = list(reversed(figures))
        colours = ["tab:green" if name == "service" else "tab:grey" for name in names]
        drawn = axis.barh(names, [_drawable(figures[name]["cpu"]) for name in names], color=colours)
        axis.bar_label(drawn, fmt="%.0f", padding=3, fontsize=7)
        axis.set_title(f"{TITLES[work]}, {DATABASES[database]}: CPU per request, µs", fontsize=8, loc="left")
        axis.tick_params(labelsize=7)
        axis.margins(x=0.1)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
