"""Domains of a key: one normal form, compared exactly and never by suffix (D-30)."""

import re
import unicodedata
from functools import cache
from ipaddress import ip_address

import idna
from tldextract import TLDExtract

from profilesvc.domain.errors import invalid, invalid_many

MAX_ENTRIES = 50
_LONGEST = 253
_INPUT_LIMIT = 2_048
_URL = re.compile(r"(?:https?://)?([^/?#]*)(?:[/?#].*)?\Z", re.IGNORECASE)
_PORT = re.compile(r":[0-9]{0,5}\Z", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)\Z", re.ASCII)
# A last label that reads as a number makes browsers take the whole host for an IPv4 address.
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z", re.ASCII)


@cache
def _public_suffixes() -> TLDExtract:
    """The list that the package carries; it is never fetched."""
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


def allowed_domains(primary: str | None, extras: list[str], *, development: bool) -> list[str]:
    """What a key is bound to: the primary domain, its www twin, then the extras, each once and in normal form.

    Raises VALIDATION_ERROR that names every bad entry, or `allowed_domains` when it has more than 50.
    """
    if len(extras) > MAX_ENTRIES:
        raise invalid("body", "allowed_domains", f"must not have more than {MAX_ENTRIES} entries")
    given = [] if primary is None else [("primary_domain", primary)]
    given += [(f"allowed_domains.{index}", extra) for index, extra in enumerate(extras)]
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


def _host(text: str) -> str:
    """The host of `[http[s]://]host[:port][/path]`, as written."""
    if len(text) > _INPUT_LIMIT:
        raise ValueError(f"must not be longer than {_LONGEST} characters")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zs", "Zl", "Zp") for char in text):
        raise ValueError("must not contain blanks or control characters")
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
