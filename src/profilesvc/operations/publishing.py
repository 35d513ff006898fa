"""Twice a minute: send the scheduled posts that are due."""

import logging

from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import Services
from profilesvc.services.drafts import drafts as service
from profilesvc.storage.drafts import drafts

log = logging.getLogger("profilesvc")
_ROUND = 100  # posts of one round


async def run_once(services: Services) -> None:
    """Send what is due.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round sends the rest.
    """
    async with services.storage.read() as session:
        rows = await drafts.due(session, services.clock.now(), _ROUND)
    for due in rows:
        services.storage.renew()
        try:
            await service.publish(services, due)
        except ServiceError:
            raise
        except Exception:  # a defect with one post must not keep all others from being sent
            log.exception("publishing: unexpected")
