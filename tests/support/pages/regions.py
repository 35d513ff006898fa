"""Copies the code that pages show from its files, as support/pages/blocks.py describes. `make reference` runs it."""

import re

from support.pages.blocks import excerpt
from support.repository import DOCS

_BLOCK = re.compile(r"(?<=^<!-- file: )(\S+)( -->\n```\w+\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def refreshed(page: str) -> str:
    """Return a page with the current code in its blocks."""
    return _BLOCK.sub(lambda found: found[1] + found[2] + excerpt(found[1]), page)


if __name__ == "__main__":
    for path in DOCS.glob("*.md"):
        text = path.read_text("utf-8")
        if refreshed(text) != text:
            path.write_text(refreshed(text), "utf-8")
