"""Whole runs of `make smoke` on a served demo with its default limits: minutes, because budgets are waited for."""

from pathlib import Path

import pytest

from lab.smoke import KEY, NOTEBOOKS, OPEN, POST, SYNC, Gate, deployed, ended, page
from support.program import serving

pytestmark = pytest.mark.long
CLEAN = "all changes are undone"
WRITING = ("04_posts", "05_sync", "07_locations", "08_reviews", "09_errors")


def test_every_page_on_a_deployment(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment:
        before = deployment.state()
        code, lines, errors = deployment.smoked(*sorted(NOTEBOOKS.glob("*.ipynb")))
        assert (code, errors) == (0, ""), lines
        assert any(line.startswith("06_the_whole_story: skipped, no call was made") for line in lines)
        assert lines[-1].startswith("14 ok, 5 skipped; ")
        assert lines[-1].endswith(CLEAN)
        assert deployment.state() == before


def test_the_pages_that_write_on_a_deployment(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment:
        before = deployment.state()
        # How many edits reach the provider's limit depends on the speed of the machine.
        edits = f"while not lab.waited:\n    {SYNC}\n    {SYNC.replace('smoke.example', 'pier.example')}"
        pages = [*(NOTEBOOKS / f"{name}.ipynb" for name in WRITING), page(tmp_path, "edits", OPEN, edits)]
        code, lines, errors = deployment.smoked(*pages, write=True)
        assert (code, errors) == (0, ""), lines
        assert any(line.startswith("edits: ok 2 cells, waited ") for line in lines)
        assert lines[-1].endswith(CLEAN)
        assert deployment.state() == before


def test_a_provider_that_goes_down_during_a_run(tmp_path: Path) -> None:
    """A change that cannot be undone is named with its remedy; the next run undoes it once the provider is back."""
    for name in ("provider", "service"):
        (tmp_path / name).mkdir()
    gate = Gate(tmp_path)
    with (
        serving(tmp_path / "provider", "emulator", "serve", "--port", "0") as provider,
        deployed(tmp_path / "service", PROVIDER__URL=provider.url) as deployment,
    ):
        before = deployment.state()
        pages = [page(tmp_path, "goes_down", OPEN, KEY, POST, gate.cell, SYNC), NOTEBOOKS / "00_start_here.ipynb"]
        run = deployment.smoke(*pages, write=True, LAB__PATIENCE_SECONDS="6")
        gate.wait(run)
        provider.kill()
        gate.open()
        code, lines, errors = ended(run)
        assert (code, errors) == (1, "")
        report = lines[7:]
        assert report[0].startswith("goes_down: failed at cell [5] (): ProviderFailed: PROVIDER_API_ERROR (502)")
        assert report[1].endswith("; the other notebooks were not run; CHANGES ARE LEFT:")
        assert report[2].startswith("- the profile of locations/111 at the provider may not be restored (502 ")
        assert '-d \'{"websiteUri": "https://harbour.example/pier"' in report[2]
        assert report[3].startswith("- post locations/111/localPosts/")
        assert report[3].endswith("?locationId=locations/111'")
        assert report[4:] == ["Run the same command again to undo them."]

        code, lines, errors = deployment.smoked(NOTEBOOKS / "04_posts.ipynb", LAB__PATIENCE_SECONDS="0")
        assert (code, lines) == (1, ["undoing the changes of an earlier run"])
        assert errors.startswith("Changes of an earlier run are left:\n- ")
        with serving(tmp_path / "provider", "emulator", "serve", "--port", str(provider.port)):
            code, lines, errors = deployment.smoked(NOTEBOOKS / "00_start_here.ipynb")
            assert (code, errors) == (0, ""), lines
            assert deployment.state() == before
            assert deployment.journals == []
