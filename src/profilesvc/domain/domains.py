"""Sites by one rule (D-30, D-127): domains of keys, origins of pages, and the sites that heartbeats name.

A site is `host` or `host:port`, with the host in the form of `hosts.py`. The ports 80 and 443 are left out, because the
scheme does not count. Sites are compared exactly: a suffix match would accept `evil-example.com` for `example.com`.
"""

import contextlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from profilesvc.domain.errors import invalid, invalid_many
from profilesvc.domain.hosts import LONGEST, canonical_host, is_address, written_host

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_ENTRIES = 50
_INPUT_LIMIT = 2_048
_URL = re.compile(r"(?:https?://|(?![a-z0-9+.-]*://))([^/?#]*)(?:[/?#].*)?\Z", re.IGNORECASE | re.ASCII)
_PORT = re.compile(r"(?<=[^:]):([0-9]*)\Z", re.ASCII)
_USUAL_PORTS = (80, 443)
# The serialisation of RFC 6454 §6.2. Browsers send nothing else, so `null`, user info, paths and lists are rejected.
_ORIGIN = re.compile(
    r"(https?)://([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?\Z",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_ORIGIN = 300
_USER_AGENT = re.compile(r"WordPress/[^;]{0,64}; ?https?://([^\s/?#;]+)", re.IGNORECASE | re.ASCII)


@cache
def _public_suffixes() -> "TLDExtract":
    """Return the list that the package contains; it is never fetched. The import is lazy because it is slow."""
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def site_of(text: str) -> str:
    """Return the site of an address such as `https://Example.com:8443/blog`, which is `example.com:8443`.

    The path of an address is left out. Only spaces around it are trimmed; a newline is invalid, as are wildcards, user
    info and escapes.

    Raises:
        ValueError: The address is invalid; the message states the rule.
    """
    host, port = _split(text)
    return _site(canonical_host(host), port)


def same_sites(site: str, allowed: list[str]) -> list[str]:
    """Return what names the same site: the key's domains, or for a key without domains the site and its www twin."""
    if allowed:
        return allowed if site in allowed else [site]
    return [site, *_twin(site)]


def normal_domain(text: str, *, development: bool) -> str:
    """Return the site of a key's domain, which must be a registered domain.

    IP addresses, single words, underscores and public suffixes such as `co.uk` are rejected because they do not name
    one owner's site; a key without domains works there. So is localhost outside development.

    Raises:
        ValueError: The value is not a domain; the message states the rule.
    """
    host, port = _split(text)
    domain = written_host(host)
    site = _site(domain, port)
    if is_address(domain):
        raise ValueError("must be a domain name, not an IP address")
    if "_" in domain:
        raise ValueError("must not contain an underscore, which no registered domain has")
    if len(site) > LONGEST:
        raise ValueError(f"must not be longer than {LONGEST} characters")
    if is_local(site):
        if not development:
            raise ValueError("localhost is accepted in development only")
    elif not _is_registered(domain):
        raise ValueError("must be a registered domain, not a public suffix or a single word")
    return site


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
        domains += [domain, *_registered_twin(domain)] if field == "primary_domain" else [domain]
    if problems:
        raise invalid_many(problems)
    return list(dict.fromkeys(domains))


def domain_allowed(address: str, allowed: list[str], *, development: bool) -> bool:
    """Return whether the site of an address is one of the allowed ones; without any, every valid address is allowed."""
    try:
        site = site_of(address)
    except ValueError:
        return False
    return not allowed or (site in allowed and (development or not is_local(site)))


def is_local(site: str) -> bool:
    """Return whether a site is localhost, which a key may name in development only."""
    return _PORT.sub("", site).rpartition(".")[2] == "localhost"


class Origin(NamedTuple):
    """The origin of a page. Two origins are equal if scheme, host and port are (RFC 6454 §5)."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """The origin as an address, for `site_of`."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse_origin(text: str) -> Origin | None:
    """Parse an `Origin` header, in lower case and with its port. Return None for other values, such as `null`."""
    match = _ORIGIN.match(text) if len(text) <= _LONGEST_ORIGIN else None
    if match is None:
        return None
    scheme = match[1].lower()
    port = int(match[3] or {"http": 80, "https": 443}[scheme])
    return Origin(scheme, match[2].lower(), port) if port <= 65_535 else None


def origin_allowed(origin: Origin, allowed: list[str], *, development: bool) -> bool:
    """Return whether a key accepts requests from pages of this origin: an allowed site, with https.

    A key without domains accepts every site. http is accepted by it, and in development.
    """
    is_secure = development or not allowed or origin.scheme == "https"
    return is_secure and domain_allowed(origin.address, allowed, development=development)


def site_host(user_agent: str) -> str | None:
    """Return the site in WordPress' own User-Agent, such as `WordPress/6.8; https://example.com/blog`; else None.

    Its path does not count, because plugins for languages add one. WordPress sends UTF-8, and a header arrives as
    ISO 8859-1.
    """
    match = _USER_AGENT.match(user_agent)
    if match is None:
        return None
    address = match[1].rpartition("@")[2]
    with contextlib.suppress(UnicodeError):
        address = address.encode("latin-1").decode()
    try:
        site = site_of(address)
    except ValueError:
        return None
    return site if len(site) <= LONGEST else None


def _split(text: str) -> tuple[str, int | None]:
    """Return host, as written, and port of `[http[s]://]host[:port][/path]`."""
    text = text.strip(" ")
    if len(text) > _INPUT_LIMIT:
        raise ValueError(f"must not be longer than {LONGEST} characters")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zs", "Zl", "Zp") for char in text):
        raise ValueError("must not contain spaces or control characters")
    match = _URL.match(text)
    host = match[1] if match else ""
    if any(char in host for char in "@*%\\"):
        raise ValueError("must be a plain domain, without user info, wildcards or escapes")
    port = _PORT.search(host)
    if not host:
        raise ValueError("must name a domain such as example.com")
    if port is None:
        return host, None
    if port[1] and not (len(port[1]) <= 5 and 1 <= int(port[1]) <= 65_535):
        raise ValueError("must have a port from 1 to 65535")
    return host[: port.start()], int(port[1]) if port[1] else None


def _site(host: str, port: int | None) -> str:
    return host if port is None or port in _USUAL_PORTS else f"{host}:{port}"


def _is_registered(domain: str) -> bool:
    return "." in domain and bool(_public_suffixes()(domain).domain)


def _twin(site: str) -> list[str]:
    """Return `www.x` for x and x for `www.x`; nothing for an address or a single word."""
    host, port = _split(site)
    if is_address(host) or "." not in host or host.endswith(".localhost"):
        return []
    if not host.startswith("www."):
        return [_site(f"www.{host}", port)]
    bare = host.removeprefix("www.")
    return [_site(bare, port)] if "." in bare else []


def _registered_twin(site: str) -> list[str]:
    """Return the twin if it can be a key's domain."""
    return [twin for twin in _twin(site) if len(twin) <= LONGEST and _is_registered(_PORT.sub("", twin))]
