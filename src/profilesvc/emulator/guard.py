"""Who may use the control surface of an emulator that is served on a socket.

A page in a browser on the same machine reaches every port of it. It cannot know the token, cannot send JSON without
being asked for permission first, and a name that it has pointed at this machine (DNS rebinding) is not one of ours.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from profilesvc.emulator.errors import ApiError

_ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104  # a listener on all addresses is reached by each of them


@dataclass(frozen=True, repr=False)
class Guard:
    """The token of one start, and the host that the emulator was asked to serve on."""

    token: str
    host: str = "127.0.0.1"

    def check_caller(self, host: str, authorization: str) -> None:
        """Raise ApiError unless the Host is one of ours and the token is right."""
        if not self.is_ours(host):
            raise ApiError(403, f"The control surface is not served under the host {host[:100]!r}.")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
            message = "The control surface needs the token of this start as Authorization: Bearer."
            raise ApiError(401, f"{message} The emulator printed it and keeps it in DATA_DIR/emulator_token.")

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this machine, or the host that the emulator serves on."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in ("localhost", self.host.lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self.host in _ANY_ADDRESS


def check_write(media_type: str, *, has_body: bool) -> None:
    """Raise ApiError for a write that is not JSON: a form is what a page of another origin can send unasked."""
    if media_type != "application/json" and (media_type or has_body):
        raise ApiError(415, "The body must be sent as Content-Type: application/json.", status="INVALID_ARGUMENT")
