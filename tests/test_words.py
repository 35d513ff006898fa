"""One word, one meaning: the table "Words" of docs/architecture.md, compared with the names in the source."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import profilesvc

ROOT = Path(profilesvc.__file__).parent
TABLE = Path(__file__).parents[1] / "docs" / "architecture.md"
MIGRATIONS = "storage/migrations/versions/"  # their names are stored in databases
BOUNDARY = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
PARTICIPLES = {"found", "shown", "sent", "kept"}
OF_THE_CLIENT = ("client/errors.py", "client/sending.py")  # the public attribute `sent` of its errors
OF = re.compile(r"_?of(_|$)")
NOT_YET = "storage/tables/"
OF_ASYNCIO = {"connection_made", "connection_lost"}  # methods of asyncio.Protocol


@cache
def table() -> dict[str, tuple[str, ...]]:
    """Return the paths of each word below the heading "Words"."""
    section = TABLE.read_text("utf-8").partition("\n## Words\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {
        word: tuple(re.findall(r"`([^`]+)`", where))
        for words, _meaning, where in rows
        for word in re.findall(r"`([^`]+)`", words)
    }


@cache
def modules() -> dict[str, ast.Module]:
    """Return the source of each module by its path below the package."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    return {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items() if not name.startswith(MIGRATIONS)}


def names(path: str, tree: ast.Module) -> Iterator[str]:
    """Return the name of a module or package, and of its classes and functions, inside of others too."""
    parts = Path(path).with_suffix("").parts
    yield parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
    yield from (node.name for node in ast.walk(tree) if isinstance(node, DEFINITIONS))


def words(name: str) -> set[str]:
    """Return the words of a name: `api`, `key` and `row` of `APIKeyRow`."""
    return {word.lower() for word in BOUNDARY.split(name) if word}


@cache
def places() -> dict[str, list[tuple[str, str]]]:
    """Return the path and the name of each place with a word, by word."""
    index = defaultdict[str, list[tuple[str, str]]](list)
    for path, tree in modules().items():
        for name in names(path, tree):
            for word in words(name):
                index[word].append((path, name))
    return index


def elsewhere(word: str) -> list[str]:
    """Return the names with a word that are not in the packages of its row."""
    found = [each for each in places()[word] if not each[0].startswith(table()[word])]
    return [f"{path}: {name}" for path, name in found if name not in OF_ASYNCIO]


def test_a_name_has_words() -> None:
    assert words("_APIKeyRow2") == {"api", "key", "row2"}
    tree = ast.parse("class Reader:\n    async def take_lease(self): ...")
    assert list(names("database/__init__.py", tree)) == ["database", "Reader", "take_lease"]


@pytest.mark.parametrize("word", sorted(table()))
def test_a_word_has_one_meaning(word: str) -> None:
    assert elsewhere(word) == []


@pytest.mark.parametrize("word", sorted(table()))
def test_each_package_of_a_row_exists(word: str) -> None:
    assert [path for path in table()[word] if not (ROOT / path).exists()] == []


def test_a_function_is_named_by_a_noun_or_a_verb() -> None:
    """Only a class method may be `of`, such as `Window.of("30/minute")`."""
    functions = [
        (path, node)
        for path, tree in modules().items()
        if not path.startswith(NOT_YET)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [
        f"{path}: {node.name}"
        for path, node in functions
        if OF.match(node.name) and not (node.name == "of" and any(map(is_class_method, node.decorator_list)))
    ] == []


def is_class_method(decorator: ast.expr) -> bool:
    """Return whether a decorator is `classmethod`."""
    return isinstance(decorator, ast.Name) and decorator.id == "classmethod"


def test_a_value_has_a_noun_for_its_name() -> None:
    """Such as `rows`, `matches` or `page`. A participle says what happened to a value, but not what it is."""
    assert [
        f"{path}: {name}"
        for path, tree in modules().items()
        if not path.startswith(OF_THE_CLIENT)
        for node in ast.walk(tree)
        for name in declared(node)
        if name.strip("_").lower() in PARTICIPLES
    ] == []


def declared(node: ast.AST) -> Iterator[str]:
    """Return the name that a node gives to a value, a parameter, a class or a function."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, DEFINITIONS):
        yield node.name
