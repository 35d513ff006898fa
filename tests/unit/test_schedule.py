"""The list of the periodic work, and the table "Background work" of docs/architecture.md."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from profilesvc.operations import schedule
from support.repository import DOCS


def services(*, deliver: bool = True) -> Any:
    """The parts of the services that the list depends on."""
    settings = SimpleNamespace(webhooks=SimpleNamespace(deliver=deliver, calls=1))
    return SimpleNamespace(settings=settings, storage=None, due=None)


def table() -> list[tuple[str, ...]]:
    """The name, room, interval and place of each job in the table."""
    section = (DOCS / "architecture.md").read_text("utf-8").partition("\n## Background work\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line]
    assert all(work and failure for *_, work, failure in rows)
    return [(name.strip("`"), room, every.partition(",")[0], where) for name, room, every, where, _, _ in rows]


def listed() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for room in (None, *schedule.room_jobs()):
        for job in schedule.jobs(services(), {}, [room] if room else []):
            interval = "1 h" if job.every == 3600 else f"{job.every:g} s"
            if room is None or job not in schedule.CORE:
                rows.append((job.name, room or "core", interval, str(job.where)))
    return rows


def test_the_table_in_the_documentation_lists_the_jobs() -> None:
    assert sorted(table()) == sorted(listed())


def test_each_job_has_a_name_of_its_own() -> None:
    names = [name for name, *_ in listed()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)


def test_the_core_has_no_job_of_a_room() -> None:
    assert {job.name for job in schedule.jobs(services(), {}, ())} == {
        "signing_keys",
        "gauges",
        "counts",
        "housekeeping",
    }


@pytest.mark.parametrize("deliver", [True, False])
def test_the_settings_can_leave_deliveries_to_other_processes(deliver: bool) -> None:
    names = {job.name for job in schedule.jobs(services(deliver=deliver), {}, ["notify"])}
    assert ("deliveries" in names) is deliver
    assert "sweep" in names
