"""The checks of `doctor URL` on a deployment, from outside and without credentials."""

import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from profilesvc.cli.doctor.check import Check, connection_hint
from profilesvc.cli.doctor.checks import clock
from profilesvc.contract.json import JsonObject
from profilesvc.domain.problems import counted

_TIMEOUT_SECONDS = 10
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CERTIFICATE_WARN_DAYS = 21
_DAY = 86_400
_READY_HINTS = {
    "database": "check that it runs, and read the log of the service",
    "writable": "the server is read-only: set PROFILESVC_DATABASE_URL to the primary",
    "migrations": "run `profilesvc db upgrade`",
    "nodes": "a node of the cluster is down, and its owners get 503; `profilesvc doctor` on a host names it",
    "standby": "no standby is connected to the primary, so writes get 503; start the standbys",
    "signing_key": "see `profilesvc signing-keys list`",
    "pepper": "PROFILESVC_SECRET_PEPPER of this process was replaced: restart it with the new one",
    "accepting": "the service is shutting down",
}


def outside(url: str, transport: httpx.BaseTransport | None = None) -> Iterator[Check]:
    """Check reachability, TLS, clock, readiness, metadata and public keys. Stop if the URL is not reachable."""
    if not is_url(url):
        yield Check("reachable", "fail", f"{url} is not a URL", "use the form https://host or http://host:port")
        return
    with httpx.Client(base_url=url, timeout=_TIMEOUT_SECONDS, transport=transport) as http:
        try:
            with http.stream("GET", "/healthz") as response:
                certificate = _certificate(response)
                response.read()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            hint = connection_hint(error, "check the address, and that the proxy runs")
            yield Check("reachable", "fail", f"{type(error).__name__}: {error}", hint)
            return
        now = time.time()
        yield _alive(response)
        yield _tls(url, certificate, now)
        yield clock(response.headers.get("Date"), now)
        yield from _ready(http)
        yield _metadata(http, url.rstrip("/"))
        yield _keys(http)


def ready(port: int) -> Check:
    """Ask the server on this machine whether it accepts requests. The status of `/readyz` decides."""
    url = f"http://127.0.0.1:{port}/readyz"
    try:
        response = httpx.get(url, timeout=_TIMEOUT_SECONDS, trust_env=False)  # a proxy cannot reach this machine
    except httpx.HTTPError as error:
        hint = "check that the service runs, and choose its port with --port"
        return Check("readiness", "fail", f"{url} does not respond: {error}", hint)
    if response.status_code == 200:
        return Check("readiness", "ok", "the server accepts requests")
    checks = _json(response).get("checks")
    failed = [name for name, passes in checks.items() if not passes] if isinstance(checks, dict) else []
    message = f"/readyz responds with HTTP {response.status_code}{'; failed: ' if failed else ''}{', '.join(failed)}"
    return Check(
        "readiness", "fail", message, next((_READY_HINTS[name] for name in failed if name in _READY_HINTS), "")
    )


def is_url(url: str) -> bool:
    """Return whether a request can be sent to a URL."""
    try:
        parts = urlsplit(url)
        httpx.URL(url).raw_host.decode().encode("idna")  # labels that are empty or too long
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx.InvalidURL):  # also an invalid port
        return False


def _alive(response: httpx.Response) -> Check:
    if response.status_code == 200 and _json(response).get("status") == "ok":
        return Check("reachable", "ok", "/healthz responds")
    if response.status_code in (502, 503, 504):
        hint = "the proxy runs, but no process of the service responds yet; read the log of the service"
    else:
        hint = "a different server responds at this address; use the base URL of the service"
    return Check("reachable", "fail", f"/healthz responds with HTTP {response.status_code}", hint)


def _certificate(response: httpx.Response) -> JsonObject:
    stream = response.extensions.get("network_stream")
    secure: ssl.SSLObject | None = stream.get_extra_info("ssl_object") if stream else None
    return dict(secure.getpeercert() or {}) if secure else {}


def _tls(url: str, certificate: JsonObject, now: float) -> Check:
    parts = urlsplit(url)
    if parts.scheme != "https":
        if parts.hostname in _LOOPBACK:
            return Check("tls", "ok", "not needed on this machine")
        return Check("tls", "fail", "no TLS: secrets are sent unencrypted", "put a proxy with TLS in front")
    expires = certificate.get("notAfter")
    if not isinstance(expires, str):
        return Check("tls", "ok", "the certificate is valid")
    days = int((ssl.cert_time_to_seconds(expires) - now) // _DAY)
    if days < _CERTIFICATE_WARN_DAYS:
        return Check("tls", "warn", f"the certificate expires in {counted(days, 'day')}", "renew it")
    return Check("tls", "ok", f"the certificate is valid for {days} days")


def _ready(http: httpx.Client) -> Iterator[Check]:
    response = _get(http, "/readyz")
    checks = _json(response).get("checks") if response else None
    if not isinstance(checks, dict):
        yield Check("readiness", "fail", "/readyz does not return the expected JSON", "read the log of the service")
        return
    for name, passes in checks.items():
        hint = "" if passes else _READY_HINTS.get(name, "")
        yield Check(name.replace("_", " "), "ok" if passes else "fail", "passed" if passes else "failed", hint)


def _metadata(http: httpx.Client, url: str) -> Check:
    response = _get(http, "/.well-known/oauth-authorization-server")
    if response is None or response.status_code != 200:
        return Check("metadata", "warn", "not served", "configure the token endpoint in each client")
    issuer = _json(response).get("issuer")
    if issuer == url:
        return Check("metadata", "ok", f"issuer {url}")
    return Check(
        "metadata", "fail", f"the issuer is {issuer}", f"set PROFILESVC_BASE_URL={url}, or use the issuer's address"
    )


def _keys(http: httpx.Client) -> Check:
    response = _get(http, "/.well-known/jwks.json")
    if response is None or response.status_code != 200:
        return Check("public keys", "warn", "not served", "other servers cannot verify tokens")
    keys = _json(response).get("keys")
    keys = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    if any("d" in key for key in keys):
        return Check("public keys", "fail", "a private key is published", "rotate the signing keys immediately")
    if not any(key.get("kid") and key.get("kty") == "RSA" for key in keys):
        return Check("public keys", "fail", "there are none", "see `profilesvc signing-keys list`")
    return Check("public keys", "ok", f"{len(keys)} published")


def _get(http: httpx.Client, path: str) -> httpx.Response | None:
    try:
        return http.get(path)
    except httpx.HTTPError:
        return None


def _json(response: httpx.Response) -> JsonObject:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
