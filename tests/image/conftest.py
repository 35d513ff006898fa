"""The image, which is built once for all tests."""

from collections.abc import Iterator

import pytest

from image.containers import Podman
from support.network.ports import free_ports
from support.pages.blocks import proven_by


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    build, _ = proven_by("docs/deploy.md", "test_the_image_is_built_as_the_page_says")
    with Podman(tmp_path_factory.mktemp("containers")) as podman:
        podman.prepare()
        podman.shell(build.text)
        yield podman


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]
