"""The notebooks as stored, and the operations that their recorded calls belong to."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from profilesvc.bootstrap import create_app
from profilesvc.settings import Settings

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def load(path: Path) -> dict[str, Any]:
    """The JSON of a notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


@cache
def operations() -> dict[str, re.Pattern[str]]:
    """Every operation of the OpenAPI document as `METHOD /path/{template}`, with the pattern of its calls."""

    app = create_app(Settings(_env_file=None, base_url="https://profiles.example"))
    document = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    found = {}
    for path, methods in document["paths"].items():
        pattern = "(?:locations/)?[^/]+".join(re.escape(part) for part in re.split(r"\{[^}]+\}", path))
        found.update({f"{name.upper()} {path}": re.compile(f"{name.upper()} {pattern}") for name in methods})
    return found


def operation_of(line: str) -> str | None:
    """The operation that a recorded call (`GET /api/v1/posts 200`) belongs to; None for one outside the API."""
    call = line.rpartition(" ")[0]
    fitting = [name for name, pattern in operations().items() if pattern.fullmatch(call)]
    return min(fitting, key=lambda name: name.count("{")) if fitting else None
