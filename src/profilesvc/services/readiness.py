"""Is everything in place to answer requests?"""

from profilesvc.services.context import Services
from profilesvc.storage import migrate


async def checks(services: Services) -> dict[str, bool]:
    """Named checks; SERVICE_UNAVAILABLE when the database does not answer."""
    async with services.storage.read() as session:
        current = await migrate.current_revision(session)
    return {"database": True, "migrations": current == migrate.head(), "signing_key": True}
