"""Every file of the repository was written here: what others wrote comes from packages."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# By `make openapi`, and compared with the code by a test.
GENERATED = {"openapi.json", "src/profilesvc/api/openapi/examples.json"}
LARGEST = 150_000
LONGEST_LINE = 5_000
THIRD_PARTY = re.compile(
    r"\.min\.|bundle|vendor|node_modules|\.map\Z|package-lock|(?<!\A)(LICEN[CS]E|NOTICE|COPYING)", re.IGNORECASE
)
SCRIPTS = {".js", ".mjs", ".css", ".ts", ".php", ".html"}


@pytest.fixture(scope="module")
def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    if not names:
        pytest.skip("this is no checkout of git")
    return names


def test_no_name_is_that_of_third_party_code(files: list[str]) -> None:
    assert [name for name in files if THIRD_PARTY.search(name)] == []


def test_no_file_is_as_large_as_a_library(files: list[str]) -> None:
    large = {name for name in files if (ROOT / name).stat().st_size > LARGEST and not name.endswith(".ipynb")}
    assert large - GENERATED == set()


def test_no_script_is_minified_or_carries_the_licence_of_others(files: list[str]) -> None:
    for name in files:
        if Path(name).suffix in SCRIPTS:
            text = (ROOT / name).read_text("utf-8")
            assert max(map(len, text.splitlines()), default=0) < LONGEST_LINE, name
            assert not re.search(r"@license|copyright", text, re.IGNORECASE), name


def test_there_is_no_list_of_packages_with_addresses(files: list[str]) -> None:
    """A lock file of npm, pip or uv names the registry of who made it."""
    for name in files:
        if Path(name).suffix in {".txt", ".toml", ".lock", ".yaml", ".yml"}:
            text = (ROOT / name).read_text("utf-8")
            assert not re.search(r"https?://\S+\.(tgz|whl|tar\.gz)|--(extra-)?index-url", text), name
