"""The provider's categories: found by the start of their names, with the kinds of hours and services of each."""

from dataclasses import dataclass, field

from profilesvc.contract.json import JsonObject
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import provider_at

MOST_MATCHES = 20  # of a search
LONGEST = 100  # characters of a search
_REGION, _LANGUAGE = "US", "en"


@dataclass(frozen=True, slots=True)
class Offered:
    """The attributes that the categories of a profile offer: names by id."""

    categories: dict[str, str] = field(default_factory=dict)
    hours: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)


async def search(services: Services, location: AllowedLocation, profile: JsonObject, start: str) -> dict[str, str]:
    """Return the names of the categories that start with a text, by id, in the country of a profile.

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    start = " ".join(start.replace('"', " ").split())[:LONGEST]
    if not start:
        return {}
    with raising_provider_failure():
        remote = await provider_at(services, location)
        matches = await remote.categories(region_of(profile), _LANGUAGE, start)
    return dict(sorted(_names(matches).items(), key=lambda pair: pair[1])[:MOST_MATCHES])


async def offered(services: Services, location: AllowedLocation, profile: JsonObject, names: list[str]) -> Offered:
    """Return what categories offer, by their ids.

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    if not names:
        return Offered()
    with raising_provider_failure():
        remote = await provider_at(services, location)
        categories = await remote.categories_of(names, region_of(profile), _LANGUAGE)
    hours, kinds = dict[str, str](), dict[str, str]()
    for one in categories:
        hours |= {kind["hoursTypeId"]: _label(kind, "hoursTypeId") for kind in one.get("moreHoursTypes") or []}
        kinds |= {kind["serviceTypeId"]: _label(kind, "serviceTypeId") for kind in one.get("serviceTypes") or []}
    return Offered(_names(categories), hours, kinds)


def region_of(profile: JsonObject) -> str:
    """Return the country of a profile, which decides about its categories."""
    address, area = profile.get("storefrontAddress") or {}, profile.get("serviceArea") or {}
    return str(address.get("regionCode") or area.get("regionCode") or _REGION)


def _names(categories: list[JsonObject]) -> dict[str, str]:
    return {one["name"]: _label(one, "name") for one in categories if one.get("name")}


def _label(one: JsonObject, ident: str) -> str:
    return str(one.get("localizedDisplayName") or one.get("displayName") or one[ident])
