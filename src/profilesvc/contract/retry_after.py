"""The header Retry-After, read by one rule in every client of this project (RFC 9110 §10.2.3)."""

import re
from datetime import UTC, datetime

LONGEST = 31 * 86_400  # seconds; a monthly quota resets within it
_SECONDS = re.compile(r"[0-9]+\Z", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)"
# The form of today, and two that recipients must accept (RFC 9110 §5.6.7). The names of days are not compared.
_DATES = [
    re.compile(rf"(?:{pattern})\Z", re.ASCII)
    for pattern in (
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
        rf"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>\d\d| \d) {_TIME} (?P<year>\d{{4}})",
    )
]


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait, from 0 to 31 days, or None if there is no header or an invalid one.

    `now` is in seconds since the epoch. A date in the past is 0.
    """
    text = (value or "").strip(" \t")
    if _SECONDS.match(text):
        return float(LONGEST if len(text.lstrip("0")) > 9 else min(int(text), LONGEST))
    for pattern in _DATES:
        if match := pattern.match(text):
            at = _instant(match, now)
            return None if at is None else min(max(at - now, 0.0), LONGEST)
    return None


def _instant(match: re.Match[str], now: float) -> float | None:
    year, month = int(match["year"]), _MONTHS.index(match["month"]) + 1
    day = int(match["day"])
    if len(match["year"]) == 2:  # more than 50 years in the future means the past (RFC 9110 §5.6.7)
        this_year = datetime.fromtimestamp(now, UTC).year
        year += this_year // 100 * 100
        year -= 100 if year > this_year + 50 else 0
    try:
        midnight = datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return midnight + 3_600 * int(match["hour"]) + 60 * int(match["minute"]) + int(match["second"])
