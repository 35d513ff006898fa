"""Names of time zones: which are accepted, and the zone of a stored name."""

import functools
from importlib.resources import files
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UTC_NAME = "UTC"
_NO_ZONES = frozenset({"Factory"})  # in the list of the database, but no place has it


@functools.cache
def zone_names() -> frozenset[str]:
    """Return the names of the IANA database of the package `tzdata`, which are the same on all hosts."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split()) - _NO_ZONES


def zone_of(name: str) -> ZoneInfo:
    """Return the zone of a stored name; UTC if the name is not accepted any more."""
    try:
        return ZoneInfo(name if name in zone_names() else UTC_NAME)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # its file on this host is damaged
        return ZoneInfo(UTC_NAME)
