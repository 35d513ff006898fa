"""A run of tests that hangs ends by itself, and shows where."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_CONFTEST = """
from support.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(config, grace=0.5))
"""
_STUBBORN = """
import threading, time

def wait_for_ever():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def test_it_hangs_for_ever():
    {call}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    ["wait_for_ever()", "threading.Thread(target=wait_for_ever).start()"],
    ids=["a test that catches the exception of pytest-timeout", "a thread that does not end"],
)
def test_a_run_that_hangs_ends_with_the_stacks(tmp_path: Path, call: str) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_stubborn.py").write_text(_STUBBORN.format(call=call))
    ini = f"[pytest]\ntimeout = 0.5\nsession_timeout = 60\npythonpath = {ROOT / 'tests'}\n"
    (tmp_path / "pytest.ini").write_text(ini)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:randomly", "-p", "no:schemathesis"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Timeout (" in done.stderr
    assert "in wait_for_ever" in done.stderr
