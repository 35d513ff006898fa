"""Page tokens: where the next page begins, signed together with the list that it belongs to (D-77)."""

import re

from profilesvc.domain.errors import invalid
from profilesvc.services.context import Reached, Services
from profilesvc.tokens.seals import Seal


def seal(services: Services, location: Reached, listed: str, place: str) -> str:
    """Return an opaque token of a place in a list of a location. It is valid only for that list."""
    return _seal(services, location, listed).seal(place)


def opened(services: Services, location: Reached, listed: str, token: str, shape: re.Pattern[str]) -> str:
    """Return the place in a token that `seal` made for this very list, in any process and before a restart.

    Raises:
        ServiceError: VALIDATION_ERROR for any other token.
    """
    place = _seal(services, location, listed).opened(token)
    if place is None or not shape.fullmatch(place):
        raise invalid("query", "pageToken", f"must be the nextPageToken of this location's {listed}")
    return place


def _seal(services: Services, location: Reached, listed: str) -> Seal:
    return Seal(services.signer.keyring, f"page token\n{listed}\n{location.name}", services.clock.now())
