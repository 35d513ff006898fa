"""Tables for spreadsheets: CSV files of sites, keys and the audit trail."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence

from quart import Response

from profilesvc.dashboard.visits import Visit
from profilesvc.domain.time import iso

# A spreadsheet runs a cell that starts with one of these, also in full width, as a formula.
_SIGNS = "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
_FORMULA = (*_SIGNS, "\t", "\r", "\n")
# A spreadsheet that separates cells by one of these starts a new cell within ours; quotes do not prevent it.
_NEW_CELL = re.compile(rf"""[;\t\r\n][\s"]*(?=[{re.escape(_SIGNS)}])""")
_BOM = "\ufeff"  # without it, Excel does not read UTF-8


def cell(value: object) -> object:
    """Return a value for a spreadsheet: a text that it would run as a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = _NEW_CELL.sub(r"\g<0>'", value)
    return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text


def file(visit: Visit, name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Return a CSV file to download, named after its content and the day."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)
    headers = _headers(visit, name, "csv")
    return Response(_BOM + text.getvalue(), 200, headers, content_type="text/csv; charset=utf-8")


def stream(visit: Visit, name: str, content: AsyncIterator[bytes]) -> Response:
    """Return a ZIP file to download that is sent while it is made, however long that takes."""
    response = Response(content, 200, _headers(visit, name, "zip"), content_type="application/zip")
    response.timeout = None
    return response


def json_file(visit: Visit, name: str, content: object) -> Response:
    """Return content as a file of JSON to download."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    return Response(text, 200, _headers(visit, name, "json"), content_type="application/json")


def _headers(visit: Visit, name: str, ending: str) -> dict[str, str]:
    return {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}-{iso(visit.now)[:10]}.{ending}"',
        "X-Content-Type-Options": "nosniff",
    }
