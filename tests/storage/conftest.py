"""What rows show runs on both databases in `make test` too, because SQL differs."""

import pytest

from conftest import POSTGRES


@pytest.fixture(params=["sqlite", POSTGRES])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)
