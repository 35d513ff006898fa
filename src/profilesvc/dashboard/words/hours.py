"""Opening hours as a person writes them: a line of times for each day, and a line for each special date.

The plugin and the TypeScript client read the same texts. `data/fixtures/hours_cases.json` has the cases of all three.
"""

import datetime
import itertools
import re
import unicodedata
from collections.abc import Iterator

from profilesvc.contract.json import JsonObject
from profilesvc.domain.hours import DAY, DAYS

TO = "\N{EN DASH}"
RANGES = "must be times such as 09:00-17:30, with commas between several"
TIMES = "must have times from 00:00 to 24:00, and open before 24:00"
OVERLAP = "must not have times that overlap"
DATES = "must have a line such as `2026-12-24 09:00-12:00` or `2026-12-25 closed` for each date"
REAL_DATES = "must have dates that exist, with their year"
NEXT_DAY = "must close at 11:59 or earlier on the next day, less than 24 hours after it opens"
LONG = 16 * 60  # minutes that are usually a mistake, such as 17:00-09:00 for 09:00-17:00
_LONGEST, _MOST_DATES = 300, 1_000  # characters of a line, periods
_LATEST = DAY + 12 * 60

_DASH = re.compile("[\u2010-\u2015\u2212\u301c~]")
_SPACES = re.compile("[ \t\r\n]+")
_CLOSED = re.compile(r"(?:closed|geschlossen|zu|ruhetag)[.!]?")
_ALL_DAY = re.compile(
    r"(?:open )?(?:24 ?(?:hours?|hrs?|h|stunden|std\.?)|24/7|all day|around the clock|durchgehend|ganztägig|ganztags"
    r"|rund um die uhr)(?: (?:open|geöffnet))?[.!]?"
)
_FILLED = re.compile(r"^(?:open |durchgehend |von |from )+|(?: durchgehend| geöffnet| open)*\.?$")
_NEXT = re.compile(r" ?(?:[,;&+/]| and | und | u\. ) ?")
_TIME = (
    r"(?:(?:12 )?(midnight|mitternacht|noon|mittags?)|([0-9]{1,2}?)(?:(?:[:.h]| ?uhr )?([0-9]{2}))?"
    r" ?(?:(a\.?m\.?|p\.?m\.?|a|p)|uhr|h|hrs?\.?|hours|o'clock)?)"
)
_RANGE = re.compile(rf"{_TIME} ?(?:-+|to|bis|until|till?) ?{_TIME}")
_DATE = re.compile(
    r"(?:([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})|([0-9]{1,2})\. ?([0-9]{1,2})\. ?([0-9]{4}))(?::| -)? (.*)"
)
_LINES = re.compile("\r\n|\r|\n")


def day_hours(periods: list[JsonObject], day: str) -> str:
    """Return the hours of a day: `09:00-12:00, 13:00-18:00`; empty if it is closed."""
    own = sorted((one for one in periods if one["openDay"] == day), key=lambda one: minutes_of(one.get("openTime")))
    return ", ".join(range_of(one) for one in own)


def periods_of(day: str, text: str) -> list[JsonObject]:
    """Return the periods of a day. One that closes at or before the time at which it opens closes on the next day.

    Raises:
        ValueError: The text is something else.
    """
    following = DAYS[(DAYS.index(day) + 1) % len(DAYS)]
    return [
        {
            "openDay": day,
            "openTime": _time(start),
            "closeDay": day if end > start else following,
            "closeTime": _time(end),
        }
        for start, end in _spans(text)
    ]


def special_hours(periods: list[JsonObject]) -> str:
    """Return a line for each period of special hours."""
    lines = []
    for one in periods:
        date = one["startDate"]
        day = f"{date['year']:04}-{date['month']:02}-{date['day']:02}"
        lines.append(f"{day} {'closed' if one.get('closed') else range_of(one)}")
    return "\n".join(lines)


def dates_of(text: str) -> list[JsonObject]:
    """Return the periods of special hours, by the rule of `periods_of`.

    Raises:
        ValueError: A line is something else.
    """
    periods: list[JsonObject] = []
    for line in _LINES.split(text):
        if len(line) > _LONGEST:
            raise ValueError(DATES)
        plain = _plain(line)
        if not plain:
            continue
        match = _DATE.fullmatch(plain)
        if match is None:
            raise ValueError(DATES)
        parts = match.groups()[:3] if match[1] else match.groups()[5:2:-1]
        periods += _date_periods(
            dict(zip(("year", "month", "day"), map(int, filter(None, parts)), strict=True)), match[7]
        )
        if len(periods) > _MOST_DATES:
            raise ValueError(f"must have at most {_MOST_DATES} items")
    return periods


