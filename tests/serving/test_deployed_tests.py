"""A short `make deployed`: unchanged tests of the API on two processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

CHOSEN = [  # what processes have to agree about
    "test_idempotency.py::test_A128_many_at_once_run_once",
    "test_limits.py::test_sites_and_users_are_counted_apart",
    "test_origin.py::test_D31_configured_dashboards_are_compared_as_origins",
    "test_posts_followed.py::test_one_refresh_at_a_time_for_a_location_however_many_ask",
    "test_rotation.py::test_A042_fifty_simultaneous_exchanges_get_one_successor",
]


@pytest.mark.postgres
def test_the_tests_of_the_api_run_on_processes() -> None:
    root = Path(__file__).parents[2]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "XDG_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:xdist", *(f"tests/api/{name}" for name in CHOSEN)],
        cwd=root,
        env=env | {"PROFILESVC_DEPLOYED": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout[-5_000:]
    assert "requests answered by each process" in ran.stdout
