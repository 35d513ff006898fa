"""Every block of the pages is executed by a test or is part of a file (support/pages/blocks.py)."""

import contextlib
import re
from pathlib import Path

import pytest

from support.core_page import code
from support.pages.blocks import Block, blocks, excerpt, file_of, is_shown, pages, same_json, same_text
from support.pages.runner import LANGUAGES, Folder, program_of
from support.repository import DOCS

PROVEN = [name for name in pages() if list(blocks(name))]
RUN = [name for name in PROVEN if any(block.proof in ("run", "serve") for block in blocks(name))]


@pytest.mark.parametrize("page", PROVEN)
def test_every_block_has_a_proof(page: str) -> None:
    assert [str(block) for block in blocks(page) if not block.proof] == []
    for block in blocks(page):
        if block.proof == "file":
            assert block.text == excerpt(block.argument), block
        if block.proof == "code":
            assert block.text in code(), block
        if block.proof == "test":
            source, name = file_of(block.argument).read_text("utf-8"), block.argument.partition("::")[2]
            assert f"def {name}(" in source, block
            assert "proven_by(" in source, f"{block}: the test does not read the page"


def test_each_part_of_the_plugin_names_its_file() -> None:
    above = (DOCS / "plugin-authors.md").read_text("utf-8").split("\n")
    for block in blocks("docs/plugin-authors.md"):
        if block.proof == "file":
            assert f"](../{block.argument.partition('#')[0]})" in above[block.line - 4], block


def wrong(block: Block, printed: str, of: Block) -> str:
    return f"{block} is not what {of} prints:\n{printed}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page == "README.md" else pytest.mark.thorough) for page in RUN],
)
def test_the_blocks_of_a_page_work_in_its_order(page: str, tmp_path: Path) -> None:
    found = [block for block in blocks(page) if block.proof in ("run", "serve", "output")]
    folder, printed = Folder(tmp_path), {}
    with contextlib.ExitStack() as servers:
        serves = any(block.proof == "serve" for block in found)
        if not serves and any("CLIENT_ID" in block.text for block in found):  # it goes on after the README
            (started, *_) = blocks("README.md")
            servers.enter_context(folder.serving(started))
        for block in found:
            if block.proof == "serve":
                printed[block] = "".join(servers.enter_context(folder.serving(block)))
        for language in LANGUAGES:
            ours = [block for block in found if block.proof == "run" and block.language == language]
            if ours and program_of(language):
                folder.reset_provider()  # each language finds the profile as the first one did
                printed |= zip(ours, folder.run(ours), strict=True)
    last: dict[str, Block] = {}
    for block in found:
        if block.proof != "output":
            last[block.language] = block
            continue
        assert last, f"{block} is the output of nothing"
        of = [each for each in last.values() if each in printed]
        assert [wrong(block, printed[each], each) for each in of if not is_shown(block, printed[each])] == []
        last.clear()
    if missing := {block.language for block in found if block.proof == "run" and block not in printed}:
        pytest.skip(f"the blocks in {', '.join(missing)} did not run: this machine has no {', '.join(missing)}")


def test_an_output_is_compared() -> None:
    assert same_text("a …\n…\nlast 2026-01-02T03:04:05Z", "a b\nc\nd\nlast 2027-01-02T03:04:05.123Z")
    assert not same_text("a …\nlast", "a b\nc\nlast")
    assert same_json({"id": "x_…", "n": [1]}, {"id": "x_9", "n": [1]})
    assert not same_json({"n": 1}, {"n": True})
    assert not same_json({"n": 1}, {"n": 1, "m": 2})


def test_a_block_is_found_with_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a\n\n<!-- run -->\n```sh\nls\n```\n\n   ```json\n   {}\n   ```\n"
    monkeypatch.setattr("support.pages.blocks.text_files", lambda: {"x.md": text})
    first, second = blocks("x.md")
    assert (first.line, first.language, first.proof, first.text) == (4, "sh", "run", "ls\n")
    assert (second.proof, second.text) == ("", "{}\n")


def test_the_links_between_pages_lead_to_files() -> None:
    missing = []
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text("utf-8")):
            missing += [] if (page.parent / target).exists() else [f"{page.name}: {target}"]
    assert missing == []
