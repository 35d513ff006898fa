"""The charts of the notebooks: what lasts how long, and what it costs."""

from collections.abc import Mapping, Sequence

from profilesvc.contract.common import parse_timestamp
from profilesvc.contract.json import JsonObject
from profilesvc.domain.problems import counted
from profilesvc.lab.views.drawing import BLUE, LABEL, TOP, WIDTH, Bar, bars, heading, line, rect, svg, text
from profilesvc.lab.views.record import Call
from profilesvc.lab.views.view import AMBER, GREEN, GREY, RED, View

_DAY, _HOUR = 86_400, 3_600
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_STATES = {"next": AMBER, "announced": AMBER, "active": GREEN, "retired": GREY}


class Plots:
    """Charts as methods of the lab: `lab.plot_lifetimes(tokens)`."""

    @staticmethod
    def plot_lifetimes(tokens: JsonObject) -> View:
        """Draw how long the tokens of a token response are valid, in days."""
        rows = []
        for label, name in (("access token", "expires_in"), ("refresh token", "refresh_expires_in")):
            if name in tokens:
                days = tokens[name] / _DAY
                rows.append((label, [Bar(0, days, GREEN if name == "expires_in" else AMBER, f"{days:g} days")]))
        longest = max(bar.end for _, drawn in rows for bar in drawn)
        parts = next((count for count in (3, 4, 5) if longest % count == 0), 1)
        ticks = [(longest * part / parts, f"day {longest * part / parts:g}") for part in range(parts + 1)]
        return bars("How long the tokens are valid", rows, ticks)

    @staticmethod
    def plot_heartbeats(history: Sequence[JsonObject]) -> View:
        """Draw the hours of silence of a connection's history, with the limits of `idle` and `offline`."""
        start = parse_timestamp(history[0]["from"])

        def hours(moment: str) -> float:
            return (parse_timestamp(moment) - start).total_seconds() / _HOUR

        points, heard = [(0.0, 0.0)], 0.0
        for entry in history:
            begin, end = hours(entry["from"]), hours(entry["to"])
            if entry["state"] == "online":  # the last heartbeat was two hours before the end, or later
                heard = max(begin, end - 2)
                points += [(begin, 0.0), (heard, 0.0)]
            points.append((end, end - heard))
        return _silence(points)

    @staticmethod
    def plot_signing_keys(seen: Sequence[tuple[int, Sequence[tuple[str, str]]]]) -> View:
        """Draw the states of signing keys, from observations of (day, [(name, state), …])."""
        rows: dict[str, list[Bar]] = {}
        for (day, states), (until, _) in zip(seen, [*seen[1:], seen[-1]], strict=True):
            for name, state in states:
                if state == "removed":
                    continue
                drawn = rows.setdefault(name, [])
                if drawn and drawn[-1].text == state and drawn[-1].end == day:
                    drawn[-1] = Bar(drawn[-1].begin, until, drawn[-1].colour, state)
                else:
                    drawn.append(Bar(day, until, _STATES.get(state, GREY), state))
        first, last = seen[0][0], seen[-1][0]
        ticks = [(first + (last - first) * part / 4, f"day {first + (last - first) * part // 4}") for part in range(5)]
        legend = [(state, _STATES[state]) for state in ("announced", "active", "retired")]
        return bars("Signing keys", list(rows.items()), ticks, legend)

    @staticmethod
    def plot_roll(overlap_seconds: int) -> View:
        """Draw which secrets and tokens of a key are valid before and after a roll at hour 0."""
        overlap = overlap_seconds / _HOUR
        before, after = -(overlap / 2 or 1), overlap + (overlap / 2 or 1)
        tokens = Bar(before, after, GREEN, "valid") if overlap else Bar(before, 0, RED, "end at once")
        old = Bar(
            before, overlap, AMBER if overlap else RED, f"valid {overlap:g} h longer" if overlap else "ends at once"
        )
        rows = [("older secret", [old]), ("new secret", [Bar(0, after, GREEN, "valid")]), ("earlier tokens", [tokens])]
        ends = [(overlap, "overlap ends")] if overlap else []
        return bars(f"A roll with an overlap of {overlap:g} h", rows, [(before, ""), (0.0, "roll"), *ends, (after, "")])

    @staticmethod
    def plot_family(pairs: Sequence[tuple[str, str]], reused: int) -> View:
        """Draw the pairs of a family as (name, note). The refresh token of pair number `reused` was used twice."""
        width = (WIDTH - 20) / len(pairs)
        shapes = []
        for number, (name, note) in enumerate(pairs):
            left = 10 + number * width
            colour = RED if number == reused else GREY
            shapes += [rect(left, 30, width - 40, 34, colour), text(left + 8, 52, name, fill="#fff")]
            shapes.append(text(left, 84, note))
            if number + 1 < len(pairs):
                shapes += [line(left + width - 38, 47, left + width - 4, 47, colour="currentColor")]
                shapes.append(text(left + width - 12, 51.5, "→"))
        shapes.append(text(10 + reused * width, 20, "used a second time: the whole family ends"))
        lines = [f"{name}: {note}" for name, note in pairs]
        return View("\n".join([f"{pairs[reused][0]} was used twice, so the family ends", *lines]), svg("", 96, shapes))

    @staticmethod
    def plot_breaker(calls: Sequence[Call]) -> View:
        """Draw how many calls to the provider each request caused. No calls mean that the breaker is open."""
        rows = []
        for number, call in enumerate(calls, 1):
            count = len(call.provider)
            words = counted(count, "call") if count else "none: the breaker is open"
            colour = GREEN if call.status < 400 else RED if count else GREY
            rows.append((f"{number}: {call.status}", [Bar(0, count, colour, words)]))
        most = max(3, *(len(call.provider) for call in calls))
        return bars("Calls to the provider per request", rows, [(value, str(value)) for value in range(most + 1)])

    @staticmethod
    def plot_opening_hours(hours: JsonObject) -> View:
        """Draw `regularHours` as a week. A period past midnight continues in the row of the next day."""
        rows: dict[str, list[Bar]] = {day: [] for day in _DAYS}
        for period in hours.get("periods", []):
            first, last = period["openDay"], period["closeDay"]
            opens, closes = _clock(period["openTime"]), _clock(period["closeTime"])
            words = f"{_written(opens)} to {_written(closes)}"
            if first == last or closes == 0:
                rows[first].append(Bar(opens, closes or 24, GREEN, words))
                continue
            rows[first].append(Bar(opens, 24, GREEN, words))
            rows[last].append(Bar(0, closes, GREEN, f"until {_written(closes)}"))
        ticks = [(float(hour), f"{hour:02}:00") for hour in range(0, 25, 4)]
        return bars("Opening hours", [(day.capitalize(), drawn) for day, drawn in rows.items()], ticks)

    @staticmethod
    def plot_quota(used: int, limit: int) -> View:
        """Draw how much of the posts of the month is used."""
        drawn = [Bar(0, used, RED if used >= limit else BLUE, f"{used} used")]
        drawn += [Bar(used, limit, GREY, f"{limit - used} left")] if used < limit else []
        return bars(f"{used} of {limit} posts of the month", [("posts", drawn)], [(0, "0"), (limit, str(limit))])


