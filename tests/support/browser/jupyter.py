"""What the browser tests do to a notebook, and to a JupyterLab."""

import contextlib
import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from support.waiting import until

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "build" / "browser"
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
_CELLS = """() => Array.from(window.jupyterapp.shell.currentWidget.content.model.cells).map(cell => {
  const json = cell.toJSON();
  const outputs = json.outputs ?? [];
  const error = outputs.find(output => output.output_type === 'error');
  const source = Array.isArray(json.source) ? json.source.join('') : json.source;
  return {type: json.cell_type, source, count: json.execution_count ?? null, error: error?.evalue ?? null};
})"""
_DONE = """() => Array.from(window.jupyterapp.shell.currentWidget.content.model.cells)
  .filter(cell => cell.type === 'code').every(cell => cell.executionCount !== null)"""


def cells(page: Any) -> list[dict[str, Any]]:
    """The cells of the open notebook: type, source, execution count, and the error if there is one."""
    found: list[dict[str, Any]] = page.evaluate(_CELLS)
    return found


def run_all(page: Any) -> None:
    """Run > Run All Cells, and wait for the last one."""
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(_DONE, timeout=60_000)
    page.wait_for_timeout(500)


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Return when a JupyterLab answers."""

    def answers() -> bool:
        assert server.poll() is None, "JupyterLab did not start"
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=1).close()
            return True
        return False

    until(answers, "JupyterLab", 90, every=0.1)


class Clone(NamedTuple):
    """A clone with a JupyterLab on it, as `make lab` starts it."""

    folder: Path
    settings: Path
    url: str
    token: str

    def changed(self) -> str:
        return subprocess.check_output(["git", "status", "--porcelain"], cwd=self.folder, text=True)

    def set_theme(self, name: str) -> None:
        """Set the theme of pages that are opened from now on."""
        write_setting(self.settings, "apputils-extension/themes", {"theme": name})


def write_setting(folder: Path, name: str, values: dict[str, object]) -> None:
    """Write a reader's settings of a JupyterLab extension."""
    file = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(values), "utf-8")
