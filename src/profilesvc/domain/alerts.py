"""The time to send an alert: quiet time and daily digest, in the time zone of its address."""

from datetime import UTC, datetime, timedelta
from datetime import time as clock_time

from profilesvc.contract.zones import zone_of


def next_time(at: str, zone: str, after: int) -> int:
    """Return the first instant after `after` at which the clocks of a zone show `at`, such as 08:00.

    A time that does not exist on a day, because the clocks are put forward, is as much later as they are.
    """
    local = _local(after, zone)
    for days in range(3):
        instant = _instant(local + timedelta(days=days), at, zone)
        if instant > after:
            return instant
    raise AssertionError("a day has 25 hours at most")


def quiet_until(start: str, end: str, zone: str, now: int) -> int | None:
    """Return when the quiet time ends, or None outside of it. It may contain midnight; equal times mean none."""
    local_time = f"{_local(now, zone):%H:%M}"
    is_quiet = start <= local_time < end if start <= end else local_time >= start or local_time < end
    if not is_quiet:
        return None
    until = next_time(end, zone, now)
    # When the clocks are put back, they show an hour twice. `next_time` knows only its first occurrence.
    again = _instant(_local(now, zone), end, zone, fold=1)
    return min(until, again) if again > now and f"{_local(again, zone):%H:%M}" == end else until


def _local(instant: int, zone: str) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC).astimezone(zone_of(zone))


def _instant(day: datetime, at: str, zone: str, *, fold: int = 0) -> int:
    local = datetime.combine(day.date(), clock_time.fromisoformat(at), zone_of(zone)).replace(fold=fold)
    return round(local.timestamp() * 1000)
