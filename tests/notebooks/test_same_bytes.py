"""The outputs of the notebooks depend on nothing: neither on the run nor on the machine."""

from pathlib import Path

import pytest

from support.effort import effort
from support.other_python import checked, page_of
from support.pages.notebooks import NOTEBOOKS

ELSEWHERE = {"TZ": "Pacific/Apia", "LC_ALL": "C.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "4242"}
SAMPLE = page_of("05")


def test_a_page_is_the_same_elsewhere(tmp_path: Path) -> None:
    done = checked(SAMPLE, HOME=str(tmp_path), **ELSEWHERE)
    assert done.stdout == "05_sync.ipynb: ok\n", done.stderr


@pytest.mark.long
@pytest.mark.parametrize("run", effort(["elsewhere"], ["first", "second", "third", "elsewhere"]))
def test_every_run_of_all_pages_is_the_same(run: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), **ELSEWHERE} if run == "elsewhere" else {}
    done = checked(*NOTEBOOKS, **variables)
    assert done.stdout == "".join(f"{path.name}: ok\n" for path in NOTEBOOKS), done.stderr
