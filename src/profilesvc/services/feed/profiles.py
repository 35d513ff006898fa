"""Read a location's profile in the background, to find what has changed at the provider."""

from profilesvc.contract.json import JsonObject
from profilesvc.domain.verification import has_flag
from profilesvc.provider.port import Provider
from profilesvc.services import drift
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import keep, load, store_verification
from profilesvc.services.provider_logins import provider_at
from profilesvc.storage.locations import LocationState

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
    calls = 1 + await _note_verification(services, location, row, remote, document)
    return calls + await drift.note_google(services, location, remote, document, is_check=True)


async def _note_verification(
    services: Services, location: AllowedLocation, row: LocationState, remote: Provider, document: JsonObject
) -> int:
    """Read the verification if the profile shows that it has changed, and return how many calls that took (D-73)."""
    if has_flag(document, "hasVoiceOfMerchant") == row.is_verified:
        return 0
    await store_verification(services, location, await remote.verification(location.name))
    return _VERIFICATION_CALLS
