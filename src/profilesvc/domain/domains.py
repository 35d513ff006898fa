"""Domains of a key, origins of pages and hosts of sites in one normal form.

They are compared exactly: a suffix or substring match would accept `evil-example.com` for `example.com` (D-30).
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

import idna

from profilesvc.domain.errors import invalid, invalid_many

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_ENTRIES = 50
_LONGEST = 253
_INPUT_LIMIT = 2_048
_URL = re.compile(r"(?:https?://)?([^/?#]*)(?:[/?#].*)?\Z", re.IGNORECASE)
_PORT = re.compile(r":[0-9]{0,5}\Z", re.ASCII)
# What RFC 6454 §6.2 serialises. Browsers write nothing else, so `null`, user info, a path or a list is no origin here.
_ORIGIN = re.compile(
    r"(https?)://([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?\Z",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_ORIGIN = 300
_SITE = re.compile(r"WordPress/[^;]{0,64}; ?https?://([^\s/?#;]+)", re.IGNORECASE | re.ASCII)
_HOST = re.compile(r"[a-z0-9._\[\]:-]{1,253}\Z", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)\Z", re.ASCII)
# A last label that reads as a number makes browsers take the whole host for an IPv4 address.
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z", re.ASCII)


@cache
def _public_suffixes() -> "TLDExtract":
    """The list that the package carries; it is never fetched. Commands do without its import, which takes long."""
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def normal_domain(text: str, *, development: bool) -> str:
    """The host of a domain or URL in lower-case A-labels, without port, path or last dot.

    Only blanks are trimmed: a newline makes the value bad, as do IP addresses, wildcards, user info, public suffixes
    such as `co.uk`, and localhost outside development. Raises ValueError with the rule that is broken.
    """
    host = _host(text.strip(" "))
    if not host:
        raise ValueError("must name a domain such as example.com")
    if _is_address(host):
        raise ValueError("must be a domain name, not an IP address")
    domain = ".".join(_label(part) for part in _mapped(host).removesuffix(".").split("."))
    if len(domain) > _LONGEST:
        raise ValueError(f"must not be longer than {_LONGEST} characters")
    if _is_address(domain) or _NUMBER.match(domain.rpartition(".")[2]):
        raise ValueError("must be a domain name, not an IP address")
    if domain.rpartition(".")[2] == "localhost":
        if not development:
            raise ValueError("localhost is accepted in development only")
    elif "." not in domain or not _public_suffixes()(domain).domain:
        raise ValueError("must be a registered domain, not a public suffix or a single word")
    return domain


def allowed_domains(primary: str | None, extras: Sequence[object], *, development: bool) -> list[str]:
    """What a key is bound to: the primary domain, its www twin, then the extras, each once and in normal form.

    Raises VALIDATION_ERROR that names every bad entry, or `allowed_domains` when it has more than 50. Entries that are
    not strings are left to the check of the types.
    """
    if len(extras) > MAX_ENTRIES:
        raise invalid("body", "allowed_domains", f"must not have more than {MAX_ENTRIES} entries")
    given = [] if primary is None else [("primary_domain", primary)]
    given += [(f"allowed_domains.{index}", extra) for index, extra in enumerate(extras) if isinstance(extra, str)]
    problems, domains = [], []
    for field, text in given:
        try:
            domain = normal_domain(text, development=development)
        except ValueError as error:
            problems.append(("body", field, str(error)))
            continue
        domains += [domain, *_twin(domain)] if field == "primary_domain" else [domain]
    if problems:
        raise invalid_many(problems)
    return list(dict.fromkeys(domains))


def domain_allowed(site: str, allowed: list[str], *, development: bool) -> bool:
    """Whether a site is one of the allowed domains, exactly; without allowed domains every good name is."""
    try:
        domain = normal_domain(site, development=development)
    except ValueError:
        return False
    return not allowed or domain in allowed


class Origin(NamedTuple):
    """Where a page comes from; equal when scheme, host and port are (RFC 6454 §5)."""

    scheme: str
    host: str
    port: int


def parse_origin(text: str) -> Origin | None:
    """An `Origin` header in lower case and with its port; None for what is not a web origin, such as `null`."""
    match = _ORIGIN.match(text) if len(text) <= _LONGEST_ORIGIN else None
    if match is None:
        return None
    scheme = match[1].lower()
    port = int(match[3] or {"http": 80, "https": 443}[scheme])
    return Origin(scheme, match[2].lower(), port) if port <= 65_535 else None


def origin_allowed(origin: Origin, allowed: list[str], *, development: bool) -> bool:
    """Return whether a key accepts requests from pages of this origin: an allowed host, https, any port.

    A key without domains accepts every origin. http is accepted in development only.
    """
    if not allowed:
        return True
    return (development or origin.scheme == "https") and domain_allowed(origin.host, allowed, development=development)


def site_host(user_agent: str) -> str | None:
    """The host of the site in WordPress' own User-Agent, `WordPress/6.8; https://example.com/blog`; else None.

    In normal form where it has one; a copy at an address or a bare name is worth telling too.
    """
    match = _SITE.match(user_agent)
    if match is None:
        return None
    try:
        return normal_domain(match[1], development=True)
    except ValueError:
        host = _PORT.sub("", match[1].rpartition("@")[2].lower())
        return host if _HOST.match(host) else None


def _host(text: str) -> str:
    """The host of `[http[s]://]host[:port][/path]`, as written."""
    if len(text) > _INPUT_LIMIT:
        raise ValueError(f"must not be longer than {_LONGEST} characters")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zs", "Zl", "Zp") for char in text):
        raise ValueError("must not contain spaces or control characters")
    match = _URL.match(text)
    host = match[1] if match else ""
    if any(char in host for char in "@*%\\"):
        raise ValueError("must be a plain domain, without user info, wildcards or escapes")
    return _PORT.sub("", host)


def _mapped(host: str) -> str:
    """UTS-46: case, width and dots as a browser reads them."""
    try:
        return idna.uts46_remap(host, std3_rules=True, transitional=False)
    except idna.IDNAError:
        raise ValueError("must be a domain name such as example.com") from None


def _label(text: str) -> str:
    """One label as an A-label. Hosts in use have `--` in places that IDNA reserves, so ASCII is only spell-checked."""
    if _LABEL.match(text) and not text.startswith("xn--"):
        return text
    try:
        return idna.alabel(text).decode()
    except idna.IDNAError:
        raise ValueError("must be a domain name such as example.com") from None


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _twin(domain: str) -> list[str]:
    """`www.x` for x and x for `www.x`; none where it would be a public suffix or has no meaning."""
    if domain.rpartition(".")[2] == "localhost":
        return []
    if not domain.startswith("www."):
        return [f"www.{domain}"] if len(domain) + 4 <= _LONGEST else []
    bare = domain.removeprefix("www.")
    return [bare] if "." in bare and _public_suffixes()(bare).domain else []
