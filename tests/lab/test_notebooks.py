"""The tool that stores the pages, proves them and tries them on a deployed service."""

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from profilesvc.lab import open_lab
from profilesvc.lab.kernels import kernel_for, read
from profilesvc.lab.notebooks import main

pytestmark = pytest.mark.thorough

PAGE = ["# A page", "lab = __import__('profilesvc.lab', fromlist=['x']).open_lab()", "## Next", "lab.close()"]


def write(path: Path, sources: list[str]) -> Path:
    cells: list[dict[str, Any]] = []
    for source in sources:
        cell: dict[str, Any] = {"cell_type": "markdown", "id": f"x{len(cells)}", "metadata": {"x": 1}, "source": source}
        if not source.startswith("#"):
            cell |= {"cell_type": "code", "execution_count": 9, "outputs": []}
        cells.append(cell)
    metadata = {"language_info": {"name": "python", "version": "3.0"}}
    path.write_text(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write(tmp_path / "page.ipynb", [*PAGE[:2], "print(lab.anonymous.get('/healthz').json())", *PAGE[2:]])


def test_a_kernel_needs_no_port_that_another_process_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that a manager selects is free until the kernel binds it, about a second later."""
    client = kernel_for(read(write(tmp_path / "page.ipynb", ["print('here')"])), tmp_path)
    client.startup_timeout = 10
    announce = client.kernel_manager_class.write_connection_file
    with contextlib.ExitStack() as taken:

        def announced(manager: Any, **options: Any) -> None:
            announce(manager, **options)
            if manager.transport == "tcp":
                taken.enter_context(socket.create_server(("127.0.0.1", manager.iopub_port)))

        monkeypatch.setattr(client.kernel_manager_class, "write_connection_file", announced)
        client.execute()
    assert client.nb.cells[0].outputs[0].text == "here\n"


def test_a_page_is_stored_as_it_runs_and_then_proved(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["update", str(page)]) == 0
    stored = json.loads(page.read_text("utf-8"))
    assert [cell["id"] for cell in stored["cells"]] == ["a-page-1", "a-page-2", "a-page-3", "next-1", "next-2"]
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None, 1, 2, None, 3]
    assert stored["cells"][2]["outputs"][0]["text"] == ["{'status': 'ok'}\n"]
    assert stored["metadata"]["profilesvc"] == {"calls": ["GET /healthz 200"], "codes": []}
    assert "version" not in stored["metadata"]["language_info"]
    assert main(["check", str(page)]) == 0
    page.write_text(page.read_text("utf-8").replace("'ok'", "'fine'"), "utf-8")
    capsys.readouterr()
    assert main(["check", str(page)]) == 1
    assert "+      \"{'status': 'ok'}\\n\"" in capsys.readouterr().err


def test_consecutive_prints_are_stored_as_one_output(tmp_path: Path) -> None:
    """However slowly it comes; what is displayed in between stays in between."""
    slow = "import sys\nprint('a')\nsys.stdout.flush()\nprint('b')\ndisplay(1)\nprint('c')"
    page = write(tmp_path / "page.ipynb", [*PAGE[:2], slow, *PAGE[2:]])
    assert main(["update", str(page)]) == 0
    outputs = json.loads(page.read_text("utf-8"))["cells"][2]["outputs"]
    assert [output.get("text") for output in outputs] == [["a\n", "b\n"], None, ["c\n"]]


def test_a_failing_cell_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = write(tmp_path / "page.ipynb", [*PAGE[:2], "1 / 0", *PAGE[2:]])
    assert main(["update", str(page)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_real_pages_leave_a_deployed_service_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "notebooks" / "01_create_a_key.ipynb"
    with open_lab() as deployed:
        monkeypatch.setenv("PROFILESVC_LAB__TARGET", deployed.url)
        monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", deployed.user_token("alice"))
        monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "locations/111")
        assert main(["smoke", str(page)]) == 0
        assert deployed.client.user("alice").list_keys().credentials == []
        assert len(deployed.client.user("alice").list_keys(include_revoked=True).credentials) == 2


def test_wrong_usage_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROFILESVC_LAB__TARGET", raising=False)
    assert [main([]), main(["destroy"]), main(["smoke"])] == [2, 2, 2]


def test_a_page_that_does_not_exist_is_named_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "04_posts", "notebooks/nope.ipynb"]) == 2
    assert capsys.readouterr().err == "Unknown notebook: notebooks/nope.ipynb. No notebook was run.\n"
