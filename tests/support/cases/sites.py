"""data/fixtures/site_cases.json: which site an address names. The tests of the plugin run the same cases."""

import json
from typing import Any

from profilesvc.fixtures import fixture_path

_CASES = json.loads(fixture_path("site_cases.json").read_text("utf-8"))
ADDRESSES: list[dict[str, Any]] = _CASES["addresses"]
SAME: list[dict[str, Any]] = _CASES["same"]
PLUGIN: list[dict[str, Any]] = _CASES["plugin"]
