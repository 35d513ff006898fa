"""JupyterLab for the notebooks: committed ones are trusted, and saving changes only the reader's edits."""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary

from profilesvc.contract.json import JsonObject
from profilesvc.lab.notebooks import normalise

FIRST = "00_start_here.ipynb"
_PAGE_CONFIG = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


def options(folder: Path, data_dir: Path) -> list[str]:
    """Return JupyterLab's arguments: first notebook, own signatures, hook on saving, no requests to the internet."""
    arguments = [
        f"--ServerApp.root_dir={folder}",
        f"--NotebookNotary.data_dir={data_dir}",
        f"--ContentsManager.pre_save_hook={__name__}.before_save",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",  # the default one queries PyPI
    ]
    if (folder / FIRST).exists():
        arguments.append(f"--LabApp.default_url=/lab/tree/{FIRST}")
    return arguments


def without_news(data_dir: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for JupyterLab, without announcements regardless of the reader's settings."""
    config = data_dir / "config"
    (config / "labconfig").mkdir(parents=True, exist_ok=True)
    (config / "labconfig" / "page_config.json").write_text(json.dumps(_PAGE_CONFIG), "utf-8")
    paths = [str(config), *filter(None, [environment.get("JUPYTER_CONFIG_PATH")])]
    return {**environment, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def trust_committed(folder: Path, data_dir: Path) -> bool:
    """Sign the notebooks as they are in HEAD. Return False without a git repository.

    CI has run them and compared every output. A signature covers the content, so that a notebook with later changes is
    not trusted. It is stored in `data_dir`, so that it does not affect the reader's other Jupyter.
    """
    try:
        archived = subprocess.run(
            ["git", "archive", "--format=tar", "HEAD", "."],  # noqa: S607
            cwd=folder,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    notary = NotebookNotary(data_dir=str(data_dir))
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as files:
        for entry in files:
            source = files.extractfile(entry) if entry.name.endswith(".ipynb") else None
            if source is not None:
                notary.sign(_page(source.read().decode()))
    notary.store.close()
    return True


def _page(text: str) -> NotebookNode:
    page: NotebookNode = nbformat.reads(text, as_version=4)
    return page


def before_save(model: JsonObject, **_context: object) -> None:
    """Normalise our notebooks on saving, without additions of the editor and of Python. Jupyter calls this hook."""
    content: JsonObject = (model["type"] == "notebook" and model.get("content")) or {}
    summary = content.get("metadata", {}).get("profilesvc")
    if summary is None:
        return
    page = _page(json.dumps(content))
    trusted = [cell["metadata"].get("trusted") for cell in content["cells"]]
    normalise(page, summary)
    for cell, flag in zip(page.cells, trusted, strict=True):
        if flag is not None:
            cell.metadata["trusted"] = flag  # the server reads it to decide whether to sign, and does not store it
    model["content"] = page
