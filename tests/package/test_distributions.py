"""The sdist and the wheel: complete, reproducible, and in the form that an index accepts."""

import os
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from package.conftest import Distributions
from package.tools import build, run, tool
from support.repository import ROOT, git

pytestmark = pytest.mark.package


@pytest.fixture(scope="module")
def unpacked(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(distributions.sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def test_the_metadata_is_valid() -> None:
    run(tool("validate-pyproject"), "pyproject.toml")


def test_an_index_accepts_the_files(distributions: Distributions) -> None:
    run(tool("twine"), "check", "--strict", *distributions)


def test_the_wheel_has_no_stray_files(distributions: Distributions) -> None:
    run(tool("check-wheel-contents"), distributions.wheel)


@pytest.mark.skipif(git("ls-files") == "", reason="needs a git checkout")
def test_the_sdist_has_every_file_of_the_repository(unpacked: Path) -> None:
    found = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert found == {*git("ls-files").split(), "PKG-INFO"}


def test_the_sdist_builds_the_same_bytes(distributions: Distributions, unpacked: Path, tmp_path: Path) -> None:
    """In another directory, with other times and modes of the files."""
    elsewhere = shutil.copytree(unpacked, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("PKG-INFO"))
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
        if path.suffix == ".py":
            path.chmod(0o600)
    (tmp_path / "dist").mkdir()
    again = build(elsewhere, tmp_path / "dist")
    assert [path.name for path in again] == [path.name for path in distributions]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in distributions]


def test_the_sdist_tests_itself(unpacked: Path, tmp_path: Path) -> None:
    where = "import profilesvc; print(profilesvc.__file__)"
    paths = {"PYTHONPATH": str(unpacked / "src")}
    assert run(sys.executable, "-c", where, cwd=tmp_path, variables=paths).stdout.startswith(str(unpacked))
    some = ("tests/test_layers.py", "tests/unit/test_handlers.py", "tests/unit/test_docs_contract.py")
    printed = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some, cwd=unpacked, variables=paths
    ).stdout
    assert " passed" in printed
    assert "skipped" not in printed
    for name in ("notebooks", "data", "docs", "deploy", "examples"):
        assert any((ROOT / name).iterdir())
        assert any((unpacked / name).iterdir())
