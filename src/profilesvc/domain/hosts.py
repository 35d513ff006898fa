"""Hosts as browsers read them, so that two spellings of one host are equal wherever hosts are compared (D-127).

The rule is the host parser of the URL Standard (https://url.spec.whatwg.org/#host-parsing): UTS 46 without transitional
processing, IPv4 addresses in every form, IPv6 addresses in brackets. Labels have at most 63 octets and names at most
253, because DNS has no longer ones; of ASCII only letters, digits, hyphens and underscores are accepted.
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
