"""The log on stderr: one JSON object per warning or error, and optionally one per request."""

import json
import logging
import sys
from datetime import UTC, datetime

from profilesvc.settings import Settings


class JsonLines(logging.Formatter):
    """A formatter that writes a record and its traceback as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return `time`, `level`, `logger`, `message`, and if known `request_id`, further fields and `traceback`."""
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
    """Write the log of the whole process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def log_requests(settings: Settings) -> None:
    """Add the request id to each line, and log each request if `access_log` is set."""
    from profilesvc.domain.request import current

    def add_request_id(record: logging.LogRecord) -> bool:
        request_id = current().request_id
        if request_id is not None:
            record.more = {"request_id": request_id} | getattr(record, "more", {})
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(add_request_id)
    if settings.access_log:
        logging.getLogger("profilesvc.access").setLevel(logging.INFO)
