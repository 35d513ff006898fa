"""Run the notebooks: update their outputs, check them, or try the notebooks on a deployed service.

    python -m profilesvc.lab.notebooks update|check|smoke [NOTEBOOK …]

`smoke` requires PROFILESVC_LAB__TARGET, …__USER_TOKEN and …__LOCATION and does not compare outputs (smoke.py). `update`
and `check` always run on the embedded service.
"""

import contextlib
import difflib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from profilesvc.contract.json import JsonObject
from profilesvc.lab.deployed import smoke
from profilesvc.lab.kernels import FOLDER, append_code, kernel_for, node, read
from profilesvc.settings import PREFIX

# Runs in the kernel after the last cell; it is not stored.
_SUMMARY = "import json\nprint(json.dumps(lab.summary()))"
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}


@contextlib.contextmanager
def _embedded_only() -> Iterator[None]:
    """Remove our settings from the environment of kernels that start during a block."""
    removed = {name: os.environ.pop(name) for name in list(os.environ) if name.upper().startswith(PREFIX)}
    try:
        yield
    finally:
        os.environ.update(removed)


def execute(notebook: NotebookNode, folder: Path) -> JsonObject:
    """Run all cells of a notebook in a new kernel. Return the summary of its lab.

    Raises:
        CellExecutionError: A cell failed.
    """
    client = kernel_for(notebook, folder)
    summary_cell = append_code(notebook, _SUMMARY)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    notebook.cells.pop()
    summary: JsonObject = json.loads(summary_cell.outputs[0].text)
    return summary


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return the outputs with consecutive prints joined, because the kernel splits them by time."""
    joined: list[NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else {}
        if output["output_type"] == "stream" and before.get("name") == output["name"]:
            before["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def normalise(notebook: NotebookNode, summary: JsonObject) -> str:
    """Return the notebook in its stored form: readable cell ids, and nothing that differs between machines."""
    section, counts = "start", Counter[str]()
    for cell in notebook.cells:
        headings = re.findall(r"^#+ +(.+)", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
        if headings:
            section = re.sub(r"[^a-z0-9]+", "-", headings[-1].lower()).strip("-")[:48] or "section"
        counts[section] += 1
        cell.id = f"{section}-{counts[section]}"
        cell.metadata = node(_metadata(cell.metadata.get("tags", [])))
        cell.source = cell.source.strip()
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    notebook.metadata = node({**_METADATA, "profilesvc": summary})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    text: str = nbformat.writes(notebook)
    return text.rstrip("\n") + "\n"


def _metadata(tags: list[str]) -> JsonObject:
    """Return the stored metadata of a cell. JupyterLab folds the source of a solution."""
    folded = {"jupyter": {"source_hidden": True}} if "solution" in tags else {}
    return {**folded, "tags": tags} if tags else {}


def rerun(path: Path) -> str:
    """Run a notebook and return its stored form.

    Raises:
        CellExecutionError: A cell failed.
    """
    notebook = read(path)
    with _embedded_only():
        return normalise(notebook, execute(notebook, path.parent))


def update(path: Path) -> str | None:
    """Run a notebook and store its outputs."""
    text = rerun(path)
    if text != path.read_text("utf-8"):
        path.write_text(text, "utf-8")
    return None


def check(path: Path) -> str | None:
    """Run a notebook. Return the difference from its stored form, or None if there is none."""
    stored, now = path.read_text("utf-8").splitlines(), rerun(path).splitlines()
    return "\n".join(difflib.unified_diff(stored, now, "stored", "now", lineterm="", n=1)) or None


def _path_of(name: str) -> Path:
    """Return the path of a notebook from a path or a name such as `04_posts`."""
    by_name = FOLDER / f"{Path(name).stem}.ipynb"
    return by_name if "/" not in name and not Path(name).is_file() else Path(name)


def main(arguments: list[str]) -> int:
    """Run the command. Return 0 for success, 1 if a notebook failed, 2 for wrong usage."""
    actions = {"update": update, "check": check}
    name, *names = arguments or [""]
    paths = [_path_of(name) for name in names] or sorted(FOLDER.glob("*.ipynb"))
    if missing := [name for name, path in zip(names, paths, strict=False) if not path.is_file()]:
        print(f"Unknown notebook: {', '.join(missing)}. No notebook was run.", file=sys.stderr)
        return 2
    if name == "smoke":
        return smoke.main(paths)
    action = actions.get(name)
    if action is None:
        print(__doc__, file=sys.stderr)
        return 2
    failed = 0
    for path in paths:
        try:
            problem = action(path)
        except CellExecutionError as error:
            problem = str(error)
        print(f"{path.name}: {'failed' if problem else 'ok'}")
        if problem:
            failed += 1
            print(problem, file=sys.stderr)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
