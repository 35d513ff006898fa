"""Page tokens: where the next page begins, sealed together with what is listed (D-77, A099)."""

import base64
import hmac
import re

from profilesvc.domain.errors import invalid
from profilesvc.services.context import Reached, Services

_MAC_BYTES = 12


def seal(services: Services, location: Reached, listed: str, place: str) -> str:
    """Return an opaque token of a place in a list of a location. It is valid only for that list."""
    return _sealed(_keys(services)[0], location, listed, place)


def opened(services: Services, location: Reached, listed: str, token: str, shape: re.Pattern[str]) -> str:
    """Return the place in a token that `seal` made for this very list, in any process and before a restart.

    Raises:
        ServiceError: VALIDATION_ERROR for any other token.
    """
    try:
        place = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[_MAC_BYTES:].decode()
    except ValueError:
        place = ""
    sealed = [_sealed(key, location, listed, place) for key in _keys(services)] if shape.fullmatch(place) else []
    if not any(hmac.compare_digest(each, token) for each in sealed):
        raise invalid("query", "pageToken", f"must be the nextPageToken of this location's {listed}")
    return place


def _keys(services: Services) -> list[bytes]:
    return services.signer.keyring.purpose_keys("page token", services.clock.now())


def _sealed(key: bytes, location: Reached, listed: str, place: str) -> str:
    content = "\n".join([listed, location.name, place]).encode()
    mac = hmac.digest(key, content, "sha256")
    return base64.urlsafe_b64encode(mac[:_MAC_BYTES] + place.encode()).rstrip(b"=").decode()
