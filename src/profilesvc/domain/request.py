"""The request that is being served: who asks, from where, and what it has used so far."""

import math
from contextvars import ContextVar
from dataclasses import dataclass, field

from profilesvc.domain.domains import Origin
from profilesvc.domain.rates import Counted


@dataclass(slots=True)
class RequestInfo:
    """What is known of a request; the defaults are those of a command line.

    `address` is the client's (D-50). `actor` is `client` until the caller is authenticated, then `user:ID` or
    `key:ID`. `origin_header` is None if the request comes from no page, and `origin` is None if the header names no
    web origin. `may_read`: that page may read the response, as far as is known by now.
    """

    address: str | None = None
    request_id: str | None = None
    actor: str = "operator"
    origin_header: str | None = None
    origin: Origin | None = None
    may_read: bool = False
    buckets: list[Counted] = field(default_factory=list)
    database_seconds: float = math.inf  # left for units of the database, if less than each may have
    route: str = "unknown"  # as documented, for metrics and logs: a path could hold secrets
    outcome: str = "ok"  # or the code of the failure, for metrics

    @property
    def tightest(self) -> Counted | None:
        """The bucket with the least left; of empty ones the one that stays empty longest."""
        return min(self.buckets, key=lambda counted: (counted.standing.left, -counted.standing.wait), default=None)


# The only context variable: audit rows, rate limits and the database's deadline need the request far below the API.
# The guard sets it. Its tasks inherit it, and a request inside the process of its caller hides the caller's.
serving: ContextVar[RequestInfo | None] = ContextVar("request", default=None)


def current() -> RequestInfo:
    """Return the request that is being served; outside of one, a new operator's."""
    return serving.get() or RequestInfo()
