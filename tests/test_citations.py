"""Every citation can be followed: numbers of decisions and rows, and sections of docs/. Public text has none."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from profilesvc.cli import app
from support.command_line import run_command
from support.repository import DOCS, ROOT, anchors, text_files, without_code

NUMBER = re.compile(r"(?<![\w-])(D-\d{1,3}[a-z]?|A\d{3})(?![\w-])")
NOQA = re.compile(r"noqa: [A-Z0-9, ]+")
SECTION = re.compile(r"\bdocs/([\w-]+\.md)#([\w-]+)")
LINK = re.compile(r"\]\(([^)\s#]*)#([\w-]+)\)")
LINKED = re.compile(r"\[(D-\d{1,3}[a-z]?)\]\(([^)\s]*)\)")
# Pages of the project that are not in the repository, by the names that citations gave them.
ABSENT = re.compile(
    r"\bAPI document\b|\bconventions? \d|\b(?:interface|recipes|world|conformance)\.md\b|\((?:T\d+\w?(?:, )?)+\)"
    r"|performance ladder|\bformat §|\.\./(?:design|spec|shared)/"
)
THIS = "tests/test_citations.py"  # its examples and patterns are not citations


def public_notebook_text(document: Any) -> Iterator[str]:
    """The strings of a notebook except its images, whose base64 can look like anything."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, list):
        for item in document:
            yield from public_notebook_text(item)
    elif isinstance(document, dict):
        for name, item in document.items():
            if not name.startswith("image/"):
                yield from public_notebook_text(item)


def cited(text: str) -> set[str]:
    return set(NUMBER.findall(NOQA.sub("", text)))


def commands() -> Iterator[list[str]]:
    """The words of every command and group of commands."""

    def walk(command: Any, words: list[str]) -> Iterator[list[str]]:
        yield words
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, [*words, name])

    yield from walk(typer.main.get_command(app), [])


def messages(source: str) -> Iterator[str]:
    """The strings of a module that are not documentation: what the program writes."""
    tree = ast.parse(source)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_a_number_is_found_in_text_and_not_in_other_words() -> None:
    assert cited("as D-40 and (D-04a) say, A095") == {"D-40", "D-04a", "A095"}
    assert cited("x = 1  # noqa: A001  ID-40, A0951, sha-A123-") == set()


def test_every_cited_decision_is_a_heading_and_every_cited_row_exists() -> None:
    known = {name.upper() for name in anchors(DOCS / "decisions.md") | anchors(DOCS / "bad-input.md")}
    unknown = {
        f"{name}: {number}"
        for name, text in text_files().items()
        if name != THIS and not name.endswith(".ipynb")
        for number in cited(text)
        if number.upper() not in known
    }
    assert unknown == set()


@pytest.mark.slow
def test_every_named_section_exists() -> None:
    missing = []
    for name, text in text_files().items():
        found = [(DOCS / page, anchor) for page, anchor in SECTION.findall(text)]
        if name.endswith(".md"):
            here = ROOT / name
            links = [
                (here.parent / page if page else here, anchor) for page, anchor in LINK.findall(without_code(text))
            ]
            found += [(page, anchor) for page, anchor in links if page.suffix == ".md"]
        missing += [f"{name}: {page.name}#{anchor}" for page, anchor in found if not _has(page, anchor)]
    assert missing == []


def _has(page: Path, anchor: str) -> bool:
    return page.is_file() and anchor in anchors(page)


def test_in_markdown_a_decision_is_cited_by_a_link() -> None:
    wrong = []
    for name, text in text_files().items():
        if not name.endswith(".md") or name in {"docs/decisions.md", "docs/bad-input.md"}:
            continue
        prose = without_code(text)
        for number, target in LINKED.findall(prose):
            if not target.endswith(f"decisions.md#{number.lower()}"):
                wrong.append(f"{name}: {number} links to {target}")
        wrong += [f"{name}: {number} is no link" for number in cited(LINKED.sub("", prose))]
    assert wrong == []


@pytest.mark.slow
def test_no_page_outside_the_repository_is_cited() -> None:
    found = [
        f"{name}: {match[0]}" for name, text in text_files().items() if name != THIS for match in ABSENT.finditer(text)
    ]
    assert found == []


def test_the_openapi_document_has_no_citation() -> None:
    assert cited((ROOT / "openapi.json").read_text("utf-8")) == set()


@pytest.mark.slow
def test_no_help_text_has_a_citation() -> None:
    every = list(commands())
    assert len(every) > 30
    for words in every:
        shown = run_command(*words, "--help")
        assert shown.exit_code == 0, words
        assert cited(shown.stdout) == set(), words


@pytest.mark.slow
def test_no_message_has_a_citation() -> None:
    found = [
        f"{name}: {message}"
        for name, text in text_files().items()
        if name.startswith("src/") and name.endswith(".py")
        for message in messages(text)
        if cited(message)
    ]
    assert found == []


def test_a_string_is_a_message_and_a_docstring_is_not() -> None:
    source = 'def f():\n    """D-01."""\n    raise ValueError(f"D-02 {x}")\n'
    assert list(messages(source)) == ["D-02 "]


@pytest.mark.parametrize("suffix", [".html", ".js"])
def test_no_page_of_the_service_has_a_citation(suffix: str) -> None:
    pages = {name: text for name, text in text_files().items() if name.startswith("src/") and name.endswith(suffix)}
    assert pages
    assert {name: cited(text) for name, text in pages.items() if cited(text)} == {}


def test_no_notebook_has_a_citation() -> None:
    notebooks = {name: text for name, text in text_files().items() if name.endswith(".ipynb")}
    assert notebooks
    found = {name: cited("\n".join(public_notebook_text(json.loads(text)))) for name, text in notebooks.items()}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}
