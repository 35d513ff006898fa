"""The pages together: every operation is called, every error code is met, every link leads somewhere."""

import re

from profilesvc.contract.errors import CATALOGUE
from support.pages.notebooks import FOLDER, NOTEBOOKS, load, operation_of, operations
from support.pages.tables import errors_table

# Codes that no page can provoke: what only a defect or a broken network brings about.
BEYOND_A_PAGE = {"INTERNAL_ERROR", "REQUEST_TIMEOUT"}


def test_every_operation_is_called_with_success_in_some_page() -> None:
    calls = [line for path in NOTEBOOKS for line in load(path)["metadata"]["profilesvc"]["calls"]]
    done = {operation_of(line) for line in calls if line.rpartition(" ")[2].startswith("2")}
    assert operations().keys() - done == set(), "call these in a notebook and run `make notebooks-update`"


def test_every_error_code_is_met_in_some_page() -> None:
    met = {code for path in NOTEBOOKS for code in load(path)["metadata"]["profilesvc"]["codes"]}
    assert CATALOGUE.keys() - met == BEYOND_A_PAGE


def test_the_table_of_the_errors_page_is_the_catalogue() -> None:
    """Codes, statuses and their order; where the page advises a retry, our own client retries, or the caller must."""
    (page,) = (path for path in NOTEBOOKS if path.stem == "09_errors")
    text = "".join("".join(cell["source"]) + "\n" for cell in load(page)["cells"] if cell["cell_type"] == "markdown")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.+?) \| .+ \|$", text, re.MULTILINE)
    generated = re.findall(r"^\| \[`(\w+)`\]\S+ \| (\d+) \| (.+?) \|", errors_table(), re.MULTILINE)
    assert sorted(row[:2] for row in rows) == sorted(row[:2] for row in generated)
    assert [status for _, status, _ in rows] == sorted(status for _, status, _ in rows)
    retried = {code for code, _, retry in generated if retry != "no"}
    # The caller gets a new token first; our client does so by itself and does not call that a retry.
    assert {code for code, _, retry in rows if retry != "no"} == retried | {"AUTH_INVALID_TOKEN"}


def test_links_lead_to_pages_that_exist() -> None:
    for path in NOTEBOOKS:
        for target in re.findall(r"\]\((\d\d_\w+\.ipynb)\)", path.read_text("utf-8")):
            assert (FOLDER / target).exists(), f"{path.stem} links to {target}"
