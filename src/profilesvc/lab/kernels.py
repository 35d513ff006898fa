"""Kernels that run the cells of a notebook."""

import tempfile
import uuid
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from profilesvc.contract.json import JsonObject

FOLDER = Path("notebooks")
CELL_TIMEOUT_SECONDS = 60


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def node(value: JsonObject) -> Any:
    """Return a part of a notebook as its library needs it."""
    return nbformat.from_dict(value)


def connection_options() -> dict[str, str]:
    """Return the options of a kernel's manager for a connection by sockets in the temporary folder.

    By default a kernel gets numbers of TCP ports that are free when it starts. If another process is faster, it hangs.
    """
    file = Path(tempfile.gettempdir(), f"kernel-{uuid.uuid4().hex}.json")
    return {"transport": "ipc", "connection_file": str(file)}


def kernel_for(notebook: NotebookNode, folder: Path, timeout: int = CELL_TIMEOUT_SECONDS) -> NotebookClient:
    """Return a kernel for a notebook, not yet started. The outputs of the notebook are removed."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", record_timing=False, resources=resources)
    client.config.KernelManager.update(connection_options())
    return client


def append_code(notebook: NotebookNode, source: str) -> NotebookNode:
    """Append a code cell that is not part of the notebook, and return it."""
    cell: NotebookNode = node(
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
    )
    notebook.cells.append(cell)
    return cell
