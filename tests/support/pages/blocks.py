"""The fenced blocks of README, docs/, examples/ and clients/, and what proves each of them.

The line before a block is a comment that names its proof:

- `<!-- run -->`: tests/docs/test_pages.py runs it, after the blocks above it on the page. `<!-- serve -->`: the same,
  but the command serves until the end of the page.
- `<!-- output -->`: compared with the output of the block above, which can be one per language.
- `<!-- file: PATH -->` or `<!-- file: PATH#NAME -->`: equal to a file, or to its lines between `[NAME]` and `[/NAME]`.
- `<!-- test: PATH::NAME -->`: the named test reads the block and proves it.
- `<!-- code -->`: written from the code, by `core_page.py`.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.repository import ROOT, text_files

_BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"^ *<!-- (run|serve|output|file|test|code)(?:: (\S+))? -->\n\Z", re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it starts, its language, what proves it and the argument of that, and its text."""

    page: str
    line: int
    language: str
    proof: str
    argument: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> Iterator[Block]:
    """Return the blocks of a page, except diagrams."""
    whole = text_files()[page]
    for found in _BLOCK.finditer(whole):
        language = found["info"].strip()
        if language in {"mermaid", "{eval-rst}"}:
            continue
        mark = _MARK.search(whole[: found.start()])
        proof, argument = mark.groups(default="") if mark else ("", "")
        text = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        yield Block(page, whole.count("\n", 0, found.start()) + 1, language, proof, argument, text)


def pages() -> list[str]:
    """Return the pages whose blocks need a proof."""
    places = ("README", "SECURITY", "CHANGELOG", "CONTRIBUTING", "docs/", "examples/", "clients/")
    return [name for name in text_files() if name.endswith(".md") and name.startswith(places)]


def proven_by(page: str, test: str) -> list[Block]:
    """Return the blocks of a page that a test proves, for that test."""
    found = [block for block in blocks(page) if block.proof == "test" and block.argument.endswith(f"::{test}")]
    assert found, f"{page} has no block for {test}"
    return found


def excerpt(argument: str) -> str:
    """Return the text that a `file` block shows."""
    path, _, name = argument.partition("#")
    text = (ROOT / path).read_text("utf-8")
    if not name:
        return text
    start, end = (rf"^[^\n]*\[{mark}{re.escape(name)}\][^\n]*" for mark in ("", "/"))
    inside = re.search(rf"{start}\n(.+?){end}$", text, re.MULTILINE | re.DOTALL)
    assert inside, f"{path} has no lines between [{name}] and [/{name}]"
    return textwrap.dedent(inside[1])


def same_text(shown: str, printed: str) -> bool:
    """Return whether an output is as shown. Times are not compared; `…` is any text, and as a whole line any lines."""
    lines = _TIME.sub("…", shown.strip()).split("\n")
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines)
    return bool(re.fullmatch(pattern, _TIME.sub("…", printed.strip()) + "\n"))


def same_json(shown: Any, printed: Any) -> bool:
    """Return whether a JSON value is as shown. `…` in a string is any text, and times are not compared."""
    if isinstance(shown, dict) and isinstance(printed, dict):
        return shown.keys() == printed.keys() and all(same_json(shown[name], printed[name]) for name in shown)
    if isinstance(shown, list) and isinstance(printed, list):
        return len(shown) == len(printed) and all(map(same_json, shown, printed))
    if isinstance(shown, str) and isinstance(printed, str):
        return same_text(shown, printed)
    return bool(shown == printed) and type(shown) is type(printed)


def is_shown(block: Block, printed: str) -> bool:
    """Return whether an output is the one that a block shows."""
    if block.language != "json":
        return same_text(block.text, printed)
    try:
        return same_json(json.loads(block.text), json.loads(printed))
    except ValueError:
        return False


def file_of(argument: str) -> Path:
    """Return the file of a `file` or `test` argument."""
    return ROOT / re.split("#|::", argument)[0]
