"""What the project distributes, built once, and one environment for each way to install it."""

from pathlib import Path
from typing import NamedTuple

import pytest

from package.tools import build, installed, tool
from support.repository import ROOT


class Distributions(NamedTuple):
    """The files that an index would get."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The sdist of this checkout, and the wheel that was built from it."""
    tool("python")
    return Distributions(*build(ROOT, tmp_path_factory.mktemp("dist")))


@pytest.fixture(scope="session")
def client_python(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the client only."""
    return installed(tmp_path_factory.mktemp("client"), str(distributions.wheel))


@pytest.fixture(scope="session")
def server_python(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the server."""
    return installed(tmp_path_factory.mktemp("server"), f"{distributions.wheel}[server]")
