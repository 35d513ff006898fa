"""Every row of docs/bad-input.md has a test that carries the row's number in its name.

`test_A041_…` is a test of row A041, `test_A004_A005_…` of both, `test_A058_to_A081_…` of all from one to the other.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repository import DOCS, anchors

ROWS = {anchor.upper() for anchor in anchors(DOCS / "bad-input.md") if re.fullmatch(r"a\d{3}", anchor)}
TESTS = Path(__file__).parent
NUMBERED = re.compile(r"test_((?:A\d{3}_(?:to_(?=A))?)+)")
RANGE = re.compile(r"A(\d{3})(?:_to_A(\d{3}))?")


def rows_of(name: str) -> set[str]:
    """The rows that a test's name claims."""
    numbered = NUMBERED.match(name)
    pairs = RANGE.findall(numbered[1]) if numbered else []
    return {f"A{number:03}" for first, last in pairs for number in range(int(first), int(last or first) + 1)}


def names() -> Iterator[str]:
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name


def test_rows_are_read_from_a_name() -> None:
    assert rows_of("test_A041_grandparent") == {"A041"}
    assert rows_of("test_A004_A005_A009_alike") == {"A004", "A005", "A009"}
    assert rows_of("test_A083_to_A085_A089_not_JSON") == {"A083", "A084", "A085", "A089"}
    assert rows_of("test_answers_like_A041") == set()


@pytest.mark.slow
def test_every_row_is_a_test() -> None:
    covered = {row for name in names() for row in rows_of(name)}
    assert covered == ROWS


def test_rows_are_described() -> None:
    assert {f"A{number:03}" for number in range(1, 173)} <= ROWS
