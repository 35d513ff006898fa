"""A copy of the data of a connected login, which disconnecting would delete."""

import orjson

from profilesvc.contract.provider_connections import ExportedLocation, ProviderConnectionExport
from profilesvc.domain.time import iso
from profilesvc.services.context import Caller, Services
from profilesvc.services.logins import logins
from profilesvc.storage import logins as table


async def export(services: Services, caller: Caller, connection_id: str) -> ProviderConnectionExport:
    """Return the profiles, posts and desired fields of the locations of a login. The provider is not asked.

    Raises:
        ServiceError: NOT_FOUND.
    """
    entry = await logins.summary(services, caller, connection_id)
    async with services.storage.read() as session:
        stored = await table.contents(session, caller.owner_id, entry.id)
        posts = await table.posts_of(session, caller.owner_id, [row.name for row in stored])
    locations = [
        ExportedLocation(
            name=row.name,
            profile=orjson.loads(row.profile),
            profile_read_at=iso(row.profile_read_at),
            desired=None if row.source is None else orjson.loads(row.source),
            posts=[orjson.loads(document) for document in posts.get(row.name, [])],
        )
        for row in stored
    ]
    return ProviderConnectionExport(exported_at=iso(services.clock.now()), connection=entry, locations=locations)
