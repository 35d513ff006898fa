"""Domains of keys, origins of pages and hosts of sites in one normal form.

They are compared exactly, because a suffix match would accept `evil-example.com` for `example.com` (D-30).
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
# The serialisation of RFC 6454 §6.2. Browsers send nothing else, so `null`, user info, paths and lists are rejected.
_ORIGIN = re.compile(
    r"(https?)://([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?\Z",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_ORIGIN = 300
_SITE = re.compile(r"WordPress/[^;]{0,64}; ?https?://([^\s/?#;]+)", re.IGNORECASE | re.ASCII)
_HOST = re.compile(r"[a-z0-9._\[\]:-]{1,253}\Z", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)\Z", re.ASCII)
# If the last label is a number, browsers read the whole host as an IPv4 address.
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z", re.ASCII)


@cache
def _public_suffixes() -> "TLDExtract":
    """Return the list that the package contains; it is never fetched. The import is lazy because it is slow."""
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def normal_domain(text: str, *, development: bool) -> str:
    """Return the host of a domain or URL in lower-case A-labels, without port, path or last dot.

    Only spaces are trimmed. A newline is invalid, as are IP addresses, wildcards, user info, public suffixes such as
    `co.uk`, and localhost outside development.

    Raises:
        ValueError: The value is not a domain; the message states the rule.
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
    """Return the domains of a key: the primary domain, its www twin, then the extras, each once and in normal form.

    Entries that are not strings are ignored, because the check of types reports them.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid entry, or `allowed_domains` if it has more than 50.
    """
    if len(extras) > MAX_ENTRIES:
        raise invalid("body", "allowed_domains", f"must not have more than {MAX_ENTRIES} entries")
    entries = [] if primary is None else [("primary_domain", primary)]
    entries += [(f"allowed_domains.{index}", extra) for index, extra in enumerate(extras) if isinstance(extra, str)]
    problems, domains = [], []
    for field, text in entries:
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
    """Return whether a site is exactly one of the allowed domains; without any, every valid name is allowed."""
    try:
        domain = normal_domain(site, development=development)
    except ValueError:
        return False
    return not allowed or domain in allowed


class Origin(NamedTuple):
    """The origin of a page. Two origins are equal if scheme, host and port are (RFC 6454 §5)."""

    scheme: str
    host: str
    port: int


def parse_origin(text: str) -> Origin | None:
    """Parse an `Origin` header, in lower case and with its port. Return None for other values, such as `null`."""
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
    """Return the host in WordPress' own User-Agent, such as `WordPress/6.8; https://example.com/blog`; else None.

    The host is in normal form if it has one. IP addresses and bare names are returned too, because copies of a site
    often run there.
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
    """Return the host of `[http[s]://]host[:port][/path]`, as written."""
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
    """Map case, width and dots as browsers do (UTS-46)."""
    try:
        return idna.uts46_remap(host, std3_rules=True, transitional=False)
    except idna.IDNAError:
        raise ValueError("must be a domain name such as example.com") from None


def _label(text: str) -> str:
    """Return one label as an A-label. ASCII labels get no IDNA check: hosts have `--` that IDNA reserves."""
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
    """Return `www.x` for x and x for `www.x`; nothing if that is a public suffix or has no meaning."""
    if domain.rpartition(".")[2] == "localhost":
        return []
    if not domain.startswith("www."):
        return [f"www.{domain}"] if len(domain) + 4 <= _LONGEST else []
    bare = domain.removeprefix("www.")
    return [bare] if "." in bare and _public_suffixes()(bare).domain else []
