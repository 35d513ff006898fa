"""The tools of `make package`, each a program of another project, and environments for what they build."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.repository import ROOT

FOLDER = ROOT / "build" / "package"
_BIN = FOLDER / "venv" / "bin"
EPOCH = "1767225600"  # 2026-01-01


def run(
    *words: str | Path, cwd: Path = ROOT, status: int = 0, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program that has to exit with `status`, without the settings of this machine's service."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PROFILESVC_", "PYTHON"))}
    env = clean | {"SOURCE_DATE_EPOCH": EPOCH, "NO_COLOR": "1", **(variables or {})}
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def tool(name: str) -> Path:
    """Return a program of the group `package`."""
    path = _BIN / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: `make package` installs it where PyPI can be reached")
    return path


def build(source: Path, folder: Path) -> tuple[Path, Path]:
    """Build the sdist of a directory, and the wheel from the sdist. Return both."""
    run(tool("python"), "-m", "build", "--no-isolation", "--outdir", folder, source, cwd=folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def installed(folder: Path, requirement: str) -> Path:
    """Install a requirement into a new environment without pip. Return the environment's Python."""
    python = folder / "bin" / "python"
    run(tool("python"), "-m", "venv", "--without-pip", folder)
    quiet = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt")
    run(tool("python"), "-m", "pip", "--python", python, "install", *quiet, requirement)
    return python
