"""`profilesvc lab` on a fresh clone: what a person sees before running anything, and what is left after a save."""

import json
import os
from typing import Any

import pytest

from support.browser.jupyter import NOTEBOOKS, PICTURES, Clone, run_all

PAGE = "03_connection.ipynb"
THEMES = ("Light", "Dark")
# A look takes 17 s, so CI takes four pages.
LOOKS = [(name, THEMES[index % 2]) for index, name in enumerate(NOTEBOOKS[::4])]
if "CI" not in os.environ:
    LOOKS = [(name, theme) for name in NOTEBOOKS for theme in THEMES]
# What a reader must not see: markup as text, pictures as what Python calls them, words that break in a line, and
# texts of a chart that cover each other or leave it.
_UGLY = r"""() => {
  const found = [];
  for (const area of document.querySelectorAll('.jp-OutputArea')) {
    const raw = area.innerText.match(/<Figure size|SVG object|&lt;(?:div|svg)|<(?:div|svg|table)\b/);
    if (raw) found.push(`markup: ${raw[0]}`);
  }
  const range = document.createRange();
  for (const cell of document.querySelectorAll('.jp-OutputArea :is(td, th, details[open] pre)')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      for (const word of node.data.matchAll(/[\w.]+/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (range.getClientRects().length > 1 && word[0].length < 48) found.push(`broken: ${word[0]}`);
      }
    }
  }
  for (const code of document.querySelectorAll('.jp-OutputArea .jp-RenderedHTML code')) {
    const card = code.closest('table') ? null : code.parentElement.getBoundingClientRect();
    if (card && code.getBoundingClientRect().right > card.right + 1) found.push(`too wide: ${code.textContent}`);
  }
  for (const chart of document.querySelectorAll('.jp-OutputArea svg[role=img]')) {
    const edge = chart.getBoundingClientRect();
    const boxes = [...chart.querySelectorAll('text')].filter(text => text.textContent.trim())
      .map(text => [text.textContent, text.getBoundingClientRect()]);
    boxes.forEach(([words, box], index) => {
      if (box.left < edge.left - 1 || box.right > edge.right + 1) found.push(`outside: ${words}`);
      for (const [others, other] of boxes.slice(index + 1)) {
        const across = box.left < other.right && other.left < box.right;
        if (across && box.top < other.bottom && other.top < box.bottom) found.push(`covered: ${words} / ${others}`);
      }
    });
  }
  return found;
}"""


def test_the_first_page_is_open_without_a_question_about_news(page: Any, clone: Clone) -> None:
    page.goto(f"{clone.url}/?token={clone.token}")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    assert page.evaluate("window.jupyterapp.shell.currentWidget.context.path") == "00_start_here.ipynb"
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2000)  # a notification would come by now
    assert page.locator(".Toastify__toast").all_inner_texts() == []


def test_stored_outputs_are_shown_before_anything_is_run(page: Any, clone: Clone) -> None:
    page.goto(f"{clone.url}/lab/tree/{PAGE}?token={clone.token}&reset")
    _opened(page)
    stored = json.loads((clone.folder / "notebooks" / PAGE).read_text("utf-8"))
    kinds = [
        output["data"].keys() for cell in stored["cells"] for output in cell.get("outputs", []) if "data" in output
    ]
    html = sum("text/html" in kind for kind in kinds)
    assert html > 1
    page.wait_for_function(f"document.querySelectorAll('.jp-OutputArea .jp-RenderedHTML').length >= {html}")
    assert page.locator(".jp-OutputArea .jp-RenderedHTML svg").count() == 4  # three timelines and the silence


@pytest.mark.parametrize(("name", "theme"), LOOKS)
def test_a_page_looks_well_in_both_themes(page: Any, clone: Clone, name: str, theme: str) -> None:
    """As stored, without running it; the pictures for a person are in build/browser."""
    clone.set_theme(f"JupyterLab {theme}")
    page.goto(f"{clone.url}/lab/tree/{name}?token={clone.token}&reset")
    _opened(page)
    stored = json.loads((clone.folder / "notebooks" / name).read_text("utf-8"))
    outputs = [output for cell in stored["cells"] for output in cell.get("outputs", [])]
    html = sum("text/html" in output.get("data", {}) for output in outputs)
    page.wait_for_function(f"document.querySelectorAll('.jp-OutputArea .jp-RenderedHTML').length >= {html}")
    diagrams = (clone.folder / "notebooks" / name).read_text("utf-8").count("```mermaid")
    page.wait_for_function(f"document.querySelectorAll('.jp-RenderedMermaid img').length >= {diagrams}")
    height = page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollHeight")
    page.set_viewport_size({"width": 1150, "height": min(height + 150, 16_000)})
    page.screenshot(path=PICTURES / f"{name.removesuffix('.ipynb')}-{theme.lower()}.png")
    assert page.evaluate(_UGLY) == []
    from axe_playwright_python.sync_playwright import Axe  # in the group `browser`, and all tests are collected

    contrast = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
    found = Axe().run(page, context=".jp-OutputArea", options=contrast).response["violations"]
    assert [node["html"] for violation in found for node in violation["nodes"]] == []


def test_a_page_that_is_run_and_saved_leaves_the_tree_clean(page: Any, clone: Clone) -> None:
    page.goto(f"{clone.url}/lab/tree/{PAGE}?token={clone.token}&reset")
    _opened(page)
    before = (clone.folder / "notebooks" / PAGE).stat().st_mtime_ns
    run_all(page)
    page.evaluate("window.jupyterapp.shell.currentWidget.context.save()")
    assert (clone.folder / "notebooks" / PAGE).stat().st_mtime_ns > before
    assert clone.changed() == ""


def _opened(page: Any) -> None:
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'", timeout=60_000
    )
    page.wait_for_load_state("networkidle")
