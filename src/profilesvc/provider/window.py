"""How often something happened in the last minute."""

from collections import deque

MINUTE_MS = 60_000
_MANY_KEYS = 1000


class MinuteWindow:
    """Counts the events of the last minute by key; a clock that was set back only forgets."""

    def __init__(self) -> None:
        self._events: dict[str, deque[int]] = {}

    def take(self, key: str, limit: int, now: int) -> int:
        """Note one event at `now` (milliseconds); 0, or how long to wait when there were `limit` already."""
        if len(self._events) > _MANY_KEYS:
            self._events = {name: events for name, events in self._events.items() if _fresh(events[-1], now)}
        events = self._events.setdefault(key, deque())
        while events and not _fresh(events[0], now):
            events.popleft()
        if len(events) >= limit:
            return events[0] + MINUTE_MS - now
        events.append(now)
        return 0


def _fresh(event: int, now: int) -> bool:
    return now - MINUTE_MS < event <= now
