"""The plugin reads hours by the rule of the dashboard. This needs PHP only, so it runs wherever PHP is installed."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from support.repository import ROOT

pytestmark = [
    pytest.mark.php,
    pytest.mark.skipif(shutil.which("php") is None, reason="php is not installed here"),
]
CASES: list[dict[str, Any]] = json.loads((ROOT / "data/fixtures/hours_cases.json").read_text("utf-8"))["week"]


def run(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = ["php", "-n", str(ROOT / "tests/wordpress/hours.php")]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def without_zeros(periods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The provider leaves out zeros, and PHP would write an empty array as []."""
    return [
        {
            name: {part: number for part, number in value.items() if number} if isinstance(value, dict) else value
            for name, value in period.items()
        }
        for period in periods
    ]


def test_the_cases_of_the_dashboard() -> None:
    results = run(CASES)
    for case, result in zip(CASES, results, strict=True):
        if "problem" in case:
            assert result["problem"] == case["problem"], case
            assert (result["sent"], len(result["asked"])) == ([], 1), case
            continue
        assert without_zeros(result["periods"]) == case["periods"], case
        assert without_zeros(result["sent"]) == sorted(case["periods"], key=lambda one: one["openTime"].get("hours", 0))
        assert (result["shown"], result["long"]) == (case["shown"], case.get("long", "")), case
        assert len(result["asked"]) == bool(result["long"]), case


def test_a_pair_of_an_earlier_version_is_read() -> None:
    pairs = [{"open": "17:00", "close": "01:00"}, {"open": "00:00", "close": "24:00"}, {"open": "", "close": ""}, None]
    results = run([{"day": "FRIDAY", "text": pair} for pair in pairs])
    assert [result["shown"] for result in results] == ["17:00-01:00", "00:00-24:00", "", ""]
    assert [one["closeDay"] for result in results for one in result["sent"]] == ["SATURDAY", "FRIDAY"]
    (half,) = run([{"day": "FRIDAY", "text": {"open": "09:00", "close": ""}}])
    assert half["asked"] == ["Enter times such as 09:00-17:30, with commas between several."]
    assert half["sent"] == []


def test_bytes_that_are_no_text_are_refused() -> None:
    code = "require 'examples/wordpress-plugin/src/Hours.php'; Profilesvc\\Hours::periods('MONDAY', \"9\\xff-17\");"
    done = subprocess.run(["php", "-n", "-r", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "must be times such as 09:00-17:30" in done.stdout + done.stderr
