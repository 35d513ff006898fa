"""A change of the contract turns at least one notebook red. The pages run against a changed copy of the package."""

from pathlib import Path

import pytest

from support.other_python import checked, package_copy, page_of
from support.pages.contract_changes import CHANGES, Change
from support.repository import ROOT

PACKAGE = ROOT / "src" / "profilesvc"
SAMPLE = {"sync needs only read", "refresh grace of 60 s"}  # the others run in `make fuzz`


def _cases() -> list[object]:
    return [
        pytest.param(change, id=change.name, marks=() if change.name in SAMPLE else pytest.mark.long)
        for change in CHANGES
    ]


def test_there_are_fifty_changes() -> None:
    assert len({change.name for change in CHANGES}) == len(CHANGES) >= 50
    assert {change.name for change in CHANGES} >= SAMPLE


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_applies_to_the_source(change: Change) -> None:
    assert (PACKAGE / change.file).read_text("utf-8").count(change.old) == 1, f"{change.file} has changed"
    assert page_of(change.page).exists()


@pytest.mark.thorough
def test_an_unchanged_copy_is_green(tmp_path: Path) -> None:
    done = checked(page_of("00"), PYTHONPATH=str(package_copy(tmp_path)))
    assert done.stdout == "00_start_here.ipynb: ok\n", done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("change", _cases())
def test_a_page_notices_each_change(change: Change, tmp_path: Path) -> None:
    copy = package_copy(tmp_path)
    file = copy / "profilesvc" / change.file
    file.write_text(file.read_text("utf-8").replace(change.old, change.new), "utf-8")
    done = checked(page_of(change.page), PYTHONPATH=str(copy))
    assert done.stdout.endswith(": failed\n"), f"page {change.page} has not noticed: {change.name}"
    assert "ImportError" not in done.stderr
    assert "SyntaxError" not in done.stderr
