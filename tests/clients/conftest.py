"""A running service for clients of all kinds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.wire import seeded, serving


@pytest.fixture
def story(sqlite_template: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The address of the service and the user of the story, as environment variables."""
    with serving(seeded(sqlite_template, tmp_path / "service")) as served:
        yield {"BASE_URL": served.server.base_url, "USER_TOKEN": served.user}
