"""The status badge of a key, which anyone who has its link can see."""

import re

from profilesvc.domain import heartbeats
from profilesvc.domain.keys import secret_digest
from profilesvc.services import audit
from profilesvc.services.access import missing, own_key
from profilesvc.services.context import Caller, Services
from profilesvc.storage import keys
from profilesvc.storage.insight import overview
from profilesvc.tokens.signer import random_id

_LINK = re.compile(r"([1-9][0-9]{0,17})-[A-Za-z0-9_-]{22}", re.ASCII)  # the owner and the random part


async def show(services: Services, caller: Caller, client_id: str, is_shown: bool) -> str | None:
    """Switch the badge of a key on or off. Return the secret of its link, which cannot be read again.

    Switching it on again creates a new link; the previous one is no longer valid.

    Raises:
        ServiceError: NOT_FOUND.
    """
    secret = f"{caller.owner_id}-{random_id(services.entropy)}" if is_shown else None
    digest = None if secret is None else secret_digest(secret, services.pepper)
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        await keys.change(session, key.owner_id, key.id, badge_digest=digest)
        await audit.record(services, session, "key.badge", key.owner_id, key.id, shown=is_shown)
    return secret


async def read(services: Services, secret: str) -> tuple[str, str, int | None]:
    """Return the key's name, its state and its last heartbeat.

    Raises:
        ServiceError: NOT_FOUND if there is no badge with this secret.
    """
    now, row = services.clock.now(), None
    if link := _LINK.fullmatch(secret):
        async with services.storage.read(may_be_old=True) as session:
            row = await overview.badge_state(session, int(link[1]), secret_digest(secret, services.pepper), now)
    if row is None:
        raise missing("badge")
    state = "deactivated" if row.hold_reason is not None else heartbeats.state(row.last_heartbeat_at, now)
    return row.name, state, row.last_heartbeat_at
