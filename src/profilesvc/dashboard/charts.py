"""Charts as the templates draw them: units of their pictures, and the same numbers for a table."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from profilesvc.domain.time import SECOND

HEIGHT, STEP = 64, 20
WIDTH = 16  # of a bar, from one bar to the next, and across


@dataclass(frozen=True, slots=True)
class Bar:
    """A day with its count, and its bar in the picture."""

    day: date
    count: int
    x: int
    height: float


@dataclass(frozen=True, slots=True)
class Days:
    """A chart with a bar for each day, today last; the highest bar is as high as the picture if it is `most`."""

    bars: list[Bar]
    most: int

    @property
    def width(self) -> int:
        return len(self.bars) * STEP

    @property
    def least(self) -> int:
        """The lowest count of the days before today, which is not over."""
        return min(bar.count for bar in self.bars[:-1])

    @property
    def greatest(self) -> int:
        """The highest count of the days before today."""
        return max(bar.count for bar in self.bars[:-1])


def days(counts: list[int], most: int, now: int) -> Days | None:
    """Return the chart of counts for each day (UTC), or None without a count. `most` is the count of a full bar."""
    if not any(counts):
        return None
    today = datetime.fromtimestamp(now / SECOND, UTC).date()
    first = today - timedelta(len(counts) - 1)
    most = max(most, *counts)
    bars = [
        Bar(first + timedelta(number), count, number * STEP, round(max(count * HEIGHT / most, 1 if count else 0), 1))
        for number, count in enumerate(counts)
    ]
    return Days(bars, most)
