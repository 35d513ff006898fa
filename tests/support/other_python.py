"""Runs the notebook tool in processes of its own, with another package source or another environment."""

import shutil
import subprocess
import sys
from pathlib import Path

from support.program import environment
from support.repository import ROOT

FOLDER = ROOT / "notebooks"


def page_of(number: str) -> Path:
    """Return the notebook with this number."""
    (found,) = FOLDER.glob(f"{number}_*.ipynb")
    return found


def package_copy(folder: Path) -> Path:
    """Copy the package to a folder, compiled as it is, next to the demo data. Return the path for PYTHONPATH."""
    shutil.copytree(ROOT / "src", folder / "src")
    (folder / "src" / "rfc3987_syntax.py").write_text("raise ImportError('as in tests/conftest.py')\n")
    (folder / "data").symlink_to(ROOT / "data")
    return folder / "src"


def checked(*pages: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the pages and compare every byte."""
    env = {name: value for name, value in environment().items() if not name.startswith("LC_")} | variables
    command = [sys.executable, "-W", "ignore", "-m", "profilesvc.lab.notebooks", "check", *map(str, pages)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
