"""Tables for spreadsheets: CSV files of sites, keys and the audit trail."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace

from quart import Response

from profilesvc.dashboard.visits import Visit
from profilesvc.domain.bidi import without_controls
from profilesvc.domain.time import iso
from profilesvc.services.accounts import exporting
from profilesvc.services.accounts.exporting import Make
from profilesvc.services.context import Services

# A spreadsheet runs a cell that starts with one of these, also in full width, as a formula.
_SIGNS = "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
_FORMULA = (*_SIGNS, "\t", "\r", "\n")
# A spreadsheet that separates cells by one of these starts a new cell within ours; quotes do not prevent it.
_NEW_CELL = re.compile(rf"""[;\t\r\n][\s"]*(?=[{re.escape(_SIGNS)}])""")
Rows = Callable[[Visit], AsyncIterator[Iterable[Sequence[object]]]]  # of a visit whose services read on a thread
_TYPES = {"csv": "text/csv; charset=utf-8", "zip": "application/zip"}
_BOM = "\ufeff"  # without it, Excel does not read UTF-8


def cell(value: object) -> object:
    """Return a value for a spreadsheet: a text that it would run as a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return "" if value is None else value
    value = without_controls(value)
    text = _NEW_CELL.sub(r"\g<0>'", value)
    return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text


async def table(visit: Visit, name: str, header: Sequence[str], rows: Rows) -> Response:
    """Return a CSV file to download, named after its content and the day. `rows` are read on a thread.

    Raises:
        ServiceError: RATE_LIMITED, SERVICE_UNAVAILABLE.
    """

    async def pieces(services: Services) -> AsyncGenerator[bytes]:
        head = _BOM.encode() + _lines([header])
        async for some in rows(replace(visit, services=services)):
            yield head + _lines([[cell(value) for value in row] for row in some])
            head = b""

    return await stream(visit, name, "csv", pieces)


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


async def stream(visit: Visit, name: str, ending: str, make: Make) -> Response:
    """Return a file to download that is sent while it is made, however long that takes.

    Raises:
        ServiceError: RATE_LIMITED, SERVICE_UNAVAILABLE.
    """
    pieces = await exporting.begin(visit.services, visit.caller.owner_id, make)
    response = Response(pieces, 200, _headers(visit, name, ending), content_type=_TYPES[ending])
    response.timeout = None
    return response


async def json_file(visit: Visit, name: str, content: object) -> Response:
    text = await asyncio.to_thread(json.dumps, content, indent=2, ensure_ascii=False)
    return Response(text, 200, _headers(visit, name, "json"), content_type="application/json")


def _headers(visit: Visit, name: str, ending: str) -> dict[str, str]:
    return {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}-{iso(visit.now)[:10]}.{ending}"',
        "X-Content-Type-Options": "nosniff",
    }
