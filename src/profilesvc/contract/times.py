"""RFC 3339 times on the wire."""

import re
from datetime import datetime

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 time with Z or an offset; digits beyond microseconds are dropped.

    Raises:
        ValueError: The text is not an RFC 3339 time.
    """
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError("not an RFC 3339 time")
    seconds, fraction, zone = match.groups()
    return datetime.fromisoformat(f"{seconds}{(fraction or '.0')[:7]}{zone}")
