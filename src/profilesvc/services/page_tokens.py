"""Positions of the next page in a list, which callers send back: page tokens (D-77) and cursors (D-132).

A page token is signed. A cursor is encrypted, because it contains a number that the rows of all owners share.
"""

import re

from profilesvc.domain.errors import invalid
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.tokens.seals import Cipher, Seal

_DIGITS = 19  # of the largest number; all positions have the same length


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


def cursor(services: Services, owner_id: int | None, list_name: str, *position: int) -> str:
    """Return `next_before` for a position in a list of an owner; without an owner, of the operator."""
    return _cipher(services, owner_id, list_name).encrypt("-".join(f"{part:0{_DIGITS}}" for part in position))


def position(services: Services, owner_id: int | None, list_name: str, before: str) -> tuple[int, ...]:
    """Return the position in a cursor of this list.

    Raises:
        ServiceError: VALIDATION_ERROR for any other string.
    """
    text = _cipher(services, owner_id, list_name).decrypt(before)
    if text is None:
        raise invalid("query", "before", "must be the next_before of the previous page")
    return tuple(int(part) for part in text.split("-"))


def _cipher(services: Services, owner_id: int | None, list_name: str) -> Cipher:
    return Cipher(services.signer.keyring, f"cursor\n{list_name}\n{owner_id or 0}", services.clock.now())