def _date_periods(date: JsonObject, text: str) -> Iterator[JsonObject]:
    try:
        day = datetime.date(**date)
    except ValueError:
        raise ValueError(REAL_DATES) from None
    spans = _spans(text)
    if not spans:
        yield {"startDate": date, "closed": True}
    for start, end in spans:
        until = {} if end > start else {"endDate": _date_after(day)}
        if until and (end + DAY >= _LATEST or end == start):
            raise ValueError(NEXT_DAY)
        yield {"startDate": date, **until, "openTime": _time(start), "closeTime": _time(end)}


def _date_after(day: datetime.date) -> JsonObject:
    try:
        after = day + datetime.timedelta(days=1)
    except OverflowError:
        raise ValueError(REAL_DATES) from None
    return {"year": after.year, "month": after.month, "day": after.day}


def long_hours(period: JsonObject) -> str:
    """Return how long a period is, such as `16:00`, if it is usually a mistake; empty if not.

    That is more than 16 hours, or 16 hours past midnight. All day, 00:00 to 24:00, is none.
    """
    start, end = minutes_of(period.get("openTime")), minutes_of(period.get("closeTime"))
    length = end - start if end > start else end - start + DAY
    is_long = length > LONG or (length == LONG and end <= start)
    return f"{length // 60}:{length % 60:02}" if is_long and (start, length) != (0, DAY) else ""


def day_after(day: str) -> str:
    return DAYS[(DAYS.index(day) + 1) % len(DAYS)]


def overnight(day: str, text: str) -> list[str]:
    """Return the times of a day that close on the next one, as `17:00-01:00`; none if the text is not valid."""
    try:
        return [range_of(one) for one in periods_of(day, text) if one["closeDay"] != day]
    except ValueError:
        return []


def _plain(text: str) -> str:
    """Return a text in lower case, with plain digits, spaces, dashes and commas instead of typographic ones."""
    narrow = _DASH.sub("-", unicodedata.normalize("NFKC", text)).replace("\u3001", ",")
    return _SPACES.sub(" ", narrow.lower()).strip(" ")


def _spans(text: str) -> list[tuple[int, int]]:
    """Return when each part opens and closes, in minutes from midnight. 00:00-00:00 is 00:00-24:00, all day."""
    if len(text) > _LONGEST:
        raise ValueError(RANGES)
    plain = _plain(text)
    if not plain or _CLOSED.fullmatch(plain):
        return []
    if _ALL_DAY.fullmatch(plain):
        return [(0, DAY)]
    spans = [_span(_FILLED.sub("", part)) for part in _NEXT.split(plain) if part] or [_span(plain)]
    covered = sorted((start, end if end > start else end + DAY) for start, end in spans)
    if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(covered)):
        raise ValueError(OVERLAP)
    return spans


def _span(text: str) -> tuple[int, int]:
    """Return when a part opens and closes. If only one time has am or pm, the shorter hours are meant."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(RANGES)
    (_, _, _, first), (_, _, _, second) = ends = match.groups()[:4], match.groups()[4:]
    opens, closes = (_times(*end, either=bool(first or second)) for end in ends)
    start, end = min(itertools.product(opens, closes), key=lambda span: (span[1] - span[0] - 1) % DAY)
    if start == DAY:
        raise ValueError(TIMES)
    return (0, DAY) if (start, end) == (0, 0) else (start, end)


def _times(word: str | None, hours: str | None, minutes: str | None, half: str | None, *, either: bool) -> list[int]:
    """Return the minutes from midnight that a time can mean: two, if it can be `either` half of the day."""
    if word:
        return [0 if word in ("midnight", "mitternacht") else DAY // 2]
    hour, minute = int(hours or 0), int(minutes or 0)
    if minute > 59 or hour * 60 + minute > DAY or (half and not 1 <= hour <= 12):
        raise ValueError(TIMES)
    if half or (either and 1 <= hour <= 12):
        halves = [hour % 12 * 60 + minute, (hour % 12 + 12) * 60 + minute]
        return halves if not half else [halves[half.startswith("p")]]
    return [hour * 60 + minute]


def range_of(period: JsonObject) -> str:
    """Return the times of a period: `09:00-17:30`."""
    return f"{clock(period.get('openTime'))}-{clock(period.get('closeTime'))}"


def minutes_of(time: JsonObject | None) -> int:
    """Return the minutes from midnight to a time; the provider leaves out zeros."""
    return int((time or {}).get("hours", 0) * 60 + (time or {}).get("minutes", 0))


def clock(time: JsonObject | None) -> str:
    """Return a time as `09:30`."""
    hours, minutes = divmod(minutes_of(time), 60)
    return f"{hours:02}:{minutes:02}"


def _time(minutes: int) -> JsonObject:
    parts = {"hours": minutes // 60, "minutes": minutes % 60}
    return {name: value for name, value in parts.items() if value}
