"""The result of a check of `doctor`."""

import ssl
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail"]
_UNTRUSTED = "its certificate is not trusted: for a private authority set SSL_CERT_FILE (docs/deploy.md, step 2)"


class Check(NamedTuple):
    """The result of a check: its name, its status, a message, and a hint for a problem."""

    name: str
    status: Status
    message: str
    hint: str = ""


def connection_hint(error: BaseException | None, hint: str) -> str:
    """Return `hint`, or the one on private authorities if a certificate that is not trusted caused the error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return _UNTRUSTED
        error = error.__cause__ or error.__context__
    return hint
