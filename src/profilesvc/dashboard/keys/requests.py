"""The requests of a key: a bar for each day, the last errors, the log as pages and as a file."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.common import MAX_LIMIT
from profilesvc.contract.json import JsonObject
from profilesvc.contract.requests import MAX_DAYS, KeyRequestsQuery, LoggedRequest, UsageDay
from profilesvc.dashboard import exports, pages
from profilesvc.dashboard.listing import Choices, Listing
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import requests as request_words
from profilesvc.services import keys
from profilesvc.services.insight import key_requests

blueprint = Blueprint("key_requests", __name__)

CHOICES: Choices = {"show": ("errors",)}
MOST = 10_000  # requests of a file
_SIZE, _LAST = 50, 5
_HEIGHT, _STEP = 40, 10
_GAP = 2  # of the bars, in units of the picture
_HEADER = (
    *("Time", "Method", "Path", "Status", "Code", "Reason", "Field"),
    *("What happened", "Milliseconds", "Request id", "Network"),
)


class Sums(NamedTuple):
    """The requests and the errors of some days."""

    requests: int
    errors: int

    @classmethod
    def of(cls, days: Sequence[UsageDay]) -> "Sums":
        errors = sum(day.client_errors + day.server_errors for day in days)
        return cls(sum(day.requests for day in days), errors)


def _bars(usage: Sequence[UsageDay]) -> dict[str, str]:
    """Return the path of the bars of successes and of that of errors, which are below; the oldest day is left."""
    most = max((day.requests for day in usage), default=0)
    paths = {"online": "", "offline": ""}
    for number, day in enumerate(reversed(usage)):
        sums, bottom = Sums.of([day]), _HEIGHT
        for name, count in (("offline", sums.errors), ("online", sums.requests - sums.errors)):
            if count:  # at least one unit, so that a single error among thousands of requests is seen
                height = max(round(_HEIGHT * count / most), 1)
                bottom -= height
                paths[name] += f"M{number * _STEP} {max(bottom, 0)}h{_STEP - _GAP}v{height}h-{_STEP - _GAP}z"
    return paths


async def usage_of(visit: Visit, client_id: str) -> JsonObject:
    """Return what the page of a key shows of its requests."""
    query = KeyRequestsQuery(days=MAX_DAYS, errors_only="true", limit=_LAST)
    log = await key_requests.read(visit.services, visit.caller, client_id, query)
    return {
        "usage": log.usage,
        "today": Sums.of(log.usage[:1]),
        "week": Sums.of(log.usage[:7]),
        "month": Sums.of(log.usage),
        "bars": _bars(log.usage),
        "width": len(log.usage) * _STEP,
        "last_errors": log.requests,
        **_words(visit),
    }


def _words(visit: Visit) -> JsonObject:
    has_guides = visit.services.settings.effective_guides_folder is not None
    return {"request_words": request_words, "has_guides": has_guides}


@view(blueprint, "/keys/<client_id>/requests")
async def show(visit: Visit, client_id: str) -> Response:
    key = await keys.get(visit.services, visit.caller, client_id)
    listing = _listing(client_id)
    given = {"before": request.args.get("before") or None, "limit": _SIZE, "errors_only": _errors_only(listing)}
    query = checked(KeyRequestsQuery, given, "query")
    log = await key_requests.read(visit.services, visit.caller, client_id, query)
    return pages.page(
        "requests.html",
        visit=visit,
        key=key,
        listing=listing,
        found=log.requests,
        older=listing.link(before=log.next_before) if log.next_before else "",
        is_first=query.before is None,
        most=MOST,
        **_words(visit),
    )


@view(blueprint, "/keys/<client_id>/requests.csv")
async def export(visit: Visit, client_id: str) -> Response:
    """Return the requests that the page would show, the newest `MOST`."""
    errors_only = _errors_only(_listing(client_id))

    async def rows(visit: Visit) -> AsyncIterator[list[tuple[object, ...]]]:
        before = None
        for _ in range(MOST // MAX_LIMIT):
            values = {"before": before, "limit": MAX_LIMIT, "errors_only": errors_only}
            query = checked(KeyRequestsQuery, values, "query")
            piece = await key_requests.read(visit.services, visit.caller, client_id, query)
            yield [_row(one) for one in piece.requests]
            before = piece.next_before
            if before is None:
                break

    return await exports.table(visit, "requests", _HEADER, rows)


def _listing(client_id: str) -> Listing:
    return Listing.of(f"{pages.PATH}/keys/{client_id}/requests", request.args, CHOICES)


def _errors_only(listing: Listing) -> str:
    return "true" if listing.get("show") else "false"


def _row(one: LoggedRequest) -> tuple[object, ...]:
    what = request_words.explained(one).what if one.code else ""
    error = one.status, one.code, one.reason, one.field
    return (one.at, one.method, one.path, *error, what, one.duration_ms, one.request_id, one.ip_prefix)
