"""Read a location's profile in the background, to find what has changed at the provider."""

from profilesvc.domain.verification import has_flag
from profilesvc.services import drift
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import keep, load, store_verification
from profilesvc.services.provider_logins import provider_at

_VERIFICATION_CALLS = 2


async def refresh(services: Services, location: AllowedLocation) -> int:
    """Read and store the profile, publish what has changed, and return how many calls that took.

    Raises:
        ProviderError: The profile could not be read.
        ServiceError: SERVICE_UNAVAILABLE, or NOT_FOUND if the location was disconnected meanwhile.
    """
    row, started = await load(services, location), services.clock.now()
    remote = await provider_at(services, location)
    document = await remote.location(location.name)
    await keep(services, location, document, started)
    await drift.note(services, location, row, document, started)
    calls = 1
    if has_flag(document, "hasVoiceOfMerchant") != row.is_verified:  # a profile shows no more of it (D-73)
        await store_verification(services, location, await remote.verification(location.name))
        calls += _VERIFICATION_CALLS
    return calls + await drift.note_google(services, location, remote, document, is_check=True)
