"""One read in the background: which failures count, and which end the round."""

import pytest

from profilesvc.contract.errors import NOT_FOUND, SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.operations.feed.reads import run_read
from profilesvc.provider.port import ProviderError


async def read(failure: Exception | None = None) -> int:
    if failure is not None:
        raise failure
    return 2


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (None, (2, False)),
        (ProviderError("unavailable", retryable=True), (1, True)),
        (ProviderError("quota", retryable=True, reached=False), (0, True)),
        (ProviderError("rejected", retryable=False), (1, False)),
        (ServiceError(NOT_FOUND), (0, False)),  # it was disconnected in the meantime
        (KeyError("a defect"), (0, False)),
    ],
)
async def test_a_failure_of_one_location_does_not_end_the_round(
    failure: Exception | None, outcome: tuple[int, bool]
) -> None:
    assert await run_read("checks", "locations/1", read(failure)) == outcome


async def test_a_database_that_does_not_respond_ends_it() -> None:
    with pytest.raises(ServiceError):
        await run_read("checks", "locations/1", read(ServiceError(SERVICE_UNAVAILABLE)))
