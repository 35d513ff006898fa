"""One read from the provider in the background, by the readings, the checks and the change feed."""

import logging
from collections.abc import Awaitable

from profilesvc.domain.errors import ServiceError
from profilesvc.provider.port import ProviderError

log = logging.getLogger("profilesvc")
FAILURES = 3  # of the provider one after the other, which end a round


async def attempt(job: str, place: str, read: Awaitable[int]) -> tuple[int, bool]:
    """Await the read of a place; return how many calls it made, and whether the provider failed.

    A defect with one location must not keep all others from being read, so it is logged and does not end the round.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    try:
        return await read, False
    except ProviderError as error:
        log.info("%s: %s: %s", job, place, error)
        return int(error.reached), error.retryable
    except ServiceError as error:
        if error.kind.status >= 500:
            raise
    except Exception:
        log.exception("%s: unexpected", job)
    return 0, False
