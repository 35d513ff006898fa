"""`make smoke` against a served demo with its default limits, by the real clock and over HTTP."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.smoke import KEY, NOTEBOOKS, OPEN, POST, SYNC, Deployment, Gate, deployed, ended, page, stop
from profilesvc.lab.deployed import smoke
from profilesvc.lab.deployed.pages import Page

pytestmark = pytest.mark.thorough

CLEAN = "all changes are undone"
Smoked = Callable[..., tuple[int, list[str], str]]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("deployed")) as made:
        yield made


@pytest.fixture
def smoked(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Smoked:
    """A whole run in this process: exit code, lines, stderr."""

    def run(*pages: Path, write: bool = False, **settings: str) -> tuple[int, list[str], str]:
        for name, value in deployment.settings(write=write, **settings).items():
            monkeypatch.setenv(f"PROFILESVC_{name}", value)
        monkeypatch.chdir(deployment.folder)
        code = smoke.main(list(pages))
        out, errors = capfd.readouterr()
        return code, out.splitlines(), errors

    return run


def test_pages_are_reported_with_what_was_skipped_and_nothing_public_is_touched(
    deployment: Deployment, smoked: Smoked
) -> None:
    before = deployment.state()
    code, lines, errors = smoked(NOTEBOOKS / "05_sync.ipynb")
    assert (code, errors) == (0, "")
    assert deployment.service.url in lines[0]
    assert "Harbour Coffee (10)" in lines[1]
    assert "locations/111, Harbour Coffee, Pier, of Harbour Coffee: sync on" in lines[2]
    assert "no posts, replies, syncs or sync switch" in lines[5]
    synced, total = lines[6:]
    assert synced.startswith("05_sync: ok ")
    assert " SMOKE_WRITE=1" in synced
    assert total.startswith("1 ok; ")
    assert total.endswith(CLEAN)
    assert deployment.state() == before
    assert deployment.journals == []


def test_pages_that_write_leave_everything_as_it_was(deployment: Deployment, smoked: Smoked) -> None:
    before = deployment.state()
    code, lines, errors = smoked(NOTEBOOKS / "05_sync.ipynb", write=True)
    assert (code, errors) == (0, "")
    assert lines[-2].startswith("05_sync: ok ")
    assert "SMOKE_WRITE" not in lines[-2]
    assert lines[-1].endswith(CLEAN)
    assert deployment.state() == before


def test_a_kernel_that_is_killed_and_a_page_that_fails_are_a_line_each_and_are_undone(
    deployment: Deployment, smoked: Smoked, tmp_path: Path
) -> None:
    before = deployment.state()
    killed = page(tmp_path, "killed", OPEN, KEY, POST, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    fails = page(tmp_path, "fails", OPEN, KEY, 'def deep():\n    return {}["data"]', "deep()", POST)
    code, lines, errors = smoked(killed, fails, write=True)
    assert (code, errors) == (1, "")
    first, second, total = lines[-3:]
    assert first.startswith("killed: failed at cell [4] (): the kernel was killed; traceback in ")
    assert second.startswith("fails: failed at cell [4] (): KeyError: 'data'; last call POST /api/v1/developer/credent")
    assert "in deep" in Path(second.rpartition(" ")[2]).read_text("utf-8")
    assert total == f"2 failed; 6 cells ran, 0 skipped; {CLEAN}"
    assert deployment.state() == before


def test_a_terminated_run_undoes_its_changes(deployment: Deployment, smoked: Smoked, tmp_path: Path) -> None:
    before, gate = deployment.state(), Gate(tmp_path)
    run = deployment.smoke(page(tmp_path, "waits", OPEN, KEY, POST, SYNC, gate.cell), write=True)
    gate.wait(run)
    assert deployment.state() != before
    assert "Another run" in smoked()[2]
    stop(run, signal.SIGTERM)
    code, lines, errors = ended(run)
    assert (code, errors) == (1, "")
    assert lines[-2:] == [
        "waits: interrupted, undoing its changes",
        f"no notebook; 0 cells ran, 0 skipped; interrupted; {CLEAN}",
    ]
    assert deployment.state() == before
    assert deployment.journals == []


def test_the_next_run_undoes_the_changes_of_a_killed_one(
    deployment: Deployment, smoked: Smoked, tmp_path: Path
) -> None:
    before, gate = deployment.state(), Gate(tmp_path)
    run = deployment.smoke(page(tmp_path, "waits", OPEN, KEY, POST, SYNC, gate.cell), write=True)
    gate.wait(run)
    stop(run, signal.SIGKILL)
    ended(run)
    assert deployment.state() != before
    assert len(deployment.journals) == 1
    elsewhere = smoked(LAB__LOCATION="112")
    assert any("changes of an earlier run are left at locations/111" in line for line in elsewhere[1])
    code, lines, errors = smoked()
    assert (code, errors, lines[0]) == (0, "", "undoing the changes of an earlier run")
    assert deployment.state() == before
    assert deployment.journals == []


def test_settings_that_are_missing_and_rejections_are_one_line(smoked: Smoked) -> None:
    for settings, code, sentence in (
        ({"LAB__USER_TOKEN": ""}, 2, "PROFILESVC_LAB__USER_TOKEN is not set (USER_TOKEN of make smoke)"),
        ({"LAB__USER_TOKEN": "x.y.z"}, 1, "PROFILESVC_LAB__USER_TOKEN was rejected"),
        ({"LAB__USER_TOKEN": "x.y.z\n"}, 1, "PROFILESVC_LAB__USER_TOKEN was rejected"),
        ({"LAB__USER_TOKEN": "hush hush"}, 1, "PROFILESVC_LAB__USER_TOKEN: a token is ASCII without spaces"),
        ({"LAB__USER_TOKEN": "h\u00fcsh"}, 1, "PROFILESVC_LAB__USER_TOKEN: a token is ASCII without spaces"),
        ({"LAB__PATIENCE_SECONDS": "x"}, 2, "PROFILESVC_LAB__PATIENCE_SECONDS: "),
        ({"LAB__PATIENCE_SECONDS": "90", "LAB__TARGET": "http://[::1"}, 1, "PROFILESVC_LAB__TARGET: "),
        ({"LAB__LOCATION": "211"}, 1, "the token's user has no locations/211"),
        ({"LAB__TARGET": "http://127.0.0.1:1"}, 1, "http://127.0.0.1:1 does not respond"),
    ):
        ended_with, lines, errors = smoked(NOTEBOOKS / "00_start_here.ipynb", **settings)
        assert (ended_with, lines, errors.count("\n")) == (code, [], 1)
        assert sentence in errors
        assert "hush" not in errors


def test_a_page_without_a_call_is_skipped() -> None:
    made = Page("06_the_whole_story", ran=2, skipped=Counter({"the provider": 9, "the clock": 1}))
    assert (made.state, made.line) == (
        "skipped",
        "06_the_whole_story: skipped, no call was made, 10 skipped (9 need the provider, 1 needs the clock)",
    )
