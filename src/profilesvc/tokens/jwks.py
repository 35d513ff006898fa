"""Read an identity provider's keys from the configured JWKS URL, never from one in a token, and cache them."""

import asyncio
import logging
from dataclasses import dataclass

import httpx
import jwt

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import HOUR, MINUTE, SECOND, Clock
from profilesvc.tokens.id_tokens import PublicKey
from profilesvc.tokens.jose import json_object
from profilesvc.tokens.single_flight import SingleFlight

FRESH_MS = 10 * MINUTE
STALE_MS = 24 * HOUR
PAUSE_MS = 30 * SECOND
PAUSE_WITHOUT_KEYS_MS = 5 * SECOND
TIMEOUT_SECONDS = 5.0
MAX_BYTES = 64 * 1024
_MIN_RSA_BITS = 2048
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_FIELDS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
log = logging.getLogger("profilesvc")


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str | None
    kty: str
    crv: str | None
    alg: str | None
    public: PublicKey

    def fits(self, kid: str | None, alg: str) -> bool:
        has_kid = kid is None or self.kid == kid
        has_curve = self.kty != "EC" or self.crv == _CURVES.get(alg)
        return has_kid and has_curve and self.kty == _TYPES[alg[:2]] and self.alg in (None, alg)


async def read_keys(
    url: str, seconds: float = TIMEOUT_SECONDS, transport: httpx.AsyncBaseTransport | None = None
) -> list[_Key]:
    """Read the usable keys at a JWKS URL. Keys that cannot be read are skipped (RFC 7517 §5).

    Raises:
        Exception: The connection, the response or the JSON failed in any way.
    """
    async with asyncio.timeout(seconds):
        entries = json_object(await _read(url, transport)).get("keys")
    if not isinstance(entries, list):
        raise TypeError("no field `keys`")
    return [key for entry in entries if (key := _key(entry)) is not None]


class RemoteKeys:
    """The keys at a JWKS URL, read on demand, in one request for all callers that wait."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        seconds: float = TIMEOUT_SECONDS,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url, self._clock = url, clock
        self._seconds, self._transport = seconds, transport
        self._keys: list[_Key] = []
        self._read_at: int | None = None
        self._tried_at: int | None = None
        self._failed = False
        self._single_flight = SingleFlight()

    async def find(self, kid: str | None, alg: str) -> PublicKey | None:
        """Return the key with this id for an algorithm; without an id, the only key that fits.

        An unknown id causes a request to the issuer at most every 30 s.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if there is no such key in the cache and the issuer cannot be read.
        """
        key = self._cached(kid, alg)
        may_read = self._single_flight.is_running("jwks") or self._until_retry() == 0
        if may_read and (key is None or not self._is_within(FRESH_MS)):
            await self._single_flight.run("jwks", self._reread)
            key = self._cached(kid, alg)
        if key is None and self._failed:
            raise ServiceError(
                SERVICE_UNAVAILABLE,
                "The identity provider's keys cannot be read right now.",
                retry_after=max(1, -(-self._until_retry() // SECOND)),
            )
        return key

    def _cached(self, kid: str | None, alg: str) -> PublicKey | None:
        cached = self._keys if self._is_within(FRESH_MS + STALE_MS) else []
        fitting = [key.public for key in cached if key.fits(kid, alg)]
        return fitting[0] if fitting and (kid is not None or len(fitting) == 1) else None

    def _is_within(self, age: int) -> bool:
        return self._read_at is not None and 0 <= self._clock.now() - self._read_at < age

    def _until_retry(self) -> int:
        """Return the milliseconds until the next request to the issuer may start; 0 if the clock was set back."""
        age = PAUSE_MS if self._tried_at is None else self._clock.now() - self._tried_at
        pause = PAUSE_MS if self._is_within(FRESH_MS + STALE_MS) else PAUSE_WITHOUT_KEYS_MS
        return max(0, pause - age) if age >= 0 else 0

    async def _reread(self) -> None:
        try:
            self._keys = await read_keys(self._url, self._seconds, self._transport)
        except Exception as error:  # whatever failed, the cached keys stay in use
            self._failed = True
            log.warning("the identity provider's keys cannot be read: %s: %s", type(error).__name__, error)
        else:
            self._failed, self._read_at = False, self._clock.now()
        finally:
            self._tried_at = self._clock.now()  # now, because the pause starts after a slow failure


async def _read(url: str, transport: httpx.AsyncBaseTransport | None) -> bytes:
    """Return the body of the response."""
    async with (
        httpx.AsyncClient(follow_redirects=False, timeout=TIMEOUT_SECONDS, transport=transport) as client,
        # Reject compressed responses, because their size is unknown before they are decompressed.
        client.stream("GET", url, headers={"Accept": "application/json", "Accept-Encoding": "identity"}) as response,
    ):
        if response.status_code != 200 or response.headers.get("content-encoding", "identity") != "identity":
            raise ValueError(f"status {response.status_code}, or compressed")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES} bytes")
        return bytes(body)


def _key(entry: JsonObject) -> _Key | None:
    try:
        if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
            return None
        kty, kid = entry["kty"], entry.get("kid")
        alg = entry.get("alg")
        # Only the public fields, so that a private key published by mistake is not loaded.
        fields = {"kty": kty, **{name: entry[name] for name in _FIELDS[kty]}}
        public = jwt.PyJWK(fields, "EdDSA" if kty == "OKP" else None).key
        if kty == "RSA" and public.key_size < _MIN_RSA_BITS:
            return None
        return _Key(kid, kty, entry.get("crv"), alg, public)
    except Exception:  # any error that a malformed key causes in the parser
        return None
