"""Load on a server, by wrk if it is installed, else by a generator in Python in its own process."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.work import Request

CONNECTIONS = 32
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Load:
    """The results of a run: responses, those that failed or were not 2xx, seconds, and latencies in milliseconds."""

    requests: int
    bad: int
    seconds: float
    p50: float
    p99: float
    refused: int = 0  # 503 with Retry-After; only the generator in Python counts them


def tool() -> str:
    """Return the name of the load generator."""
    return "wrk" if shutil.which("wrk") else "python"


def pin(core: int | None) -> Callable[[], None]:
    """Return a `preexec_fn` that pins the process to a core if the system supports it."""

    def pin_process() -> None:
        if core is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})

    return pin_process


def run(port: int, request: Request, seconds: float, core: int | None, connections: int = CONNECTIONS) -> Load:
    """Send the request for some seconds, on each connection again after each response."""
    if tool() == "wrk":
        return _wrk(port, request, seconds, core, connections)
    return steady(port, request, seconds, core, connections=connections)


def _wrk(port: int, request: Request, seconds: float, core: int | None, connections: int) -> Load:
    lines = [f'wrk.method = "{request.method}"', f"wrk.body = {_lua(request.body)}"]
    lines += [f'wrk.headers["{name}"] = {_lua(value)}' for name, value in request.headers.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("\n".join(lines))
        script.flush()
        options = ["-t1", f"-c{connections}", f"-d{round(seconds)}s", "--timeout", "20s", "--latency"]
        output = subprocess.run(
            ["wrk", *options, "-s", script.name, f"http://127.0.0.1:{port}{request.path}"],
            preexec_fn=pin(core),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return _read(output)


def _lua(text: str) -> str:
    return f"[==[{text}]==]"


def _read(output: str) -> Load:
    total = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m)", output)
    assert total is not None, output
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0}[total[3]]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    failed = (int(bad[1]) if bad else 0) + (sum(map(int, errors.groups())) if errors else 0)
    return Load(int(total[1]), failed, float(total[2]) * scale, _latency(output, "50"), _latency(output, "99"))


def _latency(output: str, percent: str) -> float:
    match = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s)", output, re.MULTILINE)
    return float(match[1]) * _UNITS[match[2]] if match else 0.0


def steady(
    port: int, request: Request, seconds: float, core: int | None, rate: float = 0, connections: int = CONNECTIONS
) -> Load:
    """Send the request `rate` times a second, or without a rate on each connection again after each response."""
    every = connections / rate if rate else 0.0
    options = {"port": port, "seconds": seconds, "connections": connections, "every": every, **request.__dict__}
    output = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("generator.py"))],
        input=json.dumps(options),
        preexec_fn=pin(core),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return Load(**json.loads(output))
