"""Each page as a plain script, in little time, and by papermill with another parameter."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert import PythonExporter

from support.pages.notebooks import NOTEBOOKS, load
from support.program import environment

pytestmark = pytest.mark.thorough

CPU_SECONDS = 10  # it is 2 to 4; a page waits at most for one timeout of the provider (test_policy.py)
_CPU = "\nimport time\nprint('CPU seconds:', time.process_time())\n"
# A parameter of each page, and what the page then shows.
PARAMETERS = {
    "00": ("page_size", "3", "locations?limit=3"),
    "01": ("key_name", "Newsletter", "_newsletter"),
    "02": ("key_name", "Newsletter", "_newsletter"),
    "03": ("plugin_version", "3.0.1", "online 3.0.1"),
    "04": ("text", "The summer blend is here.", "LIVE The summer blend is here."),
    "05": ("website", "https://harbour.example/other", '"websiteUri": "https://harbour.example/other"'),
    "06": ("correct_phone", "+81 45-555-0122", "at the provider:  +81 45-555-0122"),
    "07": ("new_phone", "+81 45-555-0122", "after 61 seconds: +81 45-555-0122"),
    "08": ("reply_text", "Thank you, Priya.", '"comment": "Thank you, Priya."'),
    "09": ("posts_a_month", "2", "The monthly limit of 2 posts is used up."),
    "10": ("timeout_seconds", "3.5", "timeout_seconds = 3.5"),  # no output has it
    "11": ("key_name", "Newsletter", "_newsletter"),
    "12": ("domain", "http://HARBOUR.example", '"primary_domain": "harbour.example"'),
    "13": ("app_name", "Till", "_till"),
    "14": ("days", "100", "15 of 15 heartbeats accepted"),
    "15": ("key_name", "Newsletter", "key.created Newsletter"),
    "16": ("hours", "28", "now: 2026-01-03T07:04:05.678Z"),
    "17": ("login", "kim@example.com", '"email": "kim@example.com"'),
    "18": ("new_title", "Bakery in Aoba", "profile.drifted title -> Bakery in Aoba"),
}


def _long(*quick: str) -> list[object]:
    """Return the pages as cases. All but the `quick` ones run in `make fuzz` only."""
    marks = {path: () if path.stem[:2] in quick else pytest.mark.long for path in NOTEBOOKS}
    return [pytest.param(path, id=path.stem, marks=mark) for path, mark in marks.items()]


def _all(path: Path) -> str:
    """Return the code of a page and all that it shows, as text."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    texts = [output.text if output.output_type == "stream" else output.data["text/plain"] for output in outputs]
    return "\n".join([*(cell.source for cell in cells), *texts])


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


@pytest.mark.parametrize("path", _long("00", "10"))
def test_a_page_runs_as_a_plain_script_in_little_time(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    exporter = PythonExporter()  # type: ignore[no-untyped-call]
    script.write_text(exporter.from_filename(str(path))[0] + _CPU, "utf-8")
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shown, _, seconds = done.stdout.rpartition("CPU seconds:")
    assert float(seconds) < CPU_SECONDS
    end = 0
    for text in _printed(path):
        assert text in shown[end:], text
        end = shown.index(text, end) + len(text)


def test_every_page_has_a_changed_parameter() -> None:
    for path in NOTEBOOKS:
        (cell,) = (cell for cell in load(path)["cells"] if "parameters" in cell["metadata"].get("tags", []))
        assert f"{PARAMETERS[path.stem[:2]][0]} = " in "".join(cell["source"])


@pytest.mark.parametrize("path", _long("01"))
def test_papermill_runs_a_page_with_another_parameter(path: Path, tmp_path: Path) -> None:
    name, value, shown = PARAMETERS[path.stem[:2]]
    changed = tmp_path / "changed.ipynb"
    command = [sys.executable, "-W", "ignore", "-m", "papermill", "--no-progress-bar", str(path), str(changed)]
    done = subprocess.run([*command, "-p", name, value], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert shown not in _all(path)
    assert shown in _all(changed)
