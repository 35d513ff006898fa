"""The anchors of `make bench` do the work of the service: the same responses and the same rows."""

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import anchors
from benchmarks.anchors import Trace

ROOT = Path(__file__).parents[2]


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["starlette", pytest.param("go", marks=pytest.mark.thorough)])
def test_an_anchor_does_what_the_service_does(name: str) -> None:
    pytest.importorskip("msgspec", reason="the group bench is not installed")
    if obstacle := anchors.obstacle(name):
        pytest.skip(obstacle)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.anchors", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{name}: 26 responses and the rows are those of the service" in done.stderr


def test_a_response_or_a_row_that_differs_is_named() -> None:
    ours = Trace({"a list": 200, "no token": 401}, {"counts": 3})
    anchors.compare(ours, ours, "go")
    with pytest.raises(AssertionError, match="go, no token: 200 instead of 401"):
        anchors.compare(ours, ours._replace(responses={"a list": 200, "no token": 200}), "go")
    with pytest.raises(AssertionError, match="go, counts: 2 instead of 3"):
        anchors.compare(ours, ours._replace(rows={"counts": 2}), "go")
