"""`make smoke`: try the notebooks on a deployed service and undo their changes.

Kernels only record their changes (safeguard.py). This process undoes them after each notebook, and at its start those
of an earlier run that was killed.
"""

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from profilesvc.lab.deployed.attached import client_of, journal_path, location_of, target_of
from profilesvc.lab.deployed.journal import Journal
from profilesvc.lab.deployed.pages import Page, run_page
from profilesvc.lab.deployed.preflight import PreflightError, read_baseline
from profilesvc.lab.deployed.undo import Undo
from profilesvc.lab.kernels import FOLDER as NOTEBOOKS
from profilesvc.settings import PREFIX, LabSettings, SettingsError, load

_NEEDED = {"target": "BASE_URL", "user_token": "USER_TOKEN", "location": "LOCATION"}


def main(paths: list[Path]) -> int:
    """Run the notebooks. Return 0 for success, 1 if one failed or changes are left, 2 for wrong or missing settings."""
    try:
        settings = load()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    lab = settings.lab
    for name, variable in _NEEDED.items():
        value = getattr(lab, name)
        if not (value if isinstance(value, str) else value.get_secret_value()):
            print(f"{PREFIX}LAB__{name.upper()} is not set ({variable} of make smoke).", file=sys.stderr)
            return 2
    try:
        with _stoppable(), _journal(lab, settings.data_dir) as journal:
            return _run(lab, journal, paths)
    except PreflightError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:  # before the first notebook, or while its changes were undone
        print("Interrupted. Run the same command again to undo changes that may be left.", file=sys.stderr)
    return 1


@contextmanager
def _stoppable() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C during a block, so that the changes are undone in both cases."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _journal(lab: LabSettings, folder: Path) -> Iterator[Journal]:
    """Undo earlier runs and create a journal that starts with the current state of the location."""
    _finish_earlier(lab, folder)
    with client_of(lab) as client:
        state = read_baseline(client, target_of(lab), location_of(lab), lab.write)
    print(*state.lines, sep="\n", flush=True)
    with closing(Journal(journal_path(lab, folder).absolute())) as journal:
        if not journal.lock():
            raise PreflightError(f"Another run uses {location_of(lab)} at {target_of(lab)}. Wait until it is over.")
        journal.write(baseline=state.baseline)
        yield journal


def _finish_earlier(lab: LabSettings, folder: Path) -> None:
    """Undo the changes of killed runs at this location, and print a note of changes at other locations."""
    own = journal_path(lab, folder)
    folders = {own.parent.resolve(), (NOTEBOOKS / own.parent).resolve()}  # the latter for notebooks that a person runs
    for path in sorted(path for each in folders for path in each.glob("*.jsonl")):
        with closing(Journal(path)) as journal:
            if not journal.lock():
                continue
            entries = journal.entries()
            if len(entries) < 2:
                journal.remove()
            elif path.name.startswith(own.stem):
                print("undoing the changes of an earlier run", flush=True)
                left = Undo(journal, lab).run()
                if left:
                    raise PreflightError("\n- ".join(["Changes of an earlier run are left:", *left]))
                journal.remove()
            else:
                baseline = entries[0]["baseline"]
                where = f"{baseline['location']} at {baseline['target']}"
                print(f"note       changes of an earlier run are left at {where}: run make smoke there", flush=True)


def _run(lab: LabSettings, journal: Journal, paths: list[Path]) -> int:
    """Run the notebooks, undo the changes of each, and print a report. Return the exit code."""
    environment = {**os.environ, f"{PREFIX}LAB__JOURNAL": str(journal.path)}
    pages, left = list[Page](), list[str]()
    stopped = ""
    try:
        for path in paths:
            pages.append(run_page(path, journal.path.parent, environment))
            print(pages[-1].line, flush=True)
            left = Undo(journal, lab).run()
            if left:
                stopped = "the other notebooks were not run"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
        logging.getLogger("asyncio").disabled = True  # it would log the task of the interrupted cell
        print(f"{path.stem}: interrupted, undoing its changes", flush=True)
        left = Undo(journal, lab).run()
    if not left:
        journal.remove()
    return _report(pages, left, stopped)


def _report(pages: list[Page], left: list[str], stopped: str) -> int:
    states = Counter(page.state for page in pages)
    counts = ", ".join(f"{states[state]} {state}" for state in ("ok", "skipped", "failed") if states[state])
    cells = f"{sum(page.ran for page in pages)} cells ran, {sum(page.skips for page in pages)} skipped"
    parts = [counts or "no notebook", cells, *([stopped] if stopped else [])]
    print("; ".join([*parts, "CHANGES ARE LEFT:" if left else "all changes are undone"]), flush=True)
    if left:
        print(*(f"- {sentence}" for sentence in left), sep="\n")
        print("Run the same command again to undo them.", flush=True)
    return int(bool(states["failed"] or left or stopped))
