"""`profilesvc lab`, short of starting JupyterLab, which the browser tests do."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from profilesvc.cli import app, lab


def test_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "find_spec", lambda _: None)
    result = CliRunner().invoke(app, ["lab"])
    assert (result.exit_code, result.stderr.strip()) == (
        1,
        "profilesvc: JupyterLab is not installed: pip install '.[notebooks]' in the checkout",
    )


def test_hands_over_to_jupyterlab_on_the_notebooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PROFILESVC_DATA_DIR", str(tmp_path / "var"))
    taken_over: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda _, command, environment: taken_over.append((command, environment)))
    result = CliRunner().invoke(app, ["lab", "--no-browser", "--port", "0"])
    assert result.exit_code == 0, result.output
    ((command, environment),) = taken_over
    assert command[1:4] == ["-m", "jupyter", "lab"]
    assert {"--port=0", "--no-browser"} <= set(command)
    (root,) = [word for word in command if word.startswith("--ServerApp.root_dir=")]
    assert root.endswith("/notebooks")
    data_dir = tmp_path / "var" / "jupyter"
    assert f"--NotebookNotary.data_dir={data_dir}" in command
    config = Path(environment["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0], "labconfig", "page_config.json")
    assert json.loads(config.read_text("utf-8")) == {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    }
