"""A deployment in processes of its own, and `make smoke` against it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profilesvc.client import ProfileClient
from profilesvc.domain import meaning, profiles
from support.api import ALICE
from support.program import Server, command, environment, serving
from support.waiting import patience, until

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LOCATION = "locations/111"
OPEN = 'from profilesvc.lab import open_lab\nlab = open_lab()\nalice = lab.client.user("alice")'
KEY = 'key = alice.create_key(name="Smoke", business_id=lab.business_id, assigned_location_id=lab.location)'
POST = 'post = alice.create_post(lab.location, {"summary": "Smoke"})'
SYNC = 'alice.sync(lab.location, {"websiteUri": "https://smoke.example", "phoneNumbers": {"primaryPhone": "+81 312"}})'


@dataclass(frozen=True)
class Deployment:
    """A served demo with its default limits and the provider's ten edits a minute, and its `provider`."""

    folder: Path
    service: Server
    token: str

    def settings(self, *, write: bool = False, **more: str) -> dict[str, str]:
        """The lab's settings for a run."""
        lab = {"LAB__TARGET": self.service.url, "LAB__USER_TOKEN": self.token, "LAB__LOCATION": "111"}
        return {**lab, "LAB__WRITE": "1" if write else "0", "LAB__PATIENCE_SECONDS": "90", **more}

    def smoke(self, *pages: Path, write: bool = False, **settings: str) -> "subprocess.Popen[str]":
        """A run that has started, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "profilesvc.lab.notebooks", "smoke", *map(str, pages)],
            cwd=self.folder,
            env=environment(**self.settings(write=write, **settings)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def smoked(self, *pages: Path, write: bool = False, **settings: str) -> tuple[int, list[str], str]:
        """A run to its end: exit code, lines, stderr."""
        return ended(self.smoke(*pages, write=write, **settings))

    def state(self) -> dict[str, Any]:
        """The owner's data: live keys, posts, the profile by its meaning and its differences, the switch.

        The provider of the demo stores an update in its own spelling.
        """
        with ProfileClient.user(self.service.url, self.token) as alice:
            compared = alice.compare(LOCATION).model_dump(exclude={"lastSync"})
            provider = compared["provider"]
            region = meaning.region_of(provider)
            return {
                "keys": [key.client_id for key in alice.list_keys().credentials],
                "posts": [post.name for post in alice.iter_posts(LOCATION)],
                "sync": [entry.syncEnabled for entry in alice.iter_locations()],
                **compared,
                "provider": {path: meaning.form(path, value, region) for path, value in profiles.leaves(provider)},
            }

    @property
    def journals(self) -> list[Path]:
        """The changes that runs have not undone yet."""
        return list(self.folder.glob("var/smoke/*.jsonl"))


@contextlib.contextmanager
def deployed(folder: Path, **settings: str) -> Iterator[Deployment]:
    """A deployment for the block."""
    with serving(folder, "demo", "--port", "0", **{"PROVIDER__EDITS_PER_MINUTE": "10", **settings}) as service:
        service.introduction()
        minted = command(folder, "users", "token", ALICE)
        yield Deployment(folder, service, minted.stdout.strip())


def ended(run: "subprocess.Popen[str]") -> tuple[int, list[str], str]:
    """The end of a run: exit code, lines, stderr."""
    out, err = run.communicate(timeout=patience(600))
    return run.returncode, out.splitlines(), err


def page(folder: Path, name: str, *sources: str) -> Path:
    """A notebook of these code cells."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"x{n}", "metadata": {}, "source": source, "execution_count": None, "outputs": []}
        for n, source in enumerate(sources)
    ]
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


class Gate:
    """A cell that waits until the test lets it go on."""

    def __init__(self, folder: Path) -> None:
        self._reached, self._open = folder / "reached", folder / "open"

    @property
    def cell(self) -> str:
        """The source of the cell."""
        return (
            f"import pathlib, time\npathlib.Path({str(self._reached)!r}).touch()\n"
            f"while not pathlib.Path({str(self._open)!r}).exists():\n    time.sleep(0.1)"
        )

    def wait(self, run: "subprocess.Popen[str]") -> None:
        """Wait until the page is there."""

        def is_reached() -> bool:
            assert run.poll() is None, run.communicate()
            return self._reached.exists()

        until(is_reached, "the page", 100, every=0.1)

    def open(self) -> None:
        """Let the page go on."""
        self._open.touch()


def stop(run: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send a signal to a run."""
    os.kill(run.pid, number)
