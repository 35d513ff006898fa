"""A run of tests that hangs ends by itself, and shows where."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_CONFTEST = """
from support.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(config, grace=3))
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


PLUGINS = ("no:randomly", "no:schemathesis")


def run(folder: Path, test: str, *words: str, keys: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a test, whose limit is half a second, with these words and keys pressed."""
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_stubborn.py").write_text(test)
    (folder / "test_other.py").write_text("def test_passes():\n    pass\n")
    (folder / "pytest.ini").write_text(
        f"[pytest]\ntimeout = 0.5\nsession_timeout = 60\npythonpath = {ROOT / 'tests'}\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", *(word for name in PLUGINS for word in ("-p", name)), *words]
    return subprocess.run(command, cwd=folder, input=keys, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    ["wait_for_ever()", "threading.Thread(target=wait_for_ever).start()"],
    ids=["a test that catches the exception of pytest-timeout", "a thread that does not end"],
)
def test_a_run_that_hangs_ends_with_the_stacks(tmp_path: Path, call: str) -> None:
    done = run(tmp_path, _STUBBORN.format(call=call), "-p", "no:xdist")
    assert done.returncode == 1
    assert "Timeout (" in done.stderr
    assert "in wait_for_ever" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("call", ["wait_for_ever()", "sum(itertools.count())"], ids=["in Python", "in C"])
def test_one_process_of_several_that_hangs_ends_the_run_with_its_stack(tmp_path: Path, call: str) -> None:
    """xdist replaces a process that has ended. With the tests of each file in one process, it runs the test again."""
    test = "import itertools\n" + _STUBBORN.format(call=call)
    done = run(tmp_path, test, "--numprocesses=2", "--dist=loadfile", "-p", "no:nbval")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running 'test_stubborn.py::test_it_hangs_for_ever'" in done.stdout
    assert done.stderr.count("in test_it_hangs_for_ever") == 1


_DEBUGGED = """
import time

def test_a_breakpoint_stops_it():
    breakpoint()
    assert True
"""


@pytest.mark.slow
def test_a_test_in_the_debugger_has_all_the_time(tmp_path: Path) -> None:
    done = run(tmp_path, _DEBUGGED, "-p", "no:xdist", keys="time.sleep(5)\ncontinue\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 passed" in done.stdout
