"""The log: one JSON object per line on stderr, for warnings and errors, and for each request if that is configured."""

import json
import logging
import sys
from datetime import UTC, datetime

from profilesvc.settings import Settings


class JsonLines(logging.Formatter):
    """A formatter that writes a record, and its traceback, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return `{"time", "level", "logger", "message"}`, and other fields and `"traceback"` if there are any."""
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
    """Send the log of the whole process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def log_requests(settings: Settings) -> None:
    """Add the request id to each line, and write a line for each request if `access_log` is set."""
    from profilesvc.domain.request import current_request

    def add_request_id(record: logging.LogRecord) -> bool:
        request_id = current_request().request_id
        if request_id is not None:
            record.more = {"request_id": request_id} | getattr(record, "more", {})
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(add_request_id)
    if settings.access_log:
        logging.getLogger("profilesvc.access").setLevel(logging.INFO)
