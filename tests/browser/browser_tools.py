"""What the browser tests do to a notebook."""

from pathlib import Path
from typing import Any

NOTEBOOKS = sorted(path.name for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
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
