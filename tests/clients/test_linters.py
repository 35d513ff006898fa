"""The linters of other people find nothing in the OpenAPI document by their recommended rules."""

import json
from pathlib import Path

import pytest

from support.clients.generators import DOCUMENT, node, run

pytestmark = pytest.mark.clients


def test_redocly_finds_no_problem(tmp_path: Path) -> None:
    node("@redocly/cli")
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    found = run("redocly", "lint", DOCUMENT, "--extends", "recommended", "--format", "json", cwd=tmp_path, **quiet)
    assert json.loads(found)["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_spectral_finds_no_problem(tmp_path: Path) -> None:
    node("@stoplight/spectral-cli")
    rules = Path(__file__).parent / "spectral.yaml"
    run("spectral", "lint", "--ruleset", rules, "--fail-severity", "hint", DOCUMENT)
