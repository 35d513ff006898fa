"""Read a location's profile in the background, to find what has changed at the provider."""

from profilesvc.services import drift
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import keep, load
from profilesvc.services.provider_logins import provider_at


async def profile(services: Services, location: AllowedLocation) -> int:
    """Read and store the profile, publish what has drifted, and return how many calls that took.

    Raises:
        ProviderError: The profile could not be read.
        ServiceError: SERVICE_UNAVAILABLE, or NOT_FOUND if the location was disconnected meanwhile.
    """
    row, started = await load(services, location), services.clock.now()
    remote = await provider_at(services, location)
    document = await remote.location(location.name)
    await keep(services, location, document, started)
    await drift.note(services, location, row, document, started)
    return 1 + await drift.note_google(services, location, remote, document, is_check=True)
