"""The quota of the provider's project, for the operator."""

from profilesvc.contract.json import JsonObject
from profilesvc.services.context import Services


async def standing(services: Services) -> tuple[list[JsonObject], bool]:
    """Return the quota of each API, and whether all processes count it together; otherwise `used` is None."""
    is_shared = services.settings.limits.shared
    rows: list[JsonObject] = [
        {"api": each.api, "requests_per_minute": each.limit, "used": each.used if is_shared else None}
        for each in await services.provider.quota()
    ]
    return rows, is_shared
