"""What every notebook keeps to; whether its outputs are true is checked by `make notebooks`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profilesvc.contract.errors import CATALOGUE
from profilesvc.lab.deployed.pages import NEEDS
from support.pages.notebooks import NOTEBOOKS, load, operation_of

TOKEN_LIKE = re.compile(r"eyJ[\w-]+\.[\w-]+|(?<![\w+/])[A-Za-z0-9+/]{64}(?![\w+/=])", re.ASCII)
HOST_AND_PORT = re.compile(r"127\.0\.0\.1|localhost|\[::1\]|https?://[\w.-]+:\d")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}", re.IGNORECASE)
MACHINE_PATH = re.compile(r"/(?:tmp|root|home|work|Users|var/folders)/")
BESIDE_THE_API = {"/healthz", "/readyz", "/openapi.json", "/docs"}
ISSUERS = ("/dev/issuer/", "/dev/provider/")  # of users, and the provider's
MAX_OUTPUT = 50_000

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def output_texts(path: Path) -> list[str]:
    """Every text of every output, whatever its MIME type."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for member in value.values():
                yield from texts(member)
        elif isinstance(value, list):
            yield "".join(value)
        elif isinstance(value, str):
            yield value

    return [text for cell in code_cells(path) for output in cell["outputs"] for text in texts(output)]


def test_every_code_cell_was_run_in_order(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


def test_no_cell_failed_or_wrote_to_stderr(path: Path) -> None:
    outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []


@pytest.mark.parametrize("pattern", [TOKEN_LIKE, HOST_AND_PORT, ADDRESS, MACHINE_PATH], ids=lambda found: found.pattern)
def test_outputs_hold_nothing_secret_and_nothing_of_the_machine(path: Path, pattern: re.Pattern[str]) -> None:
    assert [found.group() for text in output_texts(path) if (found := pattern.search(text))] == []


def test_outputs_are_of_a_readable_size_and_run_nothing(path: Path) -> None:
    for text in output_texts(path):
        assert len(text) <= MAX_OUTPUT
        assert "<script" not in text.lower()


def test_a_value_is_shown_as_a_card_and_not_as_a_long_repr(path: Path) -> None:
    outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
    bare = [output["data"]["text/plain"] for output in outputs if set(output.get("data", {})) == {"text/plain"}]
    printed = [output["text"] for output in outputs if "text" in output]
    assert [text for text in bare if len("".join(text)) > 100] == []
    assert [line for lines in printed for line in lines if len(line) > 160 or re.match(r"[\[{(]", line)] == []


def test_a_page_waits_for_nothing_but_one_short_timeout(path: Path) -> None:
    """The lab's clock moves only by `advance`, so real time passes only where it sleeps or delays a call."""
    sources = "\n".join(source(cell) for cell in code_cells(path))
    assert "sleep(" not in sources
    assert sources.count('"delay"') == (1 if path.stem.startswith("10") else 0)
    assert 'provider={"timeout_seconds": timeout_seconds}' in sources or not path.stem.startswith("10")


def test_metadata_is_the_normal_one(path: Path) -> None:
    metadata = load(path)["metadata"]
    assert set(metadata) == {"kernelspec", "language_info", "profilesvc"}
    assert metadata["kernelspec"]["name"] == "python3"
    assert "version" not in metadata["language_info"]
    for cell in load(path)["cells"]:
        assert re.fullmatch(r"[a-z0-9-]+", cell["id"])
        assert set(cell["metadata"]) <= {"tags", "jupyter"}


def test_nothing_is_exempt_from_comparison(path: Path) -> None:
    for cell in load(path)["cells"]:
        assert not re.search(r"nbval", f"{source(cell)}{cell['metadata']}", re.IGNORECASE)
        assert set(cell["metadata"].get("tags", [])) <= {*NEEDS, "parameters", "hide-input", "solution"}


def test_a_page_opens_with_what_you_will_learn_and_a_diagram(path: Path) -> None:
    first = load(path)["cells"][0]
    assert first["cell_type"] == "markdown"
    assert source(first).startswith("# ")
    opening = "".join(source(cell) for cell in load(path)["cells"][:2] if cell["cell_type"] == "markdown")
    assert "**You will learn**" in opening
    assert "```mermaid\nsequenceDiagram" in opening


def test_a_page_opens_the_lab_shows_the_next_step_and_closes(path: Path) -> None:
    cells = load(path)["cells"]
    assert re.search(r"^lab = open_lab\(", source(code_cells(path)[1]), re.MULTILINE)
    assert source(cells[-1]) == "lab.close()"
    assert re.search(r"^## Next$", source(cells[-2]), re.MULTILINE)


def test_calls_that_succeeded_are_operations_of_the_api(path: Path) -> None:
    summary = load(path)["metadata"]["profilesvc"]
    done = [line for line in summary["calls"] if line.split()[2].startswith("2") and not line.startswith("OPTIONS ")]
    paths = {line.split()[1] for line in done if operation_of(line) is None}
    assert {path for path in paths - BESIDE_THE_API if not path.startswith(ISSUERS)} == set()
    assert set(summary["codes"]) <= CATALOGUE.keys()


def test_papermill_can_set_the_parameters_of_a_page(path: Path) -> None:
    first, *others = (cell for cell in code_cells(path))
    assert first["metadata"]["tags"] == ["parameters"]
    assert all("parameters" not in cell["metadata"].get("tags", []) for cell in others)
    assert all(isinstance(node, ast.Assign) for node in ast.parse(source(first)).body)


def test_a_task_has_a_solution_that_is_folded(path: Path) -> None:
    (solution,) = (cell for cell in code_cells(path) if "solution" in cell["metadata"].get("tags", []))
    assert solution["metadata"]["jupyter"] == {"source_hidden": True}
    assert "hide-input" in solution["metadata"]["tags"]
    assert any(re.search(r"^## Try it$", source(cell), re.MULTILINE) for cell in load(path)["cells"])


def test_a_page_uses_nothing_internal_and_shows_no_bad_example(path: Path) -> None:
    sources = "\n".join(source(cell) for cell in load(path)["cells"])
    imported = set(re.findall(r"from (profilesvc[\w.]*) import", sources))
    assert imported <= {"profilesvc.lab", "profilesvc.client"}
    assert "lab.controls(" not in sources
    assert not re.search(r"verify_\w+\W+False", sources)
    assert "locations/locations/" not in path.read_text("utf-8")
