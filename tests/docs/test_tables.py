"""The tables of docs/ that are written from the code: `make reference` writes them."""

import re
from pathlib import Path

import pytest

from profilesvc.settings import PREFIX, load
from support.pages.tables import TABLES, pages, tables_of, with_tables
from support.repository import DOCS, ROOT

PAGE = (DOCS / "settings.md").read_text("utf-8")


@pytest.mark.parametrize(
    "page", [path for path in pages() if tables_of(path.read_text("utf-8"))], ids=lambda path: path.name
)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_tables(text) == text, "run `make reference`"


def test_every_table_is_on_a_page() -> None:
    assert {name for path in pages() for name in tables_of(path.read_text("utf-8"))} == TABLES.keys()


def test_a_change_of_the_code_changes_the_page() -> None:
    text = "<!-- table: settings-tracing -->\nold\n<!-- end -->\n"
    assert "`TRACING__SAMPLE_RATIO` | `1.0` | Share of requests that are traced. (0 to 1)" in with_tables(text)


def test_every_setting_that_can_be_set_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown variable is rejected, so the page names exactly the ones that exist."""
    for name in ("TOKENS__REFRESH_GRACE_SECONDS", "LAB__PATIENCE_SECONDS", "LIMITS__WRONG_SECRETS", "UPGRADE_URL"):
        assert f"| `{name}` |" in PAGE
    monkeypatch.setenv(f"{PREFIX}TOKENS__REFRESH_GRACE_SECONDS", "7")
    assert load(_env_file=None).tokens.refresh_grace_seconds == 7


def test_the_example_for_operators_has_every_setting_with_its_default() -> None:
    """Notebooks, the bundled issuer and private addresses have no place in a deployment."""
    lines = (ROOT / "deploy" / "profilesvc.env").read_text("utf-8").splitlines()
    shown = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?PROFILESVC_", line))
    unset = {line[1:].split("=")[0] for line in lines if line.startswith("#PROFILESVC_")}
    defaults = dict(re.findall(r"^\| `([A-Z_]+)` \| (?:`(.*?)`|not set)", PAGE, re.MULTILINE))
    development = {"IDENTITY__DEV_ISSUER", "WEBHOOKS__ALLOW_PRIVATE"}
    for_operators = {name for name in defaults if not name.startswith("LAB__")} - development
    assert shown.keys() == {PREFIX + name for name in for_operators}
    wrong = {name: shown[name] for name in unset if shown[name].strip('"') != defaults[name.removeprefix(PREFIX)]}
    assert wrong == {}
