"""E-mail addresses as every mail server and every header accepts them."""

import re

import idna

_LOCAL = re.compile(r"[!-~]+\Z")
_ENCODED = "=?"  # the start of an encoded word (RFC 2047), which would be shown as other text, even as another address


def mailbox(address: str) -> str:
    """Return an address with its domain in A-labels.

    Raises:
        ValueError: Not every mail server accepts the address, or a header would show another one.
    """
    local, _, domain = address.rpartition("@")
    if not _LOCAL.match(local) or _ENCODED in local:
        raise ValueError("must have only ASCII characters before the @, without =?")
    if domain.isascii():
        return address
    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        raise ValueError("must have a valid domain") from None
