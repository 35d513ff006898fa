"""`profilesvc lab`, short of starting JupyterLab, which the browser tests do."""

import pytest
from typer.testing import CliRunner

from profilesvc.cli import app, lab


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "find_spec", lambda _: None)
    result = CliRunner().invoke(app, ["lab"])
    assert (result.exit_code, result.stderr.strip()) == (
        1,
        "profilesvc: JupyterLab is not installed: pip install 'profilesvc[notebooks]'",
    )


def test_hands_over_to_jupyterlab_on_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_over: list[list[str]] = []
    monkeypatch.setattr(lab.os, "execv", lambda _, command: taken_over.append(command))
    result = CliRunner().invoke(app, ["lab", "--no-browser", "--port", "0"])
    assert result.exit_code == 0, result.output
    (command,) = taken_over
    assert command[1:4] == ["-m", "jupyter", "lab"]
    assert command[4].endswith("/notebooks")
    assert {"--port=0", "--no-browser"} <= set(command)
