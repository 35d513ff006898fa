"""The anchors: programs without a framework's layers on the tables of the service, to show how far its limit is."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def statements() -> dict[str, str]:
    """Return the SQL of the anchors by its name."""
    parts = re.split(r"^-- name: (\w+)\n", (FOLDER / "statements.sql").read_text("utf-8"), flags=re.MULTILINE)
    return {name: sql.strip() for name, sql in zip(parts[1::2], parts[2::2], strict=True)}
