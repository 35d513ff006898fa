"""Each notebook in JupyterLab, as an engineer's first morning has it: open, Run All, everything is there."""

import re
from typing import Any

import pytest

from support.browser.jupyter import NOTEBOOKS, cells, run_all

KERNEL_IS_READY = """() => {
  const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  return kernel && kernel.connectionStatus === 'connected' && kernel.status === 'idle';
}"""


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_in_jupyterlab(page: Any, jupyter: str, name: str) -> None:
    page.goto(f"{jupyter}/lab")  # the first "Run All" after a server's start gets lost without this
    page.wait_for_selector("#jp-main-dock-panel", timeout=60_000)
    page.goto(f"{jupyter}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(KERNEL_IS_READY, timeout=60_000)
    page.wait_for_load_state("networkidle")
    run_all(page)
    found = cells(page)
    assert [cell["error"] for cell in found if cell["error"]] == []
    code = [cell for cell in found if cell["type"] == "code"]
    assert [cell["count"] for cell in code] == list(range(1, len(code) + 1))
    diagrams = sum(bool(re.search(r"```mermaid", cell["source"])) for cell in found if cell["type"] == "markdown")
    page.wait_for_function(f"document.querySelectorAll('.jp-RenderedMermaid img').length >= {diagrams}")
    assert page.locator(".jp-RenderedHTML").count() > 0
    page.screenshot(path=f"build/browser/{name.removesuffix('.ipynb')}.png")
