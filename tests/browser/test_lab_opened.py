"""`profilesvc lab` on a fresh clone: what a person sees before running anything, and what is left after a save."""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.browser import PICTURES, ROOT, free_port, run_all, wait_for

PAGE = "03_connection.ipynb"
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
# Markup that is shown as text, and pictures that are shown as what Python calls them.
RAW = re.compile(r"<Figure size|SVG object|&lt;(?:div|svg)|<(?:div|svg|table)\b")


class Clone(NamedTuple):
    """A clone with a JupyterLab on it, as `make lab` starts it."""

    folder: Path
    url: str
    token: str

    def changed(self) -> str:
        return subprocess.check_output(["git", "status", "--porcelain"], cwd=self.folder, text=True)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and without it no page is trusted")
    home = tmp_path_factory.mktemp("home")
    folder, config = home / "clone", home / "config"
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copy(ROOT / ".gitignore", folder)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "pages"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)
    config.mkdir()
    (config / "jupyter_lab_config.json").write_text(json.dumps({"LabApp": {"expose_app_in_browser": True}}))
    port, token = free_port(), secrets.token_hex(16)
    places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    env = {**os.environ, **places, "HOME": str(home), "JUPYTER_TOKEN": token}
    command = [sys.executable, "-m", "profilesvc", "lab", "--no-browser", "--port", str(port)]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server)
        yield Clone(folder, f"http://127.0.0.1:{port}", token)
    finally:
        server.terminate()
        server.wait(timeout=20)


def test_the_first_page_is_open_and_nobody_asks_for_news(page: Any, clone: Clone) -> None:
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
    shown = page.locator(".jp-OutputArea").all_inner_texts()
    assert [text for text in shown if RAW.search(text)] == []
    page.screenshot(path=PICTURES / "lab-fresh-clone.png")


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
