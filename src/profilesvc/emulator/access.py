"""Access to the control API of an emulator that is served on a socket.

A web page in a browser on the same machine can reach every local port. It does not know the token, it cannot send
JSON without a CORS preflight, and a host name that it points at this machine (DNS rebinding) is rejected.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from profilesvc.emulator.errors import ApiError

_ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104  # such a listener is reachable under every address of the machine


@dataclass(frozen=True, repr=False)
class ControlAccess:
    """The token of the running emulator, and the host that it listens on."""

    token: str
    host: str = "127.0.0.1"

    def check_caller(self, host: str, authorization: str) -> None:
        """Check the Host header and the token.

        Raises:
            ApiError: 403 for a foreign host, 401 for a wrong token.
        """
        if not self.is_own_host(host):
            raise ApiError(403, f"The control API is not available under the host {host[:100]!r}.")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
            message = (
                "The control API requires the emulator's token as Authorization: Bearer. "
                "The emulator prints it at its start and stores it in DATA_DIR/emulator_token."
            )
            raise ApiError(401, message)

    def is_own_host(self, host: str) -> bool:
        """Return whether a Host header names this machine or the host that the emulator listens on."""
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
    """Reject a write that is not JSON, because a web page of another origin can send forms without a preflight.

    Raises:
        ApiError: 415.
    """
    if media_type != "application/json" and (media_type or has_body):
        raise ApiError(415, "The body must be sent as Content-Type: application/json.", status="INVALID_ARGUMENT")
