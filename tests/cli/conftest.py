"""A folder with the demo data, and commands in it."""

import os
import shutil
from pathlib import Path

import pytest

from profilesvc.fixtures import fixture_path
from support.command_line import Run, run_command


@pytest.fixture
def run(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("users", "list")` on the demo data."""
    for name in [name for name in os.environ if name.startswith("PROFILESVC_")]:
        monkeypatch.delenv(name)
    shutil.copytree(sqlite_template, tmp_path / "var")
    shutil.copy(fixture_path("signing_key.pem"), tmp_path / "var")
    monkeypatch.chdir(tmp_path)
    return run_command
