"""Kinds of values that the provider's documentation names: URLs, phone numbers, regions and links in a text."""

import re
import unicodedata
from functools import cache
from urllib.parse import urlsplit

import phonenumbers
from babel import Locale

# Groups of countries and placeholders of CLDR, in which no business can be.
_NO_COUNTRY = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})
# The name of a scheme is bounded, because without that the time grows with the square of the text.
_LINK = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://|\bwww\.\w", re.IGNORECASE)
_EXTENSION = re.compile(r"(?:[ ,;]*(?:extension|extn?\.?|x|#)[ :=.]*\d{1,7})?\Z", re.IGNORECASE)
_SECOND_EXTENSION = re.compile(r"[\\/] *x")
_MOST_DIGITS = 20  # 15 of E.164, and a prefix for calls abroad
_NO_PHONE = re.compile(r"\A[^+(\d]|[^\dA-Z+()./ \-\u2010-\u2015]")  # capitals are digits too, as in 1-800-FLOWERS


def is_web_address(url: object) -> bool:
    """Return whether a value is http(s)://host…, without user info, spaces, backslashes or control characters."""
    if not isinstance(url, str) or not url:
        return False
    if any(char == "\\" or unicodedata.category(char)[0] in "CZ" for char in url):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def has_link(text: str) -> bool:
    """Return whether a text contains a URL. A domain without `www.` is not one, because "at 9.Come in" looks alike."""
    return _LINK.search(text) is not None


@cache
def regions() -> frozenset[str]:
    """Return the two-letter region codes of CLDR, which are those of ISO 3166 and a few more such as XK."""
    codes = (f"{code}" for code in Locale.parse("en").territories)
    return frozenset(code for code in codes if len(code) == 2) - _NO_COUNTRY


def is_region(code: str) -> bool:
    """Return whether a code is a region of CLDR, in upper or lower case."""
    return code.upper() in regions()


def has_second_extension(text: str) -> bool:
    """Return whether a text is two numbers such as `555 0170 x1 / x2`; `phonenumbers` drops the second one."""
    return _SECOND_EXTENSION.search(unicodedata.normalize("NFKC", text)) is not None


def is_phone(text: str, region: str | None = None) -> bool:
    """Return whether a text can be a phone number, written for its region or with `+` and the country's code.

    Only what certainly is no number is refused, because numbering plans change: words, fewer than three digits, or more
    than any country has. Without a region, a national number can only be read as far as its form.
    """
    if has_second_extension(text):
        return False
    number = _EXTENSION.sub("", unicodedata.normalize("NFKC", text).strip())
    if _NO_PHONE.search(number) or not 3 <= sum(char.isdigit() for char in number) <= _MOST_DIGITS:
        return False
    try:
        phonenumbers.parse(number, region.upper() if region and is_region(region) else None)
    except phonenumbers.NumberParseException as error:
        # A national number without a region, or of a region that has no numbering plan of its own.
        return error.error_type == error.INVALID_COUNTRY_CODE and not number.startswith("+")
    return True
