"""Forms and client authentication as the standard OAuth endpoints take them (RFC 6749 §2.3.1, §3.2 and appendix B)."""

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
    """A client id and what was presented as its secret."""

    client_id: str
    client_secret: str = field(repr=False)


def require_form(content_type: str | None) -> None:
    """Refuse any other media type; an empty body needs one, too."""
    if (content_type or "").split(";")[0].strip().lower() != FORM:
        raise ServiceError(INVALID_REQUEST, f"Send the parameters as a form, with Content-Type: {FORM}.")


def form_values(raw: bytes) -> dict[str, str]:
    """The parameters of a form, each at most once; one without a value was not sent (RFC 6749 §3.2)."""
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise ServiceError(INVALID_REQUEST, "The form must be percent-encoded UTF-8 with few parameters.") from None
    if _BAD_ESCAPE.search(text):
        raise ServiceError(INVALID_REQUEST, "The form holds a % that begins no escape.")
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ServiceError(INVALID_REQUEST, "The form names a parameter twice.")
    return {name: value for name, value in values.items() if value}


def client_credentials(authorization: list[str], client_id: str | None, secret: str | None) -> Credentials | None:
    """The credentials of the one way that the client took, HTTP Basic or the form; None when it sent none.

    The id alone may stand in the form beside Basic, as some libraries have it, if it is the same.
    """
    if not authorization:
        return None if client_id is None or secret is None else Credentials(client_id, secret)
    if len(authorization) > 1 or secret is not None:
        raise ServiceError(INVALID_REQUEST, "Authenticate once: by HTTP Basic or in the form.")
    sent = _basic(authorization[0])
    if client_id not in (None, sent.client_id):
        raise ServiceError(INVALID_REQUEST, "The form names another client than the Authorization header.")
    return sent


def _basic(header: str) -> Credentials:
    """HTTP Basic with both parts percent-encoded or as they are: libraries do either.

    A + stays a +, because secrets have it and have no blanks; `invalid_client` for what is not Basic.
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
