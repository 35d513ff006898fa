"""The current request: its caller, origin, rate limits and deadline."""

import math
from contextvars import ContextVar
from dataclasses import dataclass, field

from profilesvc.domain.domains import Origin
from profilesvc.domain.rates import Counted


@dataclass(slots=True)
class RequestInfo:
    """The state of a request; the defaults are those of a command line.

    `address` is the client's (D-50). `actor` is `client` until the caller is authenticated, then `user:ID` or
    `key:ID`. `origin_header` is None if the request does not come from a page, and `origin` is None if the header is
    not a web origin. `may_read` means that the page may read the response; it can change during the request.
    """

    address: str | None = None
    request_id: str | None = None
    actor: str = "operator"
    origin_header: str | None = None
    origin: Origin | None = None
    may_read: bool = False
    buckets: list[Counted] = field(default_factory=list)
    database_seconds: float = math.inf  # the remaining time for database work, if it is less than the usual limit
    route: str = "unknown"  # the documented route for metrics and logs, because a path could contain secrets
    outcome: str = "ok"  # or the code of the failure, for metrics

    @property
    def tightest(self) -> Counted | None:
        """The bucket with the fewest remaining requests; among empty ones, the one that is empty longest."""
        return min(self.buckets, key=lambda counted: (counted.standing.left, -counted.standing.wait), default=None)


# The only context variable, because audit rows, rate limits and the database's deadline need the request far below the
# API. The guard sets it, and tasks of the request inherit it. A request inside the process of its caller has its own.
serving: ContextVar[RequestInfo | None] = ContextVar("request", default=None)


def current_request() -> RequestInfo:
    """Return the current request, or the state of a command line outside of one."""
    return serving.get() or RequestInfo()
