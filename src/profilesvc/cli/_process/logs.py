"""The log: one JSON object per line on stderr, warnings and worse; on request a line for each request."""

import json
import logging
import sys
from datetime import UTC, datetime

from profilesvc.settings import Settings


class JsonLines(logging.Formatter):
    """A record as one line; a traceback is a member of it."""

    def format(self, record: logging.LogRecord) -> str:
        """`{"time", "level", "logger", "message"}` and, where there are such, `"request_id"`, more, `"traceback"`."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "more", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to_stderr() -> None:
    """Send the log of the whole process there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def log_requests(settings: Settings) -> None:
    """For a server: name the request that a line belongs to, and write one for each if that is asked for."""
    from profilesvc.domain.request import current

    def name(record: logging.LogRecord) -> bool:
        request_id = current().request_id
        if request_id is not None:
            record.more = {"request_id": request_id} | getattr(record, "more", {})
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(name)
    if settings.access_log:
        logging.getLogger("profilesvc.access").setLevel(logging.INFO)
