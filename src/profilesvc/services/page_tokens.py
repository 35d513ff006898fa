"""Page tokens: where the next page begins, sealed together with what is listed (D-77, A099)."""

import base64
import hmac
import re

from profilesvc.domain.errors import invalid
from profilesvc.services.context import Reached, Services

_MAC_BYTES = 12


def seal(services: Services, location: Reached, listed: str, place: str) -> str:
    """An opaque token of a place in a list of a location, good for that list alone."""
    content = "\n".join([listed, location.name, place]).encode()
    mac = hmac.digest(services.pepper or b"", content, "sha256")
    return base64.urlsafe_b64encode(mac[:_MAC_BYTES] + place.encode()).rstrip(b"=").decode()


def opened(services: Services, location: Reached, listed: str, token: str, shape: re.Pattern[str]) -> str:
    """The place in a token that `seal` made for this very list; without a pepper only `shape` is sure of it.

    VALIDATION_ERROR.
    """
    try:
        place = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[_MAC_BYTES:].decode()
    except ValueError:
        place = ""
    if not shape.fullmatch(place) or not hmac.compare_digest(seal(services, location, listed, place), token):
        raise invalid("query", "pageToken", f"must be the nextPageToken of this location's {listed}")
    return place
