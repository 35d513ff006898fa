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
from support import assert_ok
from token_support import PATH as TOKEN

DOCUMENT = Path(__file__).parents[2] / "openapi.json"
CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = effort(5, 1_000)
ALL = "examples,coverage,fuzzing,stateful"
# The phase of edge cases takes the longest, and is the same for everybody who is let in.
PHASES = effort(
    {"user": "coverage", "service": "fuzzing,stateful"},
    {"user": ALL, "service": ALL, "reading service": ALL},
)


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as running:
        yield running


def token_of(served: Served, role: str) -> str:
    if role == "user":
        return served.user
    return served.site(**({"permissions": ["business.read"]} if role == "reading service" else {}))[1]


def known(served: Served) -> dict[str, str]:
    """What only a caller who was told can send: a key and its tokens, and a key that may be revoked."""
    key, doomed = served.site()[0], served.site()[0]
    credentials = {name: key[name] for name in ("client_id", "client_secret")}
    with served.client() as http:
        tokens = assert_ok(http.post(TOKEN, json={"grant_type": "client_credentials", **credentials}))
    return {**credentials, "refresh_token": tokens["refresh_token"], "doomed": doomed["client_id"]}


@pytest.mark.fuzz
@pytest.mark.parametrize("database", effort(["sqlite"], ["sqlite", "postgres"]))
@pytest.mark.parametrize("role", PHASES)
def test_finds_nothing(served: Served, role: str, tmp_path: Path) -> None:
    config = CONFIG.read_text("utf-8")
    for name, value in known(served).items():
        config = config.replace(name.upper(), value)
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
