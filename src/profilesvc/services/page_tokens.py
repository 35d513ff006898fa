"""Page tokens: the position of the next page, signed together with the list that it belongs to (D-77)."""

import re

from profilesvc.domain.errors import invalid
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.tokens.seals import Seal


def seal(services: Services, location: AllowedLocation, list_name: str, position: str) -> str:
    """Return a token for a position in a list of a location. It is valid only for that list."""
    return _seal(services, location, list_name).seal(position)


def unseal(services: Services, location: AllowedLocation, list_name: str, token: str, shape: re.Pattern[str]) -> str:
    """Return the position in a token that `seal` returned for this list, in any process.

    Raises:
        ServiceError: VALIDATION_ERROR for any other token.
    """
    position = _seal(services, location, list_name).unseal(token)
    if position is None or not shape.fullmatch(position):
        raise invalid("query", "pageToken", f"must be the nextPageToken of this location's {list_name}")
    return position


def _seal(services: Services, location: AllowedLocation, list_name: str) -> Seal:
    return Seal(services.signer.keyring, f"page token\n{list_name}\n{location.name}", services.clock.now())
