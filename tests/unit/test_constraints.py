"""constraints.txt has versions for every Python that the service supports, not only for the one that runs the tests."""

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OLDEST = PROJECT["requires-python"].removeprefix(">=") + ".0"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> set[str]:
    return {canonical(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text("utf-8").split()}


def test_every_version_accepts_the_oldest_python() -> None:
    """Debian 12 has 3.11.2, on which pip would otherwise find no version after some minutes."""
    names = pinned()
    found = {
        each.name: each.metadata["Requires-Python"]
        for each in distributions()
        if canonical(each.name) in names and "Requires-Python" in each.metadata
    }
    assert found
    assert [name for name, wanted in found.items() if OLDEST not in SpecifierSet(wanted)] == []


def test_packages_for_the_oldest_python_have_a_version() -> None:
    names, oldest = pinned(), {"python_version": OLDEST[:-2], "python_full_version": OLDEST, "extra": ""}
    needed = {
        canonical(requirement.name)
        for each in distributions()
        if canonical(each.name) in names
        for requirement in map(Requirement, each.requires or [])
        if requirement.marker is not None
        and requirement.marker.evaluate(oldest)
        and not requirement.marker.evaluate({"extra": ""})
    }
    assert needed - names == set()