def _clock(time: Mapping[str, int]) -> float:
    return time.get("hours", 0) + time.get("minutes", 0) / 60


def _written(hour: float) -> str:
    return f"{int(hour):02}:{round(hour % 1 * 60):02}"


def _silence(points: Sequence[tuple[float, float]]) -> View:
    """Draw (hour, hours of silence) as a line."""
    last, highest = points[-1][0] or 1, max(26, *(silence for _, silence in points))
    top, bottom = TOP + 4, TOP + 144

    def place(hour: float, silence: float) -> tuple[float, float]:
        return LABEL + hour / last * (WIDTH - LABEL - 20), bottom - silence / highest * (bottom - top)

    title = f"Hours of silence: at most {max(silence for _, silence in points):g} in {last:g} hours"
    shapes = heading(title)
    for limit, words, colour in ((2, "idle after 2 h", AMBER), (24, "offline after 24 h", RED)):
        y = place(0, limit)[1]
        shapes += [line(LABEL, y, WIDTH - 20, y, colour=colour, dashed=True), text(LABEL - 8, y + 4, words, "end")]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    shapes.append(f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    shapes += [text(LABEL, bottom + 18, "0 h"), text(WIDTH - 20, bottom + 18, f"{last:g} h", "end")]
    return View(title, svg(title, bottom + 26, shapes))
