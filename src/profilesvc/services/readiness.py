"""Is everything in place to answer requests?"""

from profilesvc.services.context import Services
from profilesvc.storage import migrate
from profilesvc.storage.trouble import unavailable_as_refusal


async def checks(services: Services) -> dict[str, bool]:
    """Named checks; SERVICE_UNAVAILABLE when the database does not answer."""
    with unavailable_as_refusal():
        current = await migrate.current(services.storage.engine)
    return {
        "database": True,
        "migrations": migrate.fits(current),
        "signing_key": bool(services.signer.keyring.dates),
    }
