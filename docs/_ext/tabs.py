"""Tabs from plain Markdown: bold names and blocks between `<!-- tabs -->` and `<!-- /tabs -->` become a tab set."""

import re

from sphinx.application import Sphinx

_TABS = re.compile(r"^<!-- tabs -->\n(.*?)^<!-- /tabs -->$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^\*\*(.+?)\*\*$", re.MULTILINE)


def _tab_set(found: re.Match[str]) -> str:
    _, *parts = _NAME.split(found[1])
    tabs = (
        f":::{{tab-item}} {name}\n:sync: {name}\n\n{text.strip()}\n:::\n"
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    )
    return "::::{tab-set}\n:sync-group: language\n\n" + "\n".join(tabs) + "::::"


def _replace(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = _TABS.sub(_tab_set, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the tabs before a page is parsed."""
    app.connect("source-read", _replace)
    return {"parallel_read_safe": True}
