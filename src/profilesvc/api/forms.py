"""Forms and client authentication of the OAuth endpoints (RFC 6749 §2.3.1, §3.2 and appendix B)."""

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from profilesvc.contract.oauth2 import INVALID_CLIENT, INVALID_REQUEST
from profilesvc.domain.errors import ServiceError

FORM = "application/x-www-form-urlencoded"
_MAX_PARAMETERS = 100
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BASIC = re.compile(r"basic +([A-Za-z0-9+/]+={0,2})\Z", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A client id and the secret that the client sent."""

    client_id: str
    client_secret: str = field(repr=False)


def require_form(content_type: str | None) -> None:
    """Reject any other media type; an empty body needs it too.

    Raises:
        ServiceError: INVALID_REQUEST.
    """
    if (content_type or "").split(";")[0].strip().lower() != FORM:
        raise ServiceError(INVALID_REQUEST, f"Send the parameters as a form, with Content-Type: {FORM}.")


def form_values(raw: bytes) -> dict[str, str]:
    """Return the parameters of a form, each at most once, without those that have no value (RFC 6749 §3.2).

    Raises:
        ServiceError: INVALID_REQUEST.
    """
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise ServiceError(
            INVALID_REQUEST, f"The form must be percent-encoded UTF-8 with at most {_MAX_PARAMETERS} parameters."
        ) from None
    if _BAD_ESCAPE.search(text):
        raise ServiceError(
            INVALID_REQUEST, "The form contains a % without two hexadecimal digits. Percent-encode it as %25."
        )
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ServiceError(INVALID_REQUEST, "The form contains a parameter twice. Send each once.")
    return {name: value for name, value in values.items() if value}


def client_credentials(authorization: list[str], client_id: str | None, secret: str | None) -> Credentials | None:
    """Return the credentials from HTTP Basic or from the form, or None if the client sent none.

    With HTTP Basic, the form may repeat the client id, because some libraries send it.

    Raises:
        ServiceError: INVALID_REQUEST, INVALID_CLIENT.
    """
    if not authorization:
        return None if client_id is None or secret is None else Credentials(client_id, secret)
    if len(authorization) > 1 or secret is not None:
        raise ServiceError(INVALID_REQUEST, "Authenticate only once: with HTTP Basic or in the form.")
    pair = _basic(authorization[0])
    if client_id not in (None, pair.client_id):
        raise ServiceError(INVALID_REQUEST, "The form has another `client_id` than the Authorization header.")
    return pair


def _basic(header: str) -> Credentials:
    """Parse HTTP Basic, whose parts may be percent-encoded or not, because libraries do either.

    A + stays a +, because secrets can contain it but no spaces.
    """
    match = _BASIC.match(header)
    try:
        pair = base64.b64decode(match.group(1), validate=True).decode() if match else ""
        client_id, colon, secret = pair.partition(":")
        if not colon:
            raise ValueError("no pair")
        return Credentials(unquote(client_id, errors="strict"), unquote(secret, errors="strict"))
    except ValueError:
        raise ServiceError(INVALID_CLIENT, "The Authorization header must be HTTP Basic with id and secret.") from None
