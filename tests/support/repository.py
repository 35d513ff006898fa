"""The files of this repository and the sections of its pages, for the tests that read them as text."""

import functools
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_TEXT_FILES = {".py", ".md", ".html", ".js", ".toml", ".json", ".conf", ".service", ".env", ".ipynb", ".mako", ""}


def git(*words: str) -> str:
    """Run git in the repository and return its output, or nothing where there is no repository."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


@functools.cache
def text_files() -> dict[str, str]:
    """Return the tracked text files by path; outside a git checkout, those of the folders that hold them."""
    names = [name for name in git("ls-files", "-z").split("\0") if name]
    if not names:
        folders = ("src", "tests", "docs", "benchmarks", "deploy", "notebooks", "data")
        found = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
        names = [str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts]
    paths = {name: ROOT / name for name in names}
    return {
        name: path.read_text("utf-8") for name, path in paths.items() if path.suffix in _TEXT_FILES and path.is_file()
    }


def without_code(markdown: str) -> str:
    """Blank out fenced code, so that line numbers stay the same."""
    return _FENCED.sub(lambda found: "\n" * found[0].count("\n"), markdown)


def anchors(page: Path) -> set[str]:
    """Return the fragments that links to a page can use, by GitHub's rule for headings."""
    text = without_code(page.read_text("utf-8"))
    slugs = {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in _HEADING.findall(text)}
    return slugs | set(_ANCHOR.findall(text))


def sections(page: Path) -> dict[str, str]:
    """Return the text below each heading, up to the next heading of any level, by anchor."""
    parts = re.split(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {title.strip().lower().replace(" ", "-"): text for title, text in zip(parts[::2], parts[1::2], strict=True)}
