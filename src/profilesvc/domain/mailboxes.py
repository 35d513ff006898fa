"""E-mail addresses as every mail server and every header accepts them: the dot-atom and the lengths of RFC 5321."""

import re

import idna

_LENGTH, _LOCAL_LENGTH = 254, 64  # RFC 5321 section 4.5.3.1; a path has brackets and 256 characters
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_ATOM_UTF8 = rf"(?:{_ATOM}|[^\x00-\x9f\s])"  # RFC 6531
_LOCAL = re.compile(rf"{_ATOM}+(?:\.{_ATOM}+)*\Z")
_LOCAL_UTF8 = re.compile(rf"{_ATOM_UTF8}+(?:\.{_ATOM_UTF8}+)*\Z")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_ENCODED = "=?"  # the start of an encoded word (RFC 2047), which would be shown as other text, even as another address


def mailbox(address: str, *, ascii_only: bool = True) -> str:
    """Return an address with its domain in A-labels.

    Only a login may have other than ASCII characters before the @, because not every mail server accepts them.

    Raises:
        ValueError: It is no address, not every mail server accepts it, or a header would show another one.
    """
    local, _, domain = address.rpartition("@")
    if not (_LOCAL if ascii_only else _LOCAL_UTF8).match(local) or _ENCODED in local:
        raise ValueError("must have only ASCII characters before the @, single dots between them, and no =?")
    if len(local) > _LOCAL_LENGTH:
        raise ValueError(f"must have at most {_LOCAL_LENGTH} characters before the @")
    try:
        host = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        host = ""
    labels = host.split(".")
    if len(labels) == 1 or labels[-1].isdecimal() or not all(map(_LABEL.match, labels)):
        raise ValueError("must have a valid domain")
    if len(local) + 1 + len(host) > _LENGTH:
        raise ValueError(f"must have at most {_LENGTH} characters")
    return f"{local}@{host}"
