"""Find demo data in a database that production is to use, because its secrets and signing keys are published."""

from collections.abc import Collection

from profilesvc.operations.generate import DOMAIN
from profilesvc.services.context import Services
from profilesvc.storage import keys, users

_NAMED = 5


async def traces(services: Services, emails: list[str], test_key_ids: Collection[str]) -> list[str]:
    """Find demo and generated users by their reserved e-mail domains, their keys, and the public signing keys."""
    async with services.storage.read() as session:
        demo_users = await users.list_demo_users(session, emails, DOMAIN, _NAMED)
        found = [f"user {user.email}" for user in demo_users]
        for user in demo_users:
            theirs = await keys.listing(session, user.id, services.clock.now())
            found += [f"key {row.client_id}" for row in theirs[:_NAMED]]
    for info in await services.signing_keys.listing():
        if info.state != "removed" and info.dates.kid in test_key_ids:
            found.append(f"signing key {info.dates.kid} (the published test key is among the signing keys)")
        elif info.state != "removed" and found:
            found.append(f"signing key {info.dates.kid}")
    return found
