"""Run a notebook on a deployed service, cell by cell, and report the cells that ran, were skipped, or failed."""

import json
import re
import subprocess
import symtable
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from profilesvc.lab.kernels import append_code, kernel_for, read

_CELL_SECONDS = 900  # including the time for rate limits
_RECORD = """
import json
print(json.dumps([[f"{call.line} {call.code or ''}".strip() for call in lab.calls()], lab.waited]))
"""
_REASON = re.compile(r"Skipped here: this needs (?:control of )?([^,]+)")
# The tags of cells that only the embedded service can run, with what they control there.
NEEDS = {
    "needs-clock": "the clock",
    "needs-database": "the database",
    "needs-demo-data": "the demo data",
    "needs-identity-provider": "the identity provider",
    "needs-operator": "the operator's commands",
    "needs-plan": "the plan",
    "needs-provider": "the provider",
    "needs-second-user": "a second user",
}
_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_DEPENDENT = "a skipped cell"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_SENTENCE = 200


@dataclass
class Page:
    """The result of a notebook."""

    name: str
    ran: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    calls: list[str] = field(default_factory=list)
    waited: float = 0.0

    @property
    def skips(self) -> int:
        """The number of cells that were skipped, in whole or in part."""
        return self.skipped.total()

    @property
    def state(self) -> str:
        """`ok`, `failed`, or `skipped` if the notebook made no call."""
        return "failed" if self.failure else "ok" if self.calls else "skipped"

    @property
    def line(self) -> str:
        reasons = ", ".join(
            f"{number} {'needs' if number == 1 else 'need'} {reason}" for reason, number in self.skipped.most_common()
        )
        skipped = f"{self.skips} skipped ({reasons})" if self.skipped else ""
        waited = f"waited {self.waited:.0f} s for rate limits" if self.waited else ""
        ran = {"ok": f"ok {self.ran} cells", "failed": f"failed {self.failure}", "skipped": "skipped, no call was made"}
        parts = [ran[self.state], "" if self.failure else skipped, waited]
        return f"{self.name}: {', '.join(part for part in parts if part)}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A code cell: its number in Jupyter after Run All, and the heading above it."""

    number: int
    heading: str


def run_page(path: Path, folder: Path, environment: dict[str, str]) -> Page:
    """Run the cells in a new kernel until one fails. Write its traceback to a file in `folder`."""
    notebook, page = read(path), Page(path.stem)
    cells, record_cell = list(notebook.cells), append_code(notebook, _RECORD)
    client = kernel_for(notebook, path.parent, _CELL_SECONDS)
    failed: tuple[_Place, Exception] | None = None
    try:
        with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):  # it has errors of an interrupted kernel
            failed = _run_cells(client, cells, page)
            if failed is None or isinstance(failed[1], CellExecutionError):
                client.execute_cell(record_cell, len(cells))
                page.calls, page.waited = json.loads(record_cell.outputs[0].text)
    except (CellControlSignal, DeadKernelError) as error:  # the kernel is gone, or it has no lab
        failed = failed or (_Place(0, ""), error)
    if failed is not None:
        page.failure = _explanation(page, *failed, folder)
    return page


def _run_cells(client: NotebookClient, cells: list[NotebookNode], page: Page) -> tuple[_Place, Exception] | None:
    """Run the cells that do not depend on a skipped one. Return the place and the error of the one that failed."""
    place, missing = _Place(0, ""), set[str]()
    for index, cell in enumerate(cells):
        if cell.cell_type != "code":
            headings = re.findall(r"^#+ +(.+)", cell.source, re.MULTILINE)
            place = _Place(place.number, headings[-1] if headings else place.heading)
            continue
        place = _Place(place.number + 1, place.heading)
        defined, used = _names(cell.source)
        need = next((NEEDS[tag] for tag in cell.metadata.get("tags", []) if tag in NEEDS), "")
        reason = need or (_DEPENDENT if missing & used else "")
        try:
            if not reason:
                client.execute_cell(cell, index)
        except CellExecutionError as error:
            reason = _reason(error, missing)
            if not reason:
                return place, error
        except (CellControlSignal, DeadKernelError) as error:
            return place, error
        missing = missing | defined if reason else missing - defined
        page.skipped[reason] += bool(reason)
        page.ran += not reason
    page.skipped = +page.skipped
    return None


def _reason(error: CellExecutionError, missing: set[str]) -> str:
    """Return why a cell could not run on a deployed service, or an empty string for a failure."""
    unknown = _UNKNOWN.search(error.evalue)
    if unknown and unknown[1] in missing:
        return _DEPENDENT
    match = _REASON.search(error.evalue) if error.ename == "NeedsControl" else None
    return match[1] if match else ""


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return the global names that a cell defines, and those of other cells that it uses."""
    try:
        table = symtable.symtable(source, "cell", "exec")
    except SyntaxError:  # a Jupyter command
        return set(), set()
    symbols = table.get_symbols()
    defined = {name.get_name() for name in symbols if name.is_assigned() or name.is_imported() or name.is_namespace()}
    return defined, set(_globals(table)) - defined


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


def _explanation(page: Page, place: _Place, error: Exception, folder: Path) -> str:
    """Save the traceback. Return one line with the place and the reason of the failure."""
    saved = folder / f"{page.name}.txt"
    text = _COLOURS.sub("", str(error))
    saved.write_text(text, "utf-8")
    if isinstance(error, CellExecutionError):
        sentence = f"{error.ename}: {error.evalue.strip().partition(chr(10))[0]}"[:_LONGEST_SENTENCE]
    elif isinstance(error, DeadKernelError):
        sentence = "the kernel was killed"
    else:
        sentence = f"it ran for more than {_CELL_SECONDS} s"
    last = f"; last call {page.calls[-1]}" if page.calls else ""
    return f"at cell [{place.number}] ({place.heading}): {sentence}{last}; traceback in {saved}"
