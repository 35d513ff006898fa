"""What `doctor URL` finds out about a deployment from outside, as any caller could."""

import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

from profilesvc.cli.checks import Check, clock

_TIMEOUT_SECONDS = 10
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CERTIFICATE_WARN_DAYS = 21
_DAY = 86_400


def outside(url: str, transport: httpx.BaseTransport | None = None) -> Iterator[Check]:
    """Reachable, TLS, clock, readiness, metadata, public keys; after an unreachable one nothing more."""
    if not _is_url(url):
        yield Check("reachable", "fail", f"{url} is not a URL", "write https:// or http://, a host and its port")
        return
    with httpx.Client(base_url=url, timeout=_TIMEOUT_SECONDS, transport=transport) as http:
        try:
            with http.stream("GET", "/healthz") as answer:
                certificate = _certificate(answer)
                answer.read()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            hint = "is the address right, the service running, and its certificate good?"
            yield Check("reachable", "fail", f"{type(error).__name__}: {error}", hint)
            return
        now = time.time()
        yield _alive(answer)
        yield _tls(url, certificate, now)
        yield clock(answer.headers.get("Date"), now)
        yield from _ready(http)
        yield _metadata(http, url.rstrip("/"))
        yield _keys(http)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        return False


def _alive(answer: httpx.Response) -> Check:
    if answer.status_code == 200 and _json(answer).get("status") == "ok":
        return Check("reachable", "ok", "healthz answers")
    hint = "something else answers at this address: give the service's base URL"
    return Check("reachable", "fail", f"healthz answers {answer.status_code}", hint)


def _certificate(answer: httpx.Response) -> dict[str, Any]:
    stream = answer.extensions.get("network_stream")
    secure: ssl.SSLObject | None = stream.get_extra_info("ssl_object") if stream else None
    return dict(secure.getpeercert() or {}) if secure else {}


def _tls(url: str, certificate: dict[str, Any], now: float) -> Check:
    parts = urlsplit(url)
    if parts.scheme != "https":
        if parts.hostname in _LOOPBACK:
            return Check("tls", "ok", "none, on this machine")
        return Check("tls", "fail", "none: secrets travel in the clear", "put a TLS-terminating proxy in front")
    ends = certificate.get("notAfter")
    if not isinstance(ends, str):
        return Check("tls", "ok", "the certificate is valid")
    days = int((ssl.cert_time_to_seconds(ends) - now) // _DAY)
    if days < _CERTIFICATE_WARN_DAYS:
        return Check("tls", "warn", f"the certificate ends in {days} {'day' if days == 1 else 'days'}", "renew it")
    return Check("tls", "ok", f"the certificate is valid for {days} days")


def _ready(http: httpx.Client) -> Iterator[Check]:
    answer = _get(http, "/readyz")
    checks = _json(answer).get("checks") if answer else None
    if not isinstance(checks, dict):
        yield Check("readiness", "fail", "readyz does not answer as it should", "read the service's log")
        return
    hints = {
        "database": "is it running? read the service's log",
        "writable": "the server is read-only: is it a standby? name the primary in PROFILESVC_DATABASE_URL",
        "migrations": "run `profilesvc db upgrade`",
        "signing_key": "see `profilesvc signing-keys list`",
        "accepting": "it is shutting down",
    }
    for name, good in checks.items():
        found = "in order" if good else "not in order"
        yield Check(name.replace("_", " "), "ok" if good else "fail", found, "" if good else hints.get(name, ""))


def _metadata(http: httpx.Client, url: str) -> Check:
    answer = _get(http, "/.well-known/oauth-authorization-server")
    if answer is None or answer.status_code != 200:
        return Check("metadata", "warn", "not served", "clients need the token endpoint in their configuration")
    issuer = _json(answer).get("issuer")
    if issuer == url:
        return Check("metadata", "ok", f"issuer {url}")
    return Check("metadata", "fail", f"the issuer is {issuer}", f"set PROFILESVC_BASE_URL={url}, or use that address")


def _keys(http: httpx.Client) -> Check:
    answer = _get(http, "/.well-known/jwks.json")
    if answer is None or answer.status_code != 200:
        return Check("public keys", "warn", "not served", "verifiers elsewhere cannot check tokens")
    keys = _json(answer).get("keys")
    keys = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    if any("d" in key for key in keys):
        return Check("public keys", "fail", "a private key is published", "rotate the signing keys at once")
    if not any(key.get("kid") and key.get("kty") == "RSA" for key in keys):
        return Check("public keys", "fail", "there is none", "see `profilesvc signing-keys list`")
    return Check("public keys", "ok", f"{len(keys)} published")


def _get(http: httpx.Client, path: str) -> httpx.Response | None:
    try:
        return http.get(path)
    except httpx.HTTPError:
        return None


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
