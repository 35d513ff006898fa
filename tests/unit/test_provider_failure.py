"""The errors for callers after failures at the provider."""

import pytest

from profilesvc.provider.port import ProviderError
from profilesvc.services.provider_errors import provider_failure


@pytest.mark.parametrize(("seconds", "wait"), [(None, None), (0, 1), (29.2, 30)])
def test_known_wait_is_returned(seconds: float | None, wait: int | None) -> None:
    failure = provider_failure(ProviderError("rate_limited", retryable=True, retry_after=seconds))
    assert failure.retry_after == wait
    assert failure.details == {"reason": "rate_limited", "retryable": True}


@pytest.mark.parametrize("retryable", [True, False])
def test_advises_to_try_again_only_where_that_may_help(retryable: bool) -> None:
    failure = provider_failure(ProviderError("unavailable", retryable=retryable))
    assert ("try again" in failure.message) is retryable
