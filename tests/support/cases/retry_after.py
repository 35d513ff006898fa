"""data/fixtures/retry_after_cases.json: the header Retry-After. The TypeScript client and the plugin have it too."""

import json
from datetime import datetime
from typing import Any

from profilesvc.fixtures import fixture_path

_TABLE = json.loads(fixture_path("retry_after_cases.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = _TABLE["cases"]
NOW = datetime.fromisoformat(_TABLE["now"].replace("Z", "+00:00")).timestamp()
