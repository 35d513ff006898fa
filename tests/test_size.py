"""The budgets of docs/architecture.md: functions of at most 40 lines, files of at most 400."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import profilesvc

ROOT = Path(profilesvc.__file__).parent
FUNCTION_LINES, FILE_LINES = 40, 400


def sources() -> Iterator[tuple[str, str]]:
    """Return each file's path and text, apart from migrations, which stay as they were released."""
    for path in sorted(ROOT.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def longer_than(lines: int, text: str) -> Iterator[str]:
    """Return the names of the functions of a file that have more lines."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield from (node.name for node in functions if (node.end_lineno or 0) - node.lineno >= lines)


@pytest.mark.slow
def test_functions_fit_on_a_screen() -> None:
    found = [f"{name} {function}" for name, text in sources() for function in longer_than(FUNCTION_LINES, text)]
    assert found == []


def test_files_have_one_purpose() -> None:
    assert [name for name, text in sources() if text.count("\n") > FILE_LINES] == []


def test_the_check_counts_lines() -> None:
    assert list(longer_than(2, "def short():\n    pass\n\n\ndef long():\n    a = 1\n    return a\n")) == ["long"]
