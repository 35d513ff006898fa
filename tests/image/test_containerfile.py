"""Containerfile, without containers."""

import re
import subprocess
import sys
from pathlib import Path

from support.repository import ROOT

BIN = Path(sys.executable).parent


def checked(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hadolint_accepts_the_containerfile() -> None:
    assert checked(BIN / "hadolint", "Containerfile") == ""


def test_the_image_has_only_the_files_that_the_build_needs() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Containerfile").read_text("utf-8"), re.MULTILINE)
    assert {name for names in copied for name in names.split()} == {line[1:] for line in ignored if line[:1] == "!"}
    assert "*" in ignored
