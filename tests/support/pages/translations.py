"""The plugin's texts, as the template that translators start from. `python -m support.pages.translations` writes it."""

import re
from pathlib import Path

from support.repository import ROOT

PLUGIN = ROOT / "examples/wordpress-plugin"
TEMPLATE = PLUGIN / "languages/profilesvc.pot"
_CALL = re.compile(
    r"(?:/\* translators: (?P<hint>.*?) \*/\s*(?:[^;]*?))?\b(?:esc_html__|esc_attr__|__)\('(?P<text>(?:[^'\\]|\\.)*)'"
    r", 'profilesvc'\)",
    re.DOTALL,
)
_HEAD = r"""# Template of the plugin's texts. The plugin's licence applies.
msgid ""
msgstr ""
"Project-Id-Version: Business Profile Connector\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"X-Domain: profilesvc\n"
"""


def texts() -> dict[str, tuple[list[str], str]]:
    """Return each text with the files that use it and the hint for translators."""
    found: dict[str, tuple[list[str], str]] = {}
    for file in sorted(PLUGIN.rglob("*.php")):
        for call in _CALL.finditer(file.read_text("utf-8")):
            text = re.sub(r"\\(.)", r"\1", call["text"])
            files, hint = found.setdefault(text, ([], call["hint"] or ""))
            name = file.relative_to(PLUGIN).as_posix()
            if name not in files:
                files.append(name)
            found[text] = (files, hint or call["hint"] or "")
    return found


def calls(file: Path) -> int:
    """Return how many calls of a translating function a file has, by another rule than `texts`."""
    return len(re.findall(r"(?<![\w])(?:esc_html|esc_attr)?__\(|\b_[enx]\(|\b_nx\(", file.read_text("utf-8")))


def template() -> str:
    """Return the template's text."""
    entries = [_HEAD]
    for text, (files, hint) in texts().items():
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        comment = f"#. translators: {hint}\n" if hint else ""
        entries.append(f'{comment}#: {" ".join(files)}\nmsgid "{quoted}"\nmsgstr ""\n')
    return "\n".join(entries)


if __name__ == "__main__":
    TEMPLATE.write_text(template(), "utf-8")
