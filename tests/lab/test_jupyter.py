"""`make lab`: which pages are trusted, and what is left of what JupyterLab adds to a page that it saves."""

import copy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import nbformat
import pytest
from nbformat.sign import NotebookNotary

from profilesvc.lab import open_lab
from profilesvc.lab.jupyter import before_save, options, trust_committed
from support.pages.notebooks import FOLDER, NOTEBOOKS, load

PAGE = "03_connection.ipynb"
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pages in a repository of their own; nothing of this machine's git takes part."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and without it no page is trusted")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "clone" / "notebooks"
    folder.mkdir(parents=True)
    for name in (PAGE, "00_start_here.ipynb"):
        shutil.copy(FOLDER / name, folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "pages")
    return folder


def is_trusted(path: Path, data_dir: Path) -> bool:
    notary = NotebookNotary(data_dir=str(data_dir))
    trusted = notary.check_signature(nbformat.read(path, as_version=4))
    notary.store.close()
    return bool(trusted)


def test_a_page_as_committed_is_trusted_and_no_other(clone: Path, tmp_path: Path) -> None:
    changed, own = clone / "00_start_here.ipynb", clone / "own.ipynb"
    changed.write_text(changed.read_text("utf-8").replace("ok", "<img src=x>"), "utf-8")
    own.write_text(changed.read_text("utf-8"), "utf-8")
    assert trust_committed(clone, tmp_path / "data")
    assert [is_trusted(path, tmp_path / "data") for path in (clone / PAGE, changed, own)] == [True, False, False]
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_without_git_no_page_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert not trust_committed(tmp_path, tmp_path / "data")
    monkeypatch.setenv("PATH", "")
    assert not trust_committed(tmp_path, tmp_path / "data")


def test_the_first_page_is_opened_without_external_requests(tmp_path: Path) -> None:
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in options(FOLDER, tmp_path)
    assert {"--LabApp.news_url=None", "--LabApp.extension_manager=readonly"} <= set(options(tmp_path, tmp_path))
    assert not [option for option in options(tmp_path, tmp_path) if "default_url" in option]


def saved(content: Any, folder: Path, name: str) -> str:
    """The file that the server writes when an editor saves a notebook."""
    model = {"type": "notebook", "format": "json", "content": content}
    before_save(model=model, path=name, contents_manager=SimpleNamespace(root_dir=str(folder)))
    text: str = nbformat.writes(nbformat.from_dict(model["content"]))
    return text + "\n"


def as_jupyterlab_sends(page: dict[str, Any]) -> dict[str, Any]:
    """A page that was run and is saved by JupyterLab on some Python."""
    sent = copy.deepcopy(page)
    sent["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    sent["metadata"]["language_info"] |= {
        "version": "3.13.0",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "codemirror_mode": {"name": "ipython", "version": 3},
    }
    sent["metadata"]["widgets"] = {}
    for cell in sent["cells"]:
        cell["metadata"] |= {"trusted": True, "editable": True, "jp-MarkdownHeadingCollapsed": True}
        if cell["cell_type"] == "code":
            cell["metadata"]["execution"] = {"iopub.execute_input": "2026-01-02T03:04:05.678Z"}
    sent["nbformat_minor"] = 5
    return sent


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_that_is_run_and_saved_is_the_page_as_stored(path: Path) -> None:
    assert saved(as_jupyterlab_sends(load(path)), FOLDER, path.name) == path.read_text("utf-8")


def test_a_readers_change_is_kept_and_stays_trusted(tmp_path: Path) -> None:
    shutil.copy(FOLDER / PAGE, tmp_path)
    sent = as_jupyterlab_sends(load(FOLDER / PAGE))
    sent["cells"][-1]["source"] = ["1 + 1\n", "# mine"]
    sent["cells"][-1]["outputs"] = [
        {"output_type": "execute_result", "execution_count": 9, "data": {"text/plain": ["2"]}, "metadata": {}}
    ]
    model = {"type": "notebook", "content": sent}
    before_save(model=model, path=PAGE, contents_manager=SimpleNamespace(root_dir=str(tmp_path)))
    last = nbformat.from_dict(model["content"]).cells[-1]
    assert (last.source, last.outputs[0]["data"], last.metadata.trusted) == ("1 + 1\n# mine", {"text/plain": "2"}, True)


@pytest.mark.parametrize("model", [{"type": "file", "content": "x"}, {"type": "notebook", "content": {"metadata": {}}}])
def test_other_notebooks_are_not_changed(model: dict[str, Any], tmp_path: Path) -> None:
    before = copy.deepcopy(model)
    before_save(model=model, path="x", contents_manager=SimpleNamespace(root_dir=str(tmp_path)))
    assert model == before


def test_loopback_requests_do_not_use_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the service on its way to a provider elsewhere, nor by what a page calls without the lab."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "intern.example")
    with open_lab(separate_provider=True) as lab:
        assert httpx.get(f"{lab.url}/healthz").status_code == 200
        assert lab.operator.import_locations("bob", "accounts/2") == ["locations/211", "locations/219"]
        assert "the login works" in lab.operator.doctor()
