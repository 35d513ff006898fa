"""`make` prints a line for each step, and what a step wrote if it failed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.waiting import until

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make") or "make"
PROGRAMS = ("ruff", "codespell", "mypy", "pytest", "profilesvc")
# Of a make that runs these tests, whose options would apply.
OWN = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
Program = Callable[[str, str], None]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """`program(name, script)` replaces a program of .venv; the others print something and succeed."""

    def write(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    for name in PROGRAMS:
        write(name, "echo chatter")
    write("pytest", "echo chatter\necho '12 passed, 3 skipped in 1.50s'")
    return write


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Run make on programs that are installed."""
    return subprocess.Popen(
        [MAKE, f"BIN={folder}", "RUNTIME=", "DEV=", *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in OWN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def printed(folder: Path, *words: str) -> tuple[int, list[str]]:
    """Return the exit code, and the lines without seconds; steps that run at the same time are in any order."""
    process = start(folder, *words)
    out, _ = process.communicate()
    return process.returncode, [re.sub(r"\d+ s\b", "… s", line) for line in out.splitlines()]


def test_make_test_prints_a_line_for_each_step(tmp_path: Path, program: Program) -> None:
    code, lines = printed(tmp_path, "test")
    assert code == 0
    assert sorted(lines[:-2]) == [
        "English … ok … s, 12 passed, 3 skipped",
        "lint … ok … s",
        "notebooks (about 2 min)",
        "notebooks … ok … s, 12 passed, 3 skipped",
        "types … ok … s",
    ]
    assert lines[-2:] == ["tests (about 6 min)", "tests … ok … s, 12 passed, 3 skipped"]


def test_a_step_that_fails_shows_its_log(tmp_path: Path, program: Program) -> None:
    program("codespell", "echo 'README.md:1: teh ==> the' >&2; exit 65")
    code, lines = printed(tmp_path, "lint")
    assert code == 2
    assert lines[:4] == ["lint … failed after … s:", "chatter", "chatter", "README.md:1: teh ==> the"]
    assert len(lines) == 5, "make's own line"


def test_a_step_returns_the_exit_code() -> None:
    done = subprocess.run([ROOT / ".ci/step", "x", "sh", "-c", "exit 65"], capture_output=True, check=False)
    assert done.returncode == 65


def installed(folder: Path) -> tuple[int, list[str]]:
    """Run the installation of the service for a folder of programs, and return as `printed` does."""
    python = f'exec "{sys.executable}" "$@"'
    (folder / "new").write_text(f'#!/bin/sh\n[ "$2" = venv ] || {python}\ncp "{folder}/spare" "{folder}/pip"\n')
    (folder / "python").write_text(f"#!/bin/sh\n{python}\n")
    for name in ("new", "python"):
        (folder / name).chmod(0o755)
    mark = folder / "mark"
    return printed(folder, f"RUNTIME={mark}", f"PYTHON={folder}/new", str(mark))


def test_an_environment_whose_creation_was_interrupted_is_created_again(tmp_path: Path, program: Program) -> None:
    """Python creates it first, and then installs pip there, which takes seconds."""
    program("spare", "exit 0")
    assert installed(tmp_path) == (
        0,
        ["creating .venv … ok … s", "installing the service (about … s)", "installing the service … ok … s"],
    )


def test_a_failed_installation_names_the_network(tmp_path: Path, program: Program) -> None:
    program("pip", '[ "$1" = --version ] || { echo "no matching distribution"; exit 1; }')
    code, lines = installed(tmp_path)
    assert code == 2
    assert lines[1:3] == ["installing the service … failed after … s:", "no matching distribution"]
    assert lines[3].startswith("Packages cannot be installed. Check the network")
    assert not (tmp_path / "mark").exists()


def test_ctrl_c_ends_make_run(tmp_path: Path, program: Program) -> None:
    ready, stopped = tmp_path / "ready", tmp_path / "stopped"
    program("profilesvc", f"trap 'touch {stopped}; exit 0' INT; touch {ready}; while :; do sleep 0.05; done")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    process = start(tmp_path, "run", "PORT=0")
    signal.signal(signal.SIGINT, before)
    until(ready.exists, "the service to start")
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate()
    assert stopped.exists()
    assert "chatter" not in out
