"""`make smoke`: try the notebooks on a deployed service and leave it as it was found.

Kernels only note what they make (guard.py); this process undoes it after each page, and on its next start whatever a
killed run has left.
"""

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from profilesvc.lab.attached import client_of, journal_path, location_of, target_of
from profilesvc.lab.journal import Journal
from profilesvc.lab.notebooks import FOLDER as NOTEBOOKS
from profilesvc.lab.pages import Page, run_page
from profilesvc.lab.preflight import Refused, look
from profilesvc.lab.undo import Undo
from profilesvc.settings import PREFIX, LabSettings, load

_NEEDED = {"target": "BASE_URL", "user_token": "USER_TOKEN", "location": "LOCATION"}


def main(paths: list[Path]) -> int:
    """0 when no page failed and nothing is left behind, 1 otherwise, 2 for missing settings."""
    settings = load()
    lab = settings.lab
    for name, variable in _NEEDED.items():
        value = getattr(lab, name)
        if not (value if isinstance(value, str) else value.get_secret_value()):
            print(f"{PREFIX}LAB__{name.upper()} is not set ({variable} of make smoke): nothing to try", file=sys.stderr)
            return 2
    try:
        with _stoppable(), _journal(lab, settings.data_dir) as journal:
            return _Run(lab, journal).all(paths)
    except Refused as refusal:
        print(refusal, file=sys.stderr)
    except KeyboardInterrupt:  # before the first page, or again while its work was undone
        print("interrupted: run the same command again to have removed what may be left", file=sys.stderr)
    return 1


@contextmanager
def _stoppable() -> Iterator[None]:
    """A block that SIGTERM ends as Ctrl-C does, so that it is undone either way."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _journal(lab: LabSettings, folder: Path) -> Iterator[Journal]:
    """Finish earlier runs and create a journal that starts with the current location. Raises Refused."""
    _finish_earlier(lab, folder)
    with client_of(lab) as client:
        found = look(client, target_of(lab), location_of(lab), lab.write)
    print(*found.lines, sep="\n", flush=True)
    with closing(Journal(journal_path(lab, folder).absolute())) as journal:
        if not journal.lock():
            raise Refused(f"Another run is trying {location_of(lab)} at {target_of(lab)}.")
        journal.write(baseline=found.baseline)
        yield journal


def _finish_earlier(lab: LabSettings, folder: Path) -> None:
    """Undo what runs that were killed have left at this location; name what was left elsewhere. Raises Refused."""
    here = journal_path(lab, folder)
    folders = {here.parent.resolve(), (NOTEBOOKS / here.parent).resolve()}  # a page run by hand has its own there
    for path in sorted(path for each in folders for path in each.glob("*.jsonl")):
        with closing(Journal(path)) as journal:
            if not journal.lock():
                continue
            entries = journal.entries()
            if len(entries) < 2:
                journal.remove()
            elif path.name.startswith(here.stem):
                print("undoing what an earlier run has left", flush=True)
                left = _undone(lab, journal)
                if left:
                    raise Refused("\n- ".join(["An earlier run has left this behind:", *left]))
                journal.remove()
            else:
                baseline = entries[0]["baseline"]
                where = f"{baseline['location']} at {baseline['target']}"
                print(f"note       an earlier run has left something at {where}: run make smoke there", flush=True)


def _undone(lab: LabSettings, journal: Journal) -> list[str]:
    """Undo what the journal says; what is left."""
    return Undo(journal, lab.user_token.get_secret_value(), lab.patience_seconds).run()


class _Run:
    """One run over pages, with its report."""

    def __init__(self, lab: LabSettings, journal: Journal) -> None:
        self._lab, self._journal = lab, journal
        self._pages: list[Page] = []
        self._left: list[str] = []

    def all(self, paths: list[Path]) -> int:
        """Run the pages, undo each, report; the exit code."""
        stopped = ""
        try:
            for path in paths:
                self._one(path)
                if self._left:
                    stopped = "the other pages were not run"
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
            logging.getLogger("asyncio").disabled = True  # it would report the task of the interrupted cell
            print(f"{path.stem}: interrupted, undoing what was made", flush=True)
            self._left = _undone(self._lab, self._journal)
        if not self._left:
            self._journal.remove()
        return self._report(stopped)

    def _one(self, path: Path) -> None:
        environment = {**os.environ, f"{PREFIX}LAB__JOURNAL": str(self._journal.path)}
        page = run_page(path, self._journal.path.parent, environment)
        self._pages.append(page)
        print(page.line, flush=True)
        self._left = _undone(self._lab, self._journal)

    def _report(self, stopped: str) -> int:
        states = Counter(page.state for page in self._pages)
        pages = ", ".join(f"{states[state]} {state}" for state in ("ok", "skipped", "failed") if states[state])
        cells = f"{sum(page.ran for page in self._pages)} cells ran, {sum(page.skips for page in self._pages)} skipped"
        ends = [pages or "no page", cells, *([stopped] if stopped else [])]
        print("; ".join([*ends, "SOMETHING IS LEFT BEHIND:" if self._left else "nothing is left behind"]), flush=True)
        if self._left:
            print(*(f"- {sentence}" for sentence in self._left), sep="\n")
            print("Run the same command again to have it removed.", flush=True)
        return int(bool(states["failed"] or self._left or stopped))
