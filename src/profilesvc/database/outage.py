"""The log of outages of the database, and whether it is writing that fails."""

import logging
import time
from collections.abc import Callable

from profilesvc.database.unavailable import as_unavailable, is_for_writing, is_lost, reason, sqlstate
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.problems import counted

EVERY_SECONDS = 60.0
SETTLED_SECONDS = 1.0  # without a failure until it counts as back, because old connections may work while new ones fail
log = logging.getLogger("profilesvc")


class Outage:
    """The log of outages: a line when the database is lost or back, and one a minute meanwhile, not one per request."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lost_at: float | None = None
        self._failed_at = self._worked_at = self._logged_at = float("-inf")
        self._for_writing = False
        self._rejected = 0

    def failed(self, error: Exception, started_at: float) -> None:
        """Note a unit that failed; a timeout means lost if no other unit has succeeded since `started_at`."""
        is_timeout = isinstance(error, TimeoutError) and not sqlstate(error) and self._worked_at < started_at
        if not (is_timeout or is_lost(error)):
            return
        self._failed_at = self._now()
        if self._lost_at is None:
            self._lost_at = self._logged_at = self._failed_at
            self._rejected = 0
            log.error("database lost: %s", reason(error))
        self._for_writing = is_for_writing(error)

    def worked(self, *, wrote: bool) -> None:
        """Note a unit that succeeded."""
        now = self._worked_at = self._now()
        if self._lost_at is None or now < self._failed_at + SETTLED_SECONDS or (self._for_writing and not wrote):
            return
        log.warning("database back after %.0f s, %s rejected", now - self._lost_at, counted(self._rejected, "request"))
        self._lost_at, self._rejected = None, 0
        self._logged_at = float("-inf")

    @property
    def is_for_writing(self) -> bool:
        """Return whether the last write failed because the disk is full or the database is read-only."""
        return self._lost_at is not None and self._for_writing

    def count_rejected(self, error: ServiceError, requests: int = 1) -> bool:
        """Count the requests that end with this error; return False if the database did not cause it."""
        cause = error.__cause__
        if cause is None or as_unavailable(cause) is None:
            return False
        self._rejected += requests
        if (now := self._now()) >= self._logged_at + EVERY_SECONDS:
            state = "busy" if self._lost_at is None else f"still lost after {now - self._lost_at:.0f} s"
            log.warning("database %s: %s; %s rejected", state, reason(cause), counted(self._rejected, "request"))
            self._logged_at = now
            if self._lost_at is None:
                self._rejected = 0
        return True
