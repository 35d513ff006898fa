"""Find demo data in a production database. It must not be there, because its secrets and signing keys are public."""

from collections.abc import Collection

from profilesvc.services.context import Services
from profilesvc.storage import keys, users

GENERATED = "generated.example"  # the domain of generated users, which `db generate` adds
_LISTED = 5


async def traces(services: Services, emails: list[str], test_key_ids: Collection[str]) -> list[str]:
    """Return demo and generated users, their keys, and public signing keys. Users are found by their e-mail domains."""
    async with services.storage.read() as session:
        demo_users = await users.list_demo_users(session, emails, GENERATED, _LISTED)
        entries = [f"user {user.email}" for user in demo_users]
        for user in demo_users:
            rows = await keys.listing(session, user.id, services.clock.now())
            entries += [f"key {row.client_id}" for row in rows[:_LISTED]]
    for info in await services.signing_keys.listing():
        if info.state != "removed" and info.dates.kid in test_key_ids:
            entries.append(f"signing key {info.dates.kid} (a published test key)")
        elif info.state != "removed" and entries:
            entries.append(f"signing key {info.dates.kid}")
    return entries
