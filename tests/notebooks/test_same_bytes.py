"""The outputs of the notebooks depend on nothing: neither on the run nor on the machine."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert import PythonExporter

from support.effort import effort
from support.notebook_pages import NOTEBOOKS
from support.other_python import checked, page_of
from support.program import environment

ELSEWHERE = {"TZ": "Pacific/Apia", "LC_ALL": "C.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "4242"}
SAMPLE = page_of("05")


def test_a_page_is_the_same_elsewhere(tmp_path: Path) -> None:
    done = checked(SAMPLE, HOME=str(tmp_path), **ELSEWHERE)
    assert done.stdout == "05_sync.ipynb: ok\n", done.stderr


@pytest.mark.long
@pytest.mark.parametrize("run", effort(["first", "elsewhere"], ["first", "second", "third", "elsewhere"]))
def test_every_run_of_all_pages_is_the_same(run: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), **ELSEWHERE} if run == "elsewhere" else {}
    done = checked(*NOTEBOOKS, **variables)
    assert done.stdout == "".join(f"{path.name}: ok\n" for path in NOTEBOOKS), done.stderr


def _printed(path: Path) -> list[str]:
    """Return the texts that a page prints or shows, except the value of a cell's last line, in order."""
    texts = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "execute_result":
                continue
            text = output.text if output.output_type == "stream" else output.data["text/plain"]
            texts += [] if text.startswith("HTTP of this cell") else [text]
    return texts


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path == page_of("00") else pytest.mark.long) for path in NOTEBOOKS],
)
def test_a_page_runs_as_a_plain_script(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    exporter = PythonExporter()  # type: ignore[no-untyped-call]
    script.write_text(exporter.from_filename(str(path))[0], "utf-8")
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    end = 0
    for text in _printed(path):
        assert text in done.stdout[end:], text
        end = done.stdout.index(text, end) + len(text)
