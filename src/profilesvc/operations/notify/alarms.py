"""The rule for alarms of a sweep: a fault of our own alarms no owner (docs/events.md)."""

import logging

from profilesvc.domain.heartbeats import NEXT_HEARTBEAT_SECONDS
from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND, Clock, iso
from profilesvc.storage.notify.watches import Counted

log = logging.getLogger("profilesvc")
OUTAGE = 5 * MINUTE  # without a step of a sweep: the service, its database or its machine did not run
TO_REPORT = NEXT_HEARTBEAT_SECONDS * SECOND + 5 * MINUTE  # one full interval of a site, and its delay
TOGETHER = 10 * MINUTE
MANY_PERCENT, MANY = 20, 20  # of the live keys, and at least as many
HELD_FOR, RELEASED_FOR = DAY, HOUR


class Alarms:
    """The rules, on the instants that sweeps remember.

    These are: `ended`, the last step of a sweep; `resumed`, the end of the last outage; `held`, since when alarms are
    held back, or 0; `released`, when the operator or the passing of a day ended that.
    """

    def __init__(self, clock: Clock, marks: dict[str, int]) -> None:
        self._clock, self._stored = clock, marks
        self._marks = dict(marks)
        self._is_silent = False

    @property
    def is_first_sweep(self) -> bool:
        """Return whether no sweep of this database has ended."""
        return "ended" not in self._stored

    @property
    def changes(self) -> dict[str, int]:
        """The instants to remember. The operator may have released in the meantime, so others are not written."""
        return {name: at for name, at in self._marks.items() if self._stored.get(name) != at}

    def step(self) -> int:
        """Note that the sweep runs, and return the time. A long pause since the last step was an outage."""
        now = self._clock.now()
        if (pause := now - self._marks.get("ended", now)) > OUTAGE:
            log.warning("sweep: no sweep ran for %d s; each site has one interval to report first", pause // SECOND)
            self._marks["resumed"] = now
        self._marks["ended"] = now
        return now

    def judge(self, counts: Counted, now: int) -> None:
        """Start or stop to hold alarms back, from the counts of all keys."""
        released = self._marks.get("released", 0)
        self._is_silent = counts.online >= MANY and released < counts.newest <= now - TOGETHER
        since, are_many = self._marks.get("held", 0), _are_many(counts.waiting, counts.live)
        if not since:
            self._marks["held"] = self._start(counts, now)
        elif released >= since:
            self._stop()
        elif now - since > HELD_FOR:
            self._stop()
            self._marks["released"] = now
        elif not (self._is_silent or are_many):
            self._stop()
            self._marks["resumed"] = now  # most sites are back, and the others may be on their way

    def may_publish(self, now: int) -> bool:
        """Return whether a sweep that started at `now` may publish that a site is idle or offline."""
        has_settled = now - self._marks.get("resumed", 0) > TO_REPORT
        return has_settled and not self._is_silent and not self._marks.get("held")

    def _start(self, counts: Counted, now: int) -> int:
        """Return since when alarms are held back, 0 if they are not."""
        if self._is_silent and counts.newest <= now - TO_REPORT:
            problem = f"no site has reported since {iso(counts.newest)}"
        elif _are_many(counts.silent, counts.live) and now - self._marks.get("released", 0) > RELEASED_FOR:
            problem = f"{counts.silent} of {counts.live} sites fell silent within ten minutes"
        else:
            return 0
        log.error(
            "sweep: %s; the owners are alerted only after the operator runs `profilesvc alerts release`, most sites "
            "are back, or a day has passed",
            problem,
        )
        return now

    def _stop(self) -> None:
        log.warning("sweep: alarms are no longer held back")
        self._marks["held"], self._is_silent = 0, False


def _are_many(count: int, live: int) -> bool:
    return count >= MANY and count * 100 > live * MANY_PERCENT
