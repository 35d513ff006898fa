"""OAuth libraries of Node.js against a running server, with nothing in their calls that knows of this service."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients.generators import PATH, STORIES, node
from support.clients.oauth_service import Issuer, issuing

pytestmark = pytest.mark.clients


@pytest.fixture
def issuer(sqlite_template: Path, tmp_path: Path) -> Iterator[Issuer]:
    with issuing(sqlite_template, tmp_path / "service") as running:
        yield running


class Steps:
    """A program that waits for a line before each of its steps, and writes one after it."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def next(self, now: int) -> None:
        """One step, by a clock that shows `now`."""
        self._process.stdin.write(f"{now}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        assert said == "done\n", said + self._process.stdout.read()


@pytest.mark.parametrize("library", ["simple-oauth2", "openid-client"])
def test_renews_100_days_later(library: str, issuer: Issuer, tmp_path: Path) -> None:
    """The access token ended after 90 days. A refresh token, which lasts 30, would be dead: there is none."""
    (tmp_path / "node_modules").symlink_to(node(library).parent)
    story = tmp_path / f"{library}.mjs"
    story.write_text((STORIES / story.name).read_text("utf-8"))
    with issuer.service() as service:
        settings = {"BASE_URL": service.url, "CLIENT_ID": service.client_id, "CLIENT_SECRET": service.client_secret}
        with subprocess.Popen(
            ["node", story],
            env={"PATH": PATH, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                steps = Steps(process)
                steps.next(issuer.clock.now())
                steps.next(issuer.clock.advance(days=100))
            finally:
                process.kill()
