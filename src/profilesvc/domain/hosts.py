"""Hosts as browsers read them, so that two spellings of one host are equal wherever hosts are compared (D-127).

Mailboxes are as every mail server and every header accepts them: the dot-atom and the lengths of RFC 5321.

The rule for hosts is the host parser of the URL Standard (https://url.spec.whatwg.org/#host-parsing): UTS 46 without
transitional processing, IPv4 addresses in every form, IPv6 addresses in brackets. Labels have at most 63 octets and
names at most 253, because DNS has no longer ones; of ASCII only letters, digits, hyphens and underscores are accepted.
"""

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

LONGEST = 253
_UNREADABLE = "must contain a valid host name"
_ASCII = re.compile(r"[a-z0-9_-]{1,63}\Z", re.ASCII)
# If the last label is a number, browsers read the whole host as an IPv4 address.
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z", re.ASCII)
_JOINERS = "\u200c\u200d"
_EMOJI_STYLE = "\ufe0f"  # keyboards add it to emoji, and browsers leave it out
_LONGEST_INPUT = 1_024
# Mailboxes.
_LENGTH, _LOCAL_LENGTH = 254, 64  # RFC 5321 section 4.5.3.1; a path has brackets and 256 characters
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_ATOM_UTF8 = rf"(?:{_ATOM}|[^\x00-\x9f\s])"  # RFC 6531
_LOCAL = re.compile(rf"{_ATOM}+(?:\.{_ATOM}+)*\Z")
_LOCAL_UTF8 = re.compile(rf"{_ATOM_UTF8}+(?:\.{_ATOM_UTF8}+)*\Z")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_ENCODED = "=?"  # the start of an encoded word (RFC 2047), which would be shown as other text, even as another address


def canonical_host(text: str) -> str:
    """Return a host in the form in which browsers compare it, such as `xn--bcher-kva.example`, `10.0.0.1` or `[::1]`.

    Raises:
        ValueError: Browsers do not accept the host; the message states the rule.
    """
    if text.startswith("["):
        return _ipv6(text)
    if len(text) > _LONGEST_INPUT:
        raise ValueError(f"must not be longer than {LONGEST} characters")
    try:
        mapped = idna.uts46_remap(text, std3_rules=False)
    except idna.IDNAError:
        raise ValueError(_UNREADABLE) from None
    labels = mapped.removesuffix(".").split(".")
    if _NUMBER.match(labels[-1]):
        return _ipv4(labels)
    host = ".".join(map(_label, labels))
    if len(host) > LONGEST:
        raise ValueError(f"must not be longer than {LONGEST} characters")
    if _NUMBER.match(host.rpartition(".")[2]):
        raise ValueError(_UNREADABLE)
    return host


def written_host(text: str) -> str:
    """Return the canonical host of a setting, in which some of what browsers accept is an accident.

    Raises:
        ValueError: As for `canonical_host`; also for invisible characters, and hyphens at the edge of a label.
    """
    check_visible(text)
    host = canonical_host(text)
    if not is_address(host) and any(label[0] == "-" or label[-1] == "-" for label in host.split(".")):
        raise ValueError("must not have a hyphen at the start or end of a label")
    return host


def check_visible(text: str) -> None:
    """Reject characters that a reader does not see, such as a soft hyphen.

    Raises:
        ValueError: The text contains one.
    """
    for char in text:
        if not char.isascii() and char != _EMOJI_STYLE and _is_ignored(char):
            raise ValueError(f"must not contain the invisible character U+{ord(char):04X}")


def is_address(host: str) -> bool:
    """Return whether a canonical host is an IP address."""
    return host.startswith("[") or bool(_NUMBER.match(host.rpartition(".")[2]))


def _is_ignored(char: str) -> bool:
    try:
        return not idna.uts46_remap(char, std3_rules=False)
    except idna.IDNAError:
        return False


def _label(text: str) -> str:
    """Return a mapped label as an A-label. Browsers accept emoji and hyphens at any place, unlike IDNA 2008."""
    if text.isascii() and not text.startswith("xn--"):
        if not _ASCII.match(text):
            raise ValueError(_UNREADABLE)
        return text
    try:
        decoded = text[4:].encode("ascii").decode("punycode") if text.startswith("xn--") else text
        label = "xn--" + decoded.encode("punycode").decode()
        is_stable = text in (decoded, label) and idna.uts46_remap(decoded, std3_rules=False) == decoded
        idna.check_bidi(decoded)
    except (UnicodeError, idna.IDNAError):
        raise ValueError(_UNREADABLE) from None
    is_joined = all(idna.valid_contextj(decoded, at) for at, char in enumerate(decoded) if char in _JOINERS)
    is_shown = is_stable and is_joined and not decoded.isascii() and unicodedata.category(decoded[0])[0] != "M"
    if not is_shown or not _ASCII.match(label):
        raise ValueError(_UNREADABLE)
    return label


def _ipv4(labels: list[str]) -> str:
    """Return an IPv4 address in its usual form; browsers accept hexadecimal, octal and fewer than four numbers."""
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        raise ValueError("must contain a valid IP address") from None
    *first, last = numbers
    if len(numbers) > 4 or any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        raise ValueError("must contain a valid IP address")
    return str(IPv4Address(sum(number << 8 * (3 - at) for at, number in enumerate(first)) + last))


def _number(label: str) -> int:
    if not _NUMBER.match(label):  # int() accepts more, such as underscores and other digits
        raise ValueError(label)
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if len(label) > 1 and label.startswith("0") else 10)


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address(text[1:-1] if text.endswith("]") and "%" not in text else "")
    except AddressValueError:
        raise ValueError("must contain a valid IP address") from None
    if address.ipv4_mapped is None:
        return f"[{address}]"
    return f"[::ffff:{int(address) >> 16 & 0xFFFF:x}:{int(address) & 0xFFFF:x}]"  # Python's form depends on its version


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
