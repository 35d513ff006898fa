"""Schemathesis draws requests from the OpenAPI document and finds no answer that the document does not promise (T8)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire import Served, serving

from effort import effort
from profilesvc.settings import Settings

DOCUMENT = Path(__file__).parents[2] / "openapi.json"
CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = effort(5, 1_000)
ALL = "examples,coverage,fuzzing,stateful"
# The phase of edge cases takes the longest, and is the same for everybody who is let in.
PHASES = {
    "user": effort("coverage,stateful", ALL),
    "service": effort("fuzzing", ALL),
    "reading service": effort("fuzzing", ALL),
}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as running:
        yield running


def token_of(served: Served, role: str) -> str:
    if role == "user":
        return served.user
    return served.site(**({"permissions": ["business.read"]} if role == "reading service" else {}))[1]


@pytest.mark.fuzz
@pytest.mark.parametrize("database", effort(["sqlite"], ["sqlite", "postgres"]))
@pytest.mark.parametrize("role", PHASES)
def test_finds_nothing(served: Served, role: str, tmp_path: Path) -> None:
    key, _ = served.site()
    config = CONFIG.read_text("utf-8")
    for name in ("client_id", "client_secret"):
        config = config.replace(name.upper(), key[name])
    (tmp_path / "schemathesis.toml").write_text(config, "utf-8")
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", str(DOCUMENT)),
        *("--url", served.server.base_url, "--header", f"Authorization: Bearer {token_of(served, role)}"),
        *("--checks", "all", "--phases", PHASES[role], "--max-examples", str(EXAMPLES), "--continue-on-failure"),
        *(
            "--no-color",
            "--warnings",
            "off",
            *effort(("--generation-deterministic",), ("--generation-database", "none")),
        ),
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    generated = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    assert generated, run.stdout
    assert generated[1] == generated[2]
    assert int(generated[1]) > 10 * EXAMPLES
